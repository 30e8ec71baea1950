//! A call whose token is refused.
//!
//! Owns how long such a call may take to say who it is, for the log. Its word is not checked, and it is not served.

use std::time::Duration;

use tonic::Status;

use crate::clock;
use crate::downstream::bearer::RefusedToken;
use crate::downstream::settings::ConnectionSettings;
use crate::downstream::shared::Shared;
use crate::downstream::stream::{Requests, first_node};
use crate::xds::Dialect;

/// Clients send their first request with the head of the call, or at once after it.
pub(in crate::downstream) const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// Returns how the call ends, after its first request if the log gets a line about it.
pub(super) async fn status(
    token: RefusedToken,
    requests: Requests,
    dialect: Dialect,
    shared: &Shared,
    settings: &ConnectionSettings,
) -> Status {
    let node = match token.is_logged() {
        true => clock::timeout(FIRST_REQUEST, first_node(requests, dialect, shared, settings))
            .await
            .flatten(),
        false => None,
    };
    Status::unauthenticated(token.say(node.as_deref()))
}
