// SPDX-License-Identifier: Apache-2.0
//! Values by small numbers; free numbers are used again.
//!
//! Owns the numbers. Does not know what they stand for.

/// A list with holes; the holes are filled first.
#[derive(Debug)]
pub(super) struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn insert(&mut self, value: T) -> u32 {
        let number = self.next();
        match self.free.pop().and_then(|number| self.values.get_mut(number as usize)) {
            Some(place) => *place = Some(value),
            None => self.values.push(Some(value)),
        }
        number
    }

    /// The number of the next value.
    pub(super) fn next(&self) -> u32 {
        let fresh = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.free.last().copied().unwrap_or(fresh)
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.values.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(value)
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.values.get_mut(number as usize)?.as_mut()
    }

    pub(super) const fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// One past the highest number.
    pub(super) const fn end(&self) -> usize {
        self.values.len()
    }

    /// All values with their numbers, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..)
            .zip(&self.values)
            .filter_map(|(number, value)| Some((number, value.as_ref()?)))
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            free: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again() {
        let mut slab = Slab::default();
        assert_eq!([slab.insert('a'), slab.insert('b'), slab.insert('c')], [0, 1, 2]);
        assert_eq!((slab.remove(1), slab.remove(1), slab.len()), (Some('b'), None, 2));
        assert_eq!((slab.insert('d'), slab.insert('e')), (1, 3));
        slab.remove(0);
        assert_eq!(slab.iter().collect::<Vec<_>>(), [(1, &'d'), (2, &'c'), (3, &'e')]);
        assert_eq!((slab.get(0), slab.end()), (None, 4));
    }
}
