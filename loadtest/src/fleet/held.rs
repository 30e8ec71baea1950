// SPDX-License-Identifier: Apache-2.0
//! What one client holds of one resource, packed, because there is one for each client and resource.

use crate::origin::ledger::Content;

/// Which content of a resource the client holds: nothing yet, or the content with this serial, which may be the
/// resource's absence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held(u32);

impl Held {
    pub(crate) fn of(content: &Content) -> Self {
        Self((content.serial + 1) << 1 | u32::from(content.hash.is_some()))
    }

    pub(crate) const fn serial(self) -> Option<u32> {
        (self.0 >> 1).checked_sub(1)
    }

    pub(crate) const fn is_present(self) -> bool {
        self.0 & 1 == 1
    }

    /// Returns the same serial without the resource: a client that starts anew must not get older content either.
    pub(crate) const fn absent(self) -> Self {
        Self(self.0 & !1)
    }
}
