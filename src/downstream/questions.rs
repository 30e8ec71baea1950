// SPDX-License-Identifier: Apache-2.0
//! Who may ask what all clients have (S-10).
//!
//! Owns that the rules are looked up at each question. Does not know what is answered.

use std::sync::Arc;

use tonic::Status;

use super::bearer::known;
use super::shared::Shared;
use crate::census::Allowed;
use crate::classes::Node;
use crate::identity::Identity;
use crate::xds::{Caller, Way};

/// What is said to everybody where nothing says who may ask.
const NO_RULES: &str =
    "the relay has no rules, and what all clients have is told only to whom a rule with `dialects: csds` allows it";

/// Returns whether a client with this identity may ask, as the rules are whenever that is asked.
pub(super) fn allowed(shared: &Arc<Shared>, identity: &Identity) -> Allowed {
    let (shared, identity) = (shared.clone(), identity.clone());
    Arc::new(move || {
        known(&shared, &identity)?;
        let texts: Vec<&str> = identity.texts().collect();
        let caller = Caller {
            identity: &texts,
            node: &Node::default(),
            way: Way::Csds,
        };
        let access = shared.settings.load().protocol.access.clone();
        if access.is_empty() {
            return Err(Status::permission_denied(NO_RULES));
        }
        let denied = |denied| Status::permission_denied(format!("{denied}; a rule with `dialects: csds` allows it"));
        access.may_ask(&caller).map_err(denied)
    })
}
