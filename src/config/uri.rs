// SPDX-License-Identifier: Apache-2.0
//! The syntax of `server_uri`, and which kind of source it names. Owns that syntax; resolves nothing.

use std::path::PathBuf;

use http::uri::PathAndQuery;

use super::{Endpoint, unix};

/// A parsed URI.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Located {
    /// An xDS server with gRPC streams, and whether the scheme requires or excludes TLS.
    Grpc { endpoint: Endpoint, tls: Option<bool> },
    /// An xDS server that is polled over REST.
    Rest {
        endpoint: Endpoint,
        tls: bool,
        prefix: String,
    },
    /// A file or a directory.
    Files(PathBuf),
}

/// The extensions of files of resources.
const FILES: [&str; 5] = [".yaml", ".yml", ".json", ".pb", ".pb_text"];

impl Located {
    pub(super) fn parse(uri: &str) -> Result<Self, String> {
        if let Some(rest) = uri.strip_prefix("file:") {
            return match rest.strip_prefix("//").unwrap_or(rest) {
                path if path.starts_with('/') && path.len() > 1 => Ok(Self::Files(path.into())),
                _ => Err(format!(
                    "`{uri}` lacks an absolute path; write file:///etc/xds.yaml, or ./xds.yaml without a scheme"
                )),
            };
        }
        // gRPC writes abstract names with a scheme of their own.
        let named = uri.strip_prefix("unix-abstract:").map(|name| format!("@{name}"));
        if let Some(rest) = named.as_deref().or_else(|| uri.strip_prefix("unix:")) {
            let path = unix::path(rest.strip_prefix("//").unwrap_or(rest));
            let path = path
                .map_err(|lack| format!("`{uri}` {lack}; write unix:/run/control-plane.sock or unix:@control-plane"))?;
            let endpoint = Endpoint::Unix(path);
            return Ok(Self::Grpc { endpoint, tls: None });
        }
        match uri.split_once("://") {
            Some(("dns", rest)) => grpc(uri, rest.strip_prefix('/').unwrap_or_default(), None),
            Some(("http", rest)) => grpc(uri, rest.strip_suffix('/').unwrap_or(rest), Some(false)),
            Some(("https", rest)) => grpc(uri, rest.strip_suffix('/').unwrap_or(rest), Some(true)),
            Some(("rest+http", rest)) => rest_server(uri, rest, false),
            Some(("rest+https", rest)) => rest_server(uri, rest, true),
            Some((scheme, _)) => Err(format!(
                "`{uri}` has the unknown scheme `{scheme}`; write host:port, dns:///host:port, unix:/path, \
                 http://host:port, https://host:port, rest+http://host:port, rest+https://host:port or file:///path"
            )),
            None if is_path(uri) => Ok(Self::Files(uri.into())),
            None => grpc(uri, uri, None),
        }
    }
}

/// Reads `https://host:port/path?query`: the server, and what to ask it for.
pub(super) fn https(uri: &str) -> Result<(Endpoint, PathAndQuery), String> {
    let bad =
        || format!("`{uri}` is not an address of HTTPS; write such as https://kubernetes.default.svc/openid/v1/jwks");
    let rest = uri.strip_prefix("https://").ok_or_else(bad)?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (host, port) = host_and_port(authority, Some(443)).ok_or_else(bad)?;
    let path = match path {
        "" => PathAndQuery::from_static("/"),
        // A fragment is never sent.
        path if path.contains('#') => return Err(bad()),
        path => path.parse().map_err(|_| bad())?,
    };
    Ok((Endpoint::Tcp { host, port }, path))
}

/// Whether this is a path without a scheme: it has a slash before any colon, or the extension of a file of resources.
fn is_path(uri: &str) -> bool {
    let first = uri.split('/').next().unwrap_or_default();
    let slash = first.len() < uri.len() && !first.contains(':');
    slash || FILES.iter().any(|ending| uri.ends_with(ending))
}

fn grpc(uri: &str, authority: &str, tls: Option<bool>) -> Result<Located, String> {
    let endpoint = endpoint(uri, authority, tls)?;
    Ok(Located::Grpc { endpoint, tls })
}

fn rest_server(uri: &str, rest: &str, tls: bool) -> Result<Located, String> {
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-._~%:@".contains(c);
    if !path.chars().all(plain) {
        return Err(format!(
            "`{uri}` has more than a path after its host; write rest+http://host:port/prefix"
        ));
    }
    Ok(Located::Rest {
        endpoint: endpoint(uri, authority, Some(tls))?,
        tls,
        prefix: path.trim_end_matches('/').to_owned(),
    })
}

fn endpoint(uri: &str, authority: &str, tls: Option<bool>) -> Result<Endpoint, String> {
    let default_port = tls.map(|tls| if tls { 443 } else { 80 });
    let (host, port) = host_and_port(authority, default_port)
        .ok_or_else(|| format!("`{uri}` is not a server; write host:port, such as cp.example.com:18000"))?;
    Ok(Endpoint::Tcp { host, port })
}

fn host_and_port(authority: &str, default_port: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (
                host,
                if port.is_empty() {
                    None
                } else {
                    Some(port.strip_prefix(':')?)
                },
            )
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let named = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    if host.is_empty() || !host.chars().all(named) {
        return None;
    }
    let port = match port {
        Some(text) => text.parse().ok().filter(|port| *port != 0)?,
        None => default_port?,
    };
    Some((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Endpoint {
        Endpoint::Tcp {
            host: host.to_owned(),
            port,
        }
    }

    #[test]
    fn every_form_of_a_server_that_streams() {
        for (uri, endpoint, tls) in [
            ("cp.example.com:18000", tcp("cp.example.com", 18000), None),
            ("dns:///cp:1", tcp("cp", 1), None),
            ("10.0.0.1:18000", tcp("10.0.0.1", 18000), None),
            ("[::1]:18000", tcp("::1", 18000), None),
            ("http://cp", tcp("cp", 80), Some(false)),
            ("http://cp:5/", tcp("cp", 5), Some(false)),
            ("https://cp", tcp("cp", 443), Some(true)),
            ("https://[::1]:5", tcp("::1", 5), Some(true)),
            ("unix:/run/cp.sock", Endpoint::Unix("/run/cp.sock".into()), None),
            ("unix:///run/cp.sock", Endpoint::Unix("/run/cp.sock".into()), None),
            ("unix:cp.sock", Endpoint::Unix("cp.sock".into()), None),
        ] {
            assert_eq!(Located::parse(uri), Ok(Located::Grpc { endpoint, tls }), "{uri}");
        }
    }

    #[test]
    fn every_form_of_the_others() {
        for (uri, path) in [
            ("file:///etc/xds.yaml", "/etc/xds.yaml"),
            ("file:/etc/xds", "/etc/xds"),
            ("/etc/xds", "/etc/xds"),
            ("./xds", "./xds"),
            ("xds/cds", "xds/cds"),
            ("xds.yaml", "xds.yaml"),
            ("a:b.json", "a:b.json"),
        ] {
            assert_eq!(Located::parse(uri), Ok(Located::Files(path.into())), "{uri}");
        }
        for (uri, port, tls, prefix) in [
            ("rest+http://cp:5", 5, false, ""),
            ("rest+http://cp:5/", 5, false, ""),
            ("rest+https://cp/xds/eu/", 443, true, "/xds/eu"),
        ] {
            let (endpoint, prefix) = (tcp("cp", port), prefix.to_owned());
            assert_eq!(
                Located::parse(uri),
                Ok(Located::Rest { endpoint, tls, prefix }),
                "{uri}"
            );
        }
    }

    #[test]
    fn what_is_no_server_uri() {
        for uri in [
            "",
            "cp",
            ":1",
            "cp:",
            "cp:0",
            "cp:65536",
            "cp:x",
            "::1:5",
            "[::1",
            "[cp]:1",
            "[::1]5",
            "unix:",
            "unix://",
            "http://cp/path",
            "http://",
            "http://user@cp:1",
            "dns:///",
            "dns://8.8.8.8/cp:1",
            "cp:1/path",
            "file:",
            "file:///",
            "file://xds.yaml",
            "rest+http://",
            "rest+http:///x",
            "rest+http://cp/?x",
            "ftp://cp:1",
        ] {
            assert!(Located::parse(uri).is_err(), "{uri}");
        }
    }
}
