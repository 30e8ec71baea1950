// SPDX-License-Identifier: Apache-2.0
//! The sessions that have one set.
//!
//! Owns the list, and the room for one without an allocation: most sets that are not shared have one. Does not know what is in
//! the set.

/// Numbers of seats, in no order.
#[derive(Debug, Default)]
pub(super) struct Members {
    first: Option<u32>,
    others: Vec<u32>,
}

impl Members {
    pub(super) const fn len(&self) -> usize {
        self.first.is_some() as usize + self.others.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.first.into_iter().chain(self.others.iter().copied())
    }

    /// Adds a member and returns its position.
    pub(super) fn push(&mut self, seat: u32) -> u32 {
        if self.first.is_none() {
            self.first = Some(seat);
            return 0;
        }
        if self.others.len() == self.others.capacity() {
            self.others.reserve_exact((self.others.len() / 4).max(1));
        }
        self.others.push(seat);
        u32::try_from(self.others.len()).unwrap_or(u32::MAX)
    }

    /// Removes the member at the position; the last one takes its place. Returns that one.
    pub(super) fn swap_remove(&mut self, at: u32) -> Option<u32> {
        let at = at as usize;
        if at > self.others.len() {
            return None;
        }
        let last = self.others.pop();
        if self.others.len() * 4 < self.others.capacity() {
            self.others.shrink_to_fit();
        }
        let place = match (at.checked_sub(1), last) {
            (None, last) => {
                self.first = last;
                return last;
            }
            (Some(at), Some(last)) => self.others.get_mut(at).zip(Some(last)),
            (Some(_), None) => None,
        };
        let (place, last) = place?;
        *place = last;
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_takes_the_place_of_who_goes() {
        let mut members = Members::default();
        assert_eq!([members.push(5), members.push(6), members.push(7)], [0, 1, 2]);
        assert_eq!((members.swap_remove(3), members.swap_remove(0)), (None, Some(7)));
        assert!(members.iter().eq([7, 6]));
        assert_eq!(
            (members.swap_remove(1), members.swap_remove(0), members.len()),
            (None, None, 0)
        );
        assert_eq!((members.push(8), members.len()), (0, 1));
    }
}
