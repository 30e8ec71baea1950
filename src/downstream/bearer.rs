//! The token that a call brings along.
//!
//! Owns the count of tokens, and that a connection whose tokens are refused must wait. Knows nothing of what makes a token good.

use http::HeaderMap;

use super::portion::Portion;
use super::shared::Shared;
use crate::clock;
use crate::identity::Identity;

/// Returns who makes a call on this connection: what the connection says, and what the call's token says. Without a token that is
/// the connection's identity.
///
/// # Errors
/// Says what is wrong with the token, or how long no token of the connection is looked at.
pub(super) fn identified(shared: &Shared, connection: &Portion, headers: &HeaderMap) -> Result<Identity, String> {
    let arrivals = &shared.metrics.arrivals;
    if let Some(left) = connection
        .lockout
        .left(clock::now())
        .filter(|_| shared.tokens.are_in(headers))
    {
        arrivals.token("unchecked");
        return Err(format!(
            "the token of the call is not looked at: others of this connection were refused; try again in {} ms",
            left.as_millis() + 1
        ));
    }
    match shared.tokens.of(headers) {
        None => Ok(connection.identity.clone()),
        Some(Ok(texts)) => {
            arrivals.token("good");
            connection.lockout.note_good(clock::now());
            Ok(connection.identity.with(texts))
        }
        Some(Err(fault)) => {
            arrivals.token(fault.reason());
            connection.lockout.note_refused(clock::now());
            Err(format!("the token of the call is refused: {fault}"))
        }
    }
}
