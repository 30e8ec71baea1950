//! The token that a call brings along.
//!
//! Owns the count of tokens, the log lines about those that are refused, and that a connection whose tokens are refused must wait. Knows
//! nothing of what makes a token good.

use http::HeaderMap;

use super::portion::Portion;
use super::shared::Shared;
use crate::clock;
use crate::identity::Identity;
use crate::telemetry::LinePaces;
use crate::token::TokenFault;
use crate::wire::Peer;

/// The log lines about refused tokens: by kind, and by the issuer, if it is a known one.
#[derive(Debug, Default)]
pub struct TokenLog(LinePaces);

/// A token that is refused.
pub(super) struct RefusedToken {
    /// What the client is told.
    why: String,
    line: Option<RefusedLine>,
}

/// The line about a token that is refused, but for who the client says it is.
struct RefusedLine {
    peer: Peer,
    issuer: Option<String>,
    fault: TokenFault,
    suppressed: u64,
}

impl RefusedToken {
    /// Whether the log gets a line about it. Then it is worth looking who the client says it is.
    pub(super) const fn is_logged(&self) -> bool {
        self.line.is_some()
    }

    /// Writes the line, if the log gets one. Returns what the client is told. `node` is the node's id, if it is known.
    pub(super) fn say(self, node: Option<&str>) -> String {
        if let Some(line) = self.line {
            let (node, peer) = (node.unwrap_or_default(), line.peer);
            let issuer = line.issuer.as_deref().unwrap_or("unknown");
            let (reason, suppressed, fault) = (line.fault.reason(), line.suppressed, line.fault);
            tracing::warn!(node, %peer, issuer, reason, suppressed, "a client is refused because of its token: {fault}");
        }
        self.why
    }
}

/// Returns who makes a call on this connection: what the connection says, and what the call's token says. Without a token that is
/// the connection's identity.
///
/// # Errors
/// Says what is wrong with the token, or how long no token of the connection is looked at.
pub(super) fn identified(shared: &Shared, connection: &Portion, headers: &HeaderMap) -> Result<Identity, RefusedToken> {
    let arrivals = &shared.metrics.arrivals;
    if let Some(left) = connection
        .lockout
        .left(clock::now())
        .filter(|_| shared.tokens.are_in(headers))
    {
        arrivals.token("unchecked");
        let again = left.as_millis() + 1;
        let why = format!(
            "the token of the call is not looked at: others of this connection were refused; try again in {again} ms"
        );
        return Err(RefusedToken { why, line: None });
    }
    match shared.tokens.of(headers) {
        None => Ok(connection.identity.clone()),
        Some(Ok(texts)) => {
            arrivals.token("good");
            connection.lockout.note_good(clock::now());
            Ok(connection.identity.with(texts))
        }
        Some(Err(fault)) => {
            let now = clock::now();
            arrivals.token(fault.reason());
            connection.lockout.note_refused(now);
            let issuer = shared.tokens.known_issuer(headers);
            let why = format!("the token of the call is refused: {fault}");
            let suppressed = shared
                .token_log
                .0
                .admit(&[fault.reason(), issuer.as_deref().unwrap_or_default()], now);
            let line = suppressed.map(|suppressed| RefusedLine {
                peer: *connection.guest.peer(),
                issuer,
                fault,
                suppressed,
            });
            Err(RefusedToken { why, line })
        }
    }
}
