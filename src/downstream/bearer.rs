// SPDX-License-Identifier: Apache-2.0
//! Who makes a call: what its connection says, and the token that it brings along.
//!
//! Owns the counts of those that are refused for that, the log lines about them, and that a connection whose tokens are refused must
//! wait. Knows nothing of what makes a token good.

use http::HeaderMap;
use tonic::Status;

use super::portion::Allotment;
use super::shared::Shared;
use crate::clock;
use crate::identity::{Gap, Identity};
use crate::telemetry::LinePaces;
use crate::token::TokenFault;
use crate::wire::Peer;

/// The log lines about refused tokens and identities: by kind, and by the issuer, if it is a known one.
#[derive(Debug, Default)]
pub struct TokenLog(LinePaces);

/// A call that is refused because of who makes it.
pub(super) struct Unidentified {
    /// What the client is told.
    why: String,
    line: Option<Box<RefusedLine>>,
}

/// The line about such a call, but for who the client says it is.
struct RefusedLine {
    peer: Peer,
    issuer: Option<String>,
    fault: BearerFault,
    suppressed: u64,
}

/// Why it is not known who makes a call.
#[derive(Debug, thiserror::Error)]
enum BearerFault {
    #[error("the token of the call is refused: {0}")]
    Token(TokenFault),
    #[error("the client of the call is refused: {0}")]
    Gap(Gap),
    #[error(
        "the listener requires an identity (`require: identity`), and an address alone is none: show a certificate, or send a \
         token (`authorization: Bearer TOKEN`)"
    )]
    Missing,
}

impl BearerFault {
    /// Returns the fault as one word, for the metric.
    fn reason(&self) -> &'static str {
        match self {
            Self::Token(fault) => fault.reason(),
            Self::Gap(gap) => gap.reason(),
            Self::Missing => "missing",
        }
    }

    /// Counts it, and returns the refusal of the call.
    fn refusal(self, shared: &Shared, connection: &Allotment, issuer: Option<String>) -> Unidentified {
        let reason = self.reason();
        match self {
            Self::Token(_) => shared.metrics.arrivals.token(reason),
            Self::Gap(_) | Self::Missing => shared.metrics.arrivals.identity(reason),
        }
        let why = self.to_string();
        let suppressed = shared
            .token_log
            .0
            .admit(&[reason, issuer.as_deref().unwrap_or_default()], clock::now());
        let line = suppressed.map(|suppressed| {
            Box::new(RefusedLine {
                peer: *connection.guest.peer(),
                issuer,
                fault: self,
                suppressed,
            })
        });
        Unidentified { why, line }
    }
}

impl Unidentified {
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
            match fault {
                BearerFault::Token(fault) => {
                    tracing::warn!(node, %peer, issuer, reason, suppressed, "a client is refused because of its token: {fault}");
                }
                BearerFault::Gap(_) | BearerFault::Missing => {
                    tracing::warn!(node, %peer, reason, suppressed, "a client is refused: {fault}");
                }
            }
        }
        self.why
    }
}

/// Returns who makes a call on this connection: what the connection says, and what the call's token says. Without a token that is
/// the connection's identity.
///
/// # Errors
/// Says what is wrong with the token or the identity, or how long no token of the connection is looked at.
pub(super) fn identified(
    shared: &Shared,
    connection: &Allotment,
    headers: &HeaderMap,
) -> Result<Identity, Unidentified> {
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
        return Err(Unidentified { why, line: None });
    }
    let identity = match shared.tokens.of(headers, &connection.identity) {
        None => connection.identity.clone(),
        Some(Ok(identity)) => {
            arrivals.token("good");
            connection.lockout.note_good(clock::now());
            identity
        }
        Some(Err(fault)) => {
            connection.lockout.note_refused(clock::now());
            let issuer = shared.tokens.known_issuer(headers);
            return Err(BearerFault::Token(fault).refusal(shared, connection, issuer));
        }
    };
    let refused = |fault: BearerFault| fault.refusal(shared, connection, None);
    identity
        .knows(&shared.tokens.named())
        .map_err(|gap| refused(BearerFault::Gap(gap)))?;
    if connection.entrance.requires_identity() && !identity.is_proven() {
        return Err(refused(BearerFault::Missing));
    }
    Ok(identity)
}

/// S-11: whether a client is still known as far as the configuration names it.
///
/// # Errors
/// It is not; its stream must end.
pub(super) fn known(shared: &Shared, identity: &Identity) -> Result<(), Status> {
    identity.knows(&shared.tokens.named()).map_err(|gap| {
        shared.metrics.arrivals.identity(gap.reason());
        match gap {
            Gap::Lost(_) => Status::unauthenticated(gap.to_string()),
            Gap::Unread => Status::unavailable(gap.to_string()),
        }
    })
}
