//! The token that a call brings along.
//!
//! Owns the count of tokens. Knows nothing of what makes a token good.

use http::HeaderMap;

use super::shared::Shared;
use crate::identity::Identity;

/// Returns who makes a call on this connection: what the connection says, and what the call's token says. Without a token that is
/// the connection's identity.
///
/// # Errors
/// Says what is wrong with the token.
pub(super) fn identified(shared: &Shared, connection: &Identity, headers: &HeaderMap) -> Result<Identity, String> {
    let arrivals = &shared.metrics.arrivals;
    match shared.tokens.of(headers) {
        None => Ok(connection.clone()),
        Some(Ok(texts)) => {
            arrivals.token("good");
            Ok(connection.with(texts))
        }
        Some(Err(fault)) => {
            arrivals.token(fault.reason());
            Err(format!("the token of the call is refused: {fault}"))
        }
    }
}
