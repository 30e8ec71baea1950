// SPDX-License-Identifier: Apache-2.0
//! A call that is refused because of who makes it.
//!
//! Owns how long such a call may take to say who it is, for the log. Its word is not checked, and it is not served.

use std::time::Duration;

use tonic::Status;

use crate::clock;
use crate::downstream::bearer::Unidentified;
use crate::downstream::settings::ConnectionSettings;
use crate::downstream::shared::Shared;
use crate::downstream::stream::{ClientRequests, first_node};
use crate::xds::Dialect;

/// Clients send their first request with the head of the call, or at once after it.
pub(in crate::downstream) const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// Returns how the call ends, after its first request if the log gets a line about it.
pub(super) async fn status(
    refused: Unidentified,
    requests: ClientRequests,
    dialect: Dialect,
    shared: &Shared,
    settings: &ConnectionSettings,
) -> Status {
    let node = match refused.is_logged() {
        true => clock::timeout(FIRST_REQUEST, first_node(requests, dialect, shared, settings))
            .await
            .flatten(),
        false => None,
    };
    Status::unauthenticated(refused.say(node.as_deref()))
}
