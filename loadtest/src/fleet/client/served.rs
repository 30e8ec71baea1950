// SPDX-License-Identifier: Apache-2.0
//! Whether a client of another control plane is served as the others are.

use super::Client;
use super::subscription::Subscription;

impl Client {
    /// Whether anything that it asked for was ever answered.
    pub(crate) fn is_answered(&self) -> bool {
        self.subscriptions.iter().any(Subscription::is_answered)
    }

    /// Whether it asks for something, and was given nothing of all that.
    pub(crate) fn holds_nothing(&self) -> bool {
        let mut all = self.subscriptions.iter();
        self.profile.behaviour.is_steady() && all.all(|one| one.present().next().is_none())
    }

    /// Whether it lacks a change that another client has seen.
    pub(crate) fn lacks_a_change(&self) -> bool {
        self.profile.behaviour.is_steady() && self.subscriptions.iter().any(Subscription::lacks_a_change)
    }
}
