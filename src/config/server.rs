//! A control plane as the configuration names it: gRPC's bootstrap entry, checked. It resolves and connects nothing.

use std::fmt;
use std::path::PathBuf;

/// One entry of `xds_servers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The URI as it was written, for logs and metrics.
    pub uri: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// How the connection is protected.
    pub credentials: Credentials,
    /// What the server says of itself.
    pub features: ServerFeatures,
    /// Which dialect it is asked in.
    pub transport: Transport,
}

/// Where a control plane is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A host, name or IP, whose addresses are all tried.
    Tcp {
        /// Without the brackets of an IPv6 literal.
        host: String,
        /// Never 0.
        port: u16,
    },
    /// A Unix domain socket.
    Unix(PathBuf),
}

/// How the connection to a control plane is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// Not at all.
    Insecure,
    /// TLS.
    Tls {
        /// PEM file of the authorities to trust instead of the system's.
        ca_certificate_file: Option<PathBuf>,
    },
}

/// The `server_features` that change what the relay does; the others of gRPC are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFeatures {
    /// Data errors drop what is cached.
    pub fail_on_data_errors: bool,
    /// The server reports errors itself, so that silence is no answer (G-14).
    pub resource_timer_is_transient_error: bool,
}

/// Which dialect a control plane is asked in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Incremental, and state of the world when the server cannot.
    #[default]
    Delta,
    /// State of the world.
    Sotw,
}

impl Endpoint {
    /// The endpoint, and whether the scheme itself decides for or against TLS.
    pub(super) fn parse(uri: &str) -> Result<(Self, Option<bool>), String> {
        if let Some(rest) = uri.strip_prefix("unix:") {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            if path.is_empty() {
                return Err(format!("`{uri}` lacks a path; write unix:/run/control-plane.sock"));
            }
            return Ok((Self::Unix(path.into()), None));
        }
        let (authority, tls, default_port) = if let Some(rest) = uri.strip_prefix("dns:///") {
            (rest, None, None)
        } else if let Some(rest) = uri.strip_prefix("http://") {
            (rest.strip_suffix('/').unwrap_or(rest), Some(false), Some(80))
        } else if let Some(rest) = uri.strip_prefix("https://") {
            (rest.strip_suffix('/').unwrap_or(rest), Some(true), Some(443))
        } else if let Some((scheme, _)) = uri.split_once("://") {
            return Err(format!(
                "`{uri}` has the unknown scheme `{scheme}`; write host:port, dns:///host:port, unix:/path, \
                 http://host:port or https://host:port"
            ));
        } else {
            (uri, None, None)
        };
        let (host, port) = host_and_port(authority, default_port)
            .ok_or_else(|| format!("`{uri}` is not a server; write host:port, such as cp.example.com:18000"))?;
        Ok((Self::Tcp { host, port }, tls))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
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
    fn every_form_of_a_server_uri() {
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
            assert_eq!(Endpoint::parse(uri), Ok((endpoint, tls)), "{uri}");
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
            "file:///x.yaml",
            "rest+http://cp:1",
        ] {
            assert!(Endpoint::parse(uri).is_err(), "{uri}");
        }
    }
}
