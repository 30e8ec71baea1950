//! Who asks at the admin address, and whether that is allowed.
//!
//! Owns what a visitor has proved, and which requests need no right. The rules decide; they are in the configuration.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::serve::IncomingStream;
use tokio::net::{TcpListener, UnixListener};

use super::secured::Secured;
use super::{reflection, status};
use crate::config::{AdminAction, AdminDenied, AdminRules};
use crate::identity::{Identity, certified};
use crate::token::{TokenFault, Tokens};

/// What decides about visitors.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// The rules as they are now.
    pub rules: Arc<ArcSwap<AdminRules>>,
    /// The checks of tokens.
    pub tokens: Tokens,
}

/// Who has connected.
#[derive(Clone, Debug)]
pub(super) struct Visitor(Identity);

/// Probes come from those who have nothing to show, such as a kubelet, and tell no more than a connection that is accepted.
const PROBES: [&str; 4] = ["/live", "/healthz", "/ready", "/healthz/ready"];

/// Lets a request pass if the rules allow it.
pub(super) async fn pass(
    State(guard): State<Guard>,
    ConnectInfo(Visitor(known)): ConnectInfo<Visitor>,
    request: Request,
    next: Next,
) -> Response {
    let reads = [Method::GET, Method::HEAD].contains(request.method()) || only_looks(request.uri().path());
    let rules = guard.rules.load_full();
    let path = request.uri().path();
    if rules.is_empty() || reads && PROBES.contains(&path) {
        return next.run(request).await;
    }
    let identity = match guard.tokens.of(request.headers()) {
        None => known,
        Some(Ok(texts)) => known.with(texts),
        Some(Err(fault)) => return not_believed(&fault),
    };
    let action = if reads { AdminAction::Read } else { AdminAction::Change };
    let texts: Vec<&str> = identity.texts().collect();
    if let Err(denied) = rules.decide(&texts, action) {
        tracing::debug!(%identity, path, %denied, "a visitor of the admin address is refused");
        return refusal(&identity, action, &denied);
    }
    if action == AdminAction::Change {
        tracing::info!(%identity, path, "a visitor of the admin address gives an order");
    }
    next.run(request).await
}

/// Whether a request with this path only looks at something, whatever its method.
fn only_looks(path: &str) -> bool {
    status::only_looks(path) || reflection::only_looks(path)
}

fn not_believed(fault: &TokenFault) -> Response {
    let why = format!("the token of the request is refused: {fault}\n");
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], why).into_response()
}

fn refusal(identity: &Identity, action: AdminAction, denied: &AdminDenied) -> Response {
    let word = action.word();
    let who = match identity.texts().next() {
        Some(_) => identity.to_string(),
        None => "a visitor without an identity".to_owned(),
    };
    let why = format!(
        "{who} may not {word} anything here: {denied}; add `{word}` to the `allow` of a rule with one of these in `identities`\n"
    );
    (StatusCode::FORBIDDEN, why).into_response()
}

impl Connected<IncomingStream<'_, TcpListener>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Self(Identity::of_address(Some(stream.remote_addr().ip())))
    }
}

impl Connected<IncomingStream<'_, Secured>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, Secured>) -> Self {
        let identity = Identity::of_address(Some(stream.remote_addr().ip()));
        let (_, session) = stream.io().get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        Self(identity.with(certificate.map(|shown| certified(shown).texts).unwrap_or_default()))
    }
}

impl Connected<IncomingStream<'_, UnixListener>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        let credentials = stream.io().peer_cred().ok();
        let texts = credentials.map(|by| [format!("uid:{}", by.uid()), format!("gid:{}", by.gid())]);
        Self(texts.into_iter().flatten().collect())
    }
}
