// SPDX-License-Identifier: Apache-2.0
//! The size of a response.
//!
//! Owns how much of it is used. Does not know what is in it.

use super::Name;

/// How much still fits into a response; the first item always fits.
#[derive(Debug)]
pub struct Room {
    bytes: usize,
    items: usize,
    full: bool,
    empty: bool,
}

/// How many items one response has at most. Composing a tiny one costs far more than its bytes, and other clients have their turns
/// between two responses.
const ITEMS_MAX: usize = 8192;

impl Room {
    /// Creates the room of a response of about so many bytes.
    #[must_use]
    pub const fn new(bytes: usize) -> Self {
        Self {
            bytes,
            items: ITEMS_MAX,
            full: false,
            empty: true,
        }
    }

    /// Creates the room of a response that must have everything.
    #[must_use]
    pub const fn boundless() -> Self {
        Self {
            items: usize::MAX,
            ..Self::new(usize::MAX)
        }
    }

    /// Adds an item of this weight. Returns whether it fits; after the first that does not, none does.
    pub const fn takes(&mut self, weight: usize) -> bool {
        self.full |= !self.empty && (weight > self.bytes || self.items == 0);
        if self.full {
            return false;
        }
        self.empty = false;
        self.bytes = self.bytes.saturating_sub(weight);
        self.items = self.items.saturating_sub(1);
        true
    }

    /// Whether anything did not fit.
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Adds a name without content, like [`Self::takes`].
    pub fn takes_name(&mut self, name: &Name) -> bool {
        self.takes(name.as_str().len() + 4)
    }
}
