//! The token that a call brings along.
//!
//! Owns where it stands in the metadata, and the count of tokens. Knows nothing of what makes a token good.

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::shared::Shared;
use crate::identity::Identity;

const SCHEME: &[u8] = b"bearer ";

/// Returns who makes a call on this connection: what the connection says, and what the call's token says. Without a token that is
/// the connection's identity.
///
/// # Errors
/// Says what is wrong with the token.
pub(super) fn identified(shared: &Shared, connection: &Identity, headers: &HeaderMap) -> Result<Identity, String> {
    if shared.tokens.is_empty() {
        return Ok(connection.clone());
    }
    let values = headers.get_all(AUTHORIZATION).iter();
    let mut tokens = values.filter_map(|value| token(value.as_bytes()));
    let Some(token) = tokens.next() else {
        return Ok(connection.clone());
    };
    let arrivals = &shared.metrics.arrivals;
    if tokens.next().is_some() {
        arrivals.token("several");
        return Err("the call has several tokens in `authorization`; it may have one".to_owned());
    }
    match shared.tokens.check(token) {
        Ok(texts) => {
            arrivals.token("good");
            Ok(connection.with(texts))
        }
        Err(fault) => {
            arrivals.token(fault.reason());
            Err(format!("the token of the call is refused: {fault}"))
        }
    }
}

/// Returns the token in a value of the header. Bytes that no token has make an empty one, which is refused.
fn token(value: &[u8]) -> Option<&str> {
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    let token = std::str::from_utf8(token).unwrap_or_default();
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim())
}
