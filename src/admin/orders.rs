// SPDX-License-Identifier: Apache-2.0
//! The operator's orders by POST, on the same paths as Envoy's.
//!
//! Owns the check that a request does not come from a web page in a browser. Does not carry out the orders.

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::forms::Asked;
use super::guard::Guard;
use super::{DrainOrder, Shown, hosts};

/// How a request has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequestOrigin {
    /// Over a Unix socket, which no web page reaches.
    Unix,
    /// Without TLS, to this port.
    Plain(u16),
    /// Over TLS.
    Tls,
}

/// Lets an order pass that no web page can have sent.
pub(super) async fn believed(
    State(guard): State<Guard>,
    Extension(access): Extension<RequestOrigin>,
    request: Request,
    next: Next,
) -> Response {
    match doubt(request.headers(), access, &guard) {
        None => next.run(request).await,
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DrainQuery {
    graceful: Option<String>,
}

pub(super) async fn drain(State(shown): State<Shown>, Asked(manner): Asked<DrainQuery>) -> &'static str {
    let graceful = manner.graceful.is_some();
    // If this fails, an order is already waiting.
    let _ = shown.order.try_send(DrainOrder { graceful });
    "OK\n"
}

pub(super) async fn fail(State(shown): State<Shown>) -> &'static str {
    shown.health.fail(true);
    "OK\n"
}

pub(super) async fn recover(State(shown): State<Shown>) -> &'static str {
    shown.health.fail(false);
    "OK\n"
}

/// Refuses a POST with a header twice by which requests are judged: it would count as one thing here, and as another elsewhere.
pub(super) async fn unambiguous(request: Request, next: Next) -> Response {
    let several = |name: &HeaderName| request.headers().get_all(name).iter().nth(1).is_some();
    let doubled = [header::HOST, header::ORIGIN].into_iter().find(several);
    match doubled.filter(|_| request.method() == Method::POST) {
        None => next.run(request).await,
        Some(name) => {
            let why = format!("the request has several `{name}` headers; send one\n");
            (StatusCode::BAD_REQUEST, why).into_response()
        }
    }
}

/// Returns why a request may come from a web page. A page cannot choose the `Host` header. An attacker can make a host name
/// resolve to this address, but cannot do that with an IP address or a name of the operator's, nor have a certificate for that name here.
fn doubt(headers: &HeaderMap, access: RequestOrigin, guard: &Guard) -> Option<&'static str> {
    let (scheme, port) = match access {
        RequestOrigin::Unix => return None,
        RequestOrigin::Plain(port) => ("http://", Some(port)),
        RequestOrigin::Tls => ("https://", None),
    };
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).filter(|host| port.is_none_or(|port| is_own(host, port, guard)));
    let Some(host) = host else {
        return Some(
            "the Host header must be the admin address: an IP address or localhost, and the port; or a name in `admin.hosts`\n",
        );
    };
    let foreign = headers.contains_key(header::ORIGIN)
        && text(header::ORIGIN).is_none_or(|origin| origin.strip_prefix(scheme) != Some(host));
    foreign.then_some("the Origin header names another site\n")
}

/// A name of the operator's may lead here by another port, an address only by this one.
fn is_own(host: &str, port: u16, guard: &Guard) -> bool {
    let (name, given) = hosts::split(host);
    let given = given.map_or(Some(80), |given| given.parse().ok());
    hosts::is_address(name) && given == Some(port) || guard.is_host(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_believed() {
        let doubted = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            origin
                .into_iter()
                .for_each(|origin| drop(headers.insert(header::ORIGIN, origin.parse().unwrap())));
            doubt(&headers, RequestOrigin::Plain(9901), &Guard::default()).is_some()
        };
        for host in ["127.0.0.1:9901", "localhost:9901", "[::1]:9901", "10.1.2.3:9901"] {
            assert!(!doubted(host, None), "{host}");
            assert!(!doubted(host, Some(&format!("http://{host}"))), "{host}");
            assert!(
                doubted(host, Some("http://evil.example")) && doubted(host, Some("null")),
                "{host}"
            );
        }
        for host in [
            "evil.example:9901",
            "127.0.0.1:80",
            "127.0.0.1",
            "[::1]",
            "::1:9901",
            "relay",
            "",
        ] {
            assert!(doubted(host, None), "{host}");
        }
        assert!(doubt(&HeaderMap::new(), RequestOrigin::Plain(9901), &Guard::default()).is_some());
        assert!(doubt(&HeaderMap::new(), RequestOrigin::Unix, &Guard::default()).is_none());
    }

    #[test]
    fn who_is_believed_over_tls() {
        let mut headers = HeaderMap::new();
        assert!(doubt(&headers, RequestOrigin::Tls, &Guard::default()).is_some());
        headers.insert(header::HOST, "relay.example.com".parse().unwrap());
        assert!(doubt(&headers, RequestOrigin::Tls, &Guard::default()).is_none());
        for (origin, doubted) in [
            ("https://relay.example.com", false),
            ("http://relay.example.com", true),
            ("https://evil.example", true),
        ] {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
            assert_eq!(
                doubt(&headers, RequestOrigin::Tls, &Guard::default()).is_some(),
                doubted,
                "{origin}"
            );
        }
    }
}
