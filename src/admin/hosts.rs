// SPDX-License-Identifier: Apache-2.0
//! Under which name a request reaches the admin address.
//!
//! Owns the refusal of other names: a web page may have its own name resolve to this address, and would read here what its visitor may
//! read. Does not decide who may ask.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::PathAccess;
use super::guard::Guard;
use super::orders::RequestOrigin;

/// Lets a request pass that asks for this address by a name of its own. Over TLS only those reach it who believe its certificate, and no
/// web page reaches a Unix socket. Browsers always send the header, and speak HTTP/2, which has none, only over TLS.
pub(super) async fn pass(
    State((guard, access)): State<(Guard, RequestOrigin)>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let any = matches!(super::access_of(path), PathAccess::Probe | PathAccess::Scrape);
    let free = any && [Method::GET, Method::HEAD].contains(request.method());
    if free || !matches!(access, RequestOrigin::Plain(_)) {
        return next.run(request).await;
    }
    match foreign(request.headers(), &guard) {
        None => next.run(request).await,
        Some(host) => {
            tracing::debug!(
                host,
                path,
                "a visitor of the admin address uses a name that is not its own"
            );
            let why = format!(
                "`{host}` in the Host header is no IP address, nor `localhost`, nor in `admin.hosts`; ask by an address, or add \
                 the name there\n"
            );
            (StatusCode::FORBIDDEN, why).into_response()
        }
    }
}

/// Returns the first host in the headers that is none of this address.
fn foreign(headers: &HeaderMap, guard: &Guard) -> Option<String> {
    let hosts = headers.get_all(header::HOST).iter();
    let hosts = hosts.map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
    hosts.into_iter().find(|host| {
        let (name, _) = split(host);
        !is_address(name) && !guard.is_host(name)
    })
}

/// Returns the name or the address in a `Host` header, and the port if there is one.
pub(super) fn split(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        Some(_) | None => (host, None),
    }
}

/// Whether this is an IP address as it stands in a `Host` header, or `localhost`.
pub(super) fn is_address(name: &str) -> bool {
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    match bare {
        Some(bare) => bare.parse::<std::net::Ipv6Addr>().is_ok(),
        None => name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::Ipv4Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Flags};

    #[test]
    fn names_of_its_own() {
        let guard = Guard::default();
        let config = "upstream: {xds_servers: [{server_uri: cp:1}]}\nadmin: {hosts: relay.example.com}";
        guard.set(&Config::parse(config, "relay.yaml", &Flags::default()).unwrap());
        let refused = |hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            hosts
                .iter()
                .for_each(|host| assert!(headers.append(header::HOST, host.parse().unwrap()) || host == &hosts[0]));
            foreign(&headers, &guard)
        };
        for host in [
            "127.0.0.1:9901",
            "localhost:8080",
            "LOCALHOST",
            "[::1]:9901",
            "[::1]",
            "10.1.2.3",
            "Relay.example.com:80",
        ] {
            assert_eq!(refused(&[host]), None, "{host}");
        }
        assert_eq!(refused(&[]), None, "it has no name");
        for host in [
            "evil.example:9901",
            "evil.example",
            "localhost.evil.example",
            "x.relay.example.com",
            "127.0.0.1.evil.example:9901",
            "",
            "::1",
            "relay.example.com.",
        ] {
            assert_eq!(refused(&[host]).as_deref(), Some(host));
            assert!(refused(&["127.0.0.1:9901", host]).is_some());
        }
    }
}
