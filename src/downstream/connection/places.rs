// SPDX-License-Identifier: Apache-2.0
//! A set of positions, in eight bytes.
//!
//! Knows nothing of what is at a position.

/// Some of the first 64 positions.
#[derive(Debug, Default)]
pub(super) struct Places(u64);

impl Places {
    /// Adds a position. Returns false if it is none of the first 64.
    #[inline]
    pub(super) const fn insert(&mut self, at: usize) -> bool {
        if at >= u64::BITS as usize {
            return false;
        }
        self.0 |= 1 << at;
        true
    }

    /// Removes the lowest position and returns it.
    #[inline]
    pub(super) const fn pop(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let at = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_position_comes_out_once() {
        let mut places = Places::default();
        for at in [63, 0, 17, 0] {
            assert!(places.insert(at), "{at}");
        }
        assert!(!places.insert(64));
        let all: Vec<_> = std::iter::from_fn(|| places.pop()).collect();
        assert_eq!(all, [0, 17, 63]);
    }
}
