// SPDX-License-Identifier: Apache-2.0
//! Who asks at the admin address, and whether that is allowed.
//!
//! Owns what a visitor has proved, and which requests need no right. The rules decide; they are in the configuration.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::IntoResponse as _;
use rustls_pki_types::CertificateDer;
use tokio::net::UnixStream;

use super::PathAccess;
use super::forms::{Answered, Refused};
use super::tenure::Credential;
use crate::config::{AdminAction, AdminDenied, AdminHosts, AdminRules, Config};
use crate::identity::{Identity, certified};
use crate::token::Tokens;

/// What decides about visitors.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// The rules as they are now.
    pub rules: Arc<ArcSwap<AdminRules>>,
    /// The names under which the address is reached.
    pub hosts: Arc<ArcSwap<AdminHosts>>,
    /// The checks of tokens.
    pub tokens: Tokens,
}

impl Guard {
    /// Nothing is ruled yet.
    #[must_use]
    pub fn new(tokens: Tokens) -> Self {
        Self {
            tokens,
            ..Self::default()
        }
    }

    /// From now on this configuration counts.
    pub fn set(&self, config: &Config) {
        self.rules.store(Arc::new(config.admin_rules.clone()));
        self.hosts.store(Arc::new(config.admin_hosts.clone()));
    }

    /// Whether this is a name under which the address is reached.
    pub(super) fn is_host(&self, name: &str) -> bool {
        self.hosts.load().has(name)
    }
}

/// Who has connected.
#[derive(Clone, Debug)]
pub(super) struct Visitor(Identity);

/// Lets a request pass if the rules allow it.
pub(super) async fn pass(
    State(guard): State<Guard>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
    next: Next,
) -> Answered {
    let path = request.uri().path();
    let access = super::access_of(path);
    let reads = [Method::GET, Method::HEAD].contains(request.method()) || access.is_question();
    if reads && access == PathAccess::Probe {
        return Ok(next.run(request).await);
    }
    let action = if reads { AdminAction::Read } else { AdminAction::Change };
    let shown = Credential::new(guard.clone(), visitor.clone(), request.headers(), action);
    if guard.rules.load().is_empty() {
        return Ok(shown.bound(next.run(request).await));
    }
    let identity = judge(&guard, &visitor, request.headers(), action)?;
    if action == AdminAction::Change {
        tracing::info!(%identity, path, "a visitor of the admin address gives an order");
    }
    Ok(shown.bound(next.run(request).await))
}

/// Returns who a visitor is, if the rules let it do this.
pub(super) fn judge(
    guard: &Guard,
    Visitor(known): &Visitor,
    headers: &HeaderMap,
    action: AdminAction,
) -> Result<Identity, Refused> {
    let identity = match guard.tokens.of(headers, known) {
        None => known.clone(),
        Some(Ok(identity)) => identity,
        Some(Err(fault)) => return Err(not_believed(&format!("the token of the request is refused: {fault}"))),
    };
    if let Err(gap) = identity.knows(&guard.tokens.named()) {
        return Err(not_believed(&gap.to_string()));
    }
    let texts: Vec<&str> = identity.texts().collect();
    match guard.rules.load().decide(&texts, action) {
        Ok(_) => Ok(identity),
        Err(denied) => {
            tracing::debug!(%identity, action = action.word(), %denied, "a visitor of the admin address is refused");
            Err(refusal(&identity, action, &denied))
        }
    }
}

fn not_believed(why: &str) -> Refused {
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, challenge, format!("{why}\n"))
        .into_response()
        .into()
}

fn refusal(identity: &Identity, action: AdminAction, denied: &AdminDenied) -> Refused {
    let word = action.word();
    let who = match identity.texts().next() {
        Some(_) => identity.to_string(),
        None => "a visitor without an identity".to_owned(),
    };
    let why = format!(
        "{who} may not {word} anything here: {denied}; add `{word}` to the `allow` of a rule with one of these in `identities`\n"
    );
    Refused::new(StatusCode::FORBIDDEN, why)
}

impl From<SocketAddr> for Visitor {
    fn from(peer: SocketAddr) -> Self {
        Self(Identity::of_address(Some(peer.ip())))
    }
}

impl Visitor {
    /// Returns who it is, as far as that was checked.
    pub(super) const fn identity(&self) -> &Identity {
        &self.0
    }

    /// A visitor over a Unix socket.
    pub(super) fn local(socket: &UnixStream) -> Self {
        let credentials = socket.peer_cred().ok();
        let texts = credentials.map(|by| [format!("uid:{}", by.uid()), format!("gid:{}", by.gid())]);
        Self(texts.into_iter().flatten().collect())
    }

    /// The same visitor, who has shown this chain of certificates.
    pub(super) fn certified(&self, chain: Option<&[CertificateDer<'_>]>) -> Self {
        let certificate = chain.and_then(<[_]>::first);
        Self(match certificate {
            Some(shown) => self.0.certified(&certified(shown)),
            None => self.0.clone(),
        })
    }
}
