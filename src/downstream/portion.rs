// SPDX-License-Identifier: Apache-2.0
//! What one connection takes of what all connections share.
//!
//! Owns nothing itself: it holds the parts together. Knows nothing of calls.

use std::sync::Arc;

use super::admission::Guest;
use super::entrance::Entrance;
use super::lockout::Lockout;
use super::shared::Shared;
use crate::cache::Claims;
use crate::identity::Identity;
use crate::wire::Share;

/// What one connection takes of what all connections share.
pub(super) struct Allotment {
    /// Of the memory for unfinished requests.
    pub(super) share: Arc<Share>,
    /// Of the names and views.
    pub(super) claims: Arc<Claims>,
    /// Of the connections and streams that there may be.
    pub(super) guest: Arc<Guest>,
    /// Who the client is, as far as the connection says.
    pub(super) identity: Identity,
    /// The listener's entrance, which may require an identity.
    pub(super) entrance: Arc<Entrance>,
    /// What its refused tokens cost it.
    pub(super) lockout: Lockout,
}

impl Allotment {
    /// Returns the portion of a new connection.
    pub(super) fn of_a_connection(
        shared: &Shared,
        entrance: Arc<Entrance>,
        guest: Arc<Guest>,
        identity: Identity,
    ) -> Arc<Self> {
        Arc::new(Self {
            share: shared.budget.share(),
            claims: shared.scopes.claims(),
            guest,
            identity,
            entrance,
            lockout: Lockout::default(),
        })
    }
}
