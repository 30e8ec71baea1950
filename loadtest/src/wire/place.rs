// SPDX-License-Identifier: Apache-2.0
//! The address of a server as a user writes it: `host:port`, `http://host:port` or `https://host:port`; and which certificates
//! clients trust there.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use http::uri::Authority;

use crate::wire::credentials::{ClientAuthority, Credentials};
use crate::wire::pattern::Pattern;
use crate::wire::tls::Secure;

/// The heading of these flags in the help.
pub(crate) const SERVER: &str = "Which server";

/// A server that this program did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) secure: bool,
    authority: Authority,
}

/// The server that connections are made to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) server: SocketAddr,
    /// The `:authority` of requests.
    pub(crate) authority: Arc<str>,
    pub(crate) tls: Option<Arc<Secure>>,
}

/// For `https://`: which certificates to trust, and which one to present.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = SERVER)]
pub(crate) struct Trust {
    /// For https://: a PEM file with the CA certificates to trust; default: those that the system trusts.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// For https://: a PEM file with the certificate that clients present; the path may have the number of the client in it.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<Pattern>,
    /// A PEM file with the private key of --cert; may have the number in it.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<Pattern>,
    /// For https://: a PEM file with the certificate of a CA that signs a certificate for each client, good for an hour.
    #[arg(long, value_name = "FILE", requires_all = ["client_ca_key", "client_name"], conflicts_with = "cert")]
    client_ca: Option<PathBuf>,
    /// A PEM file with the private key of --client-ca.
    #[arg(long, value_name = "FILE", requires = "client_ca")]
    client_ca_key: Option<PathBuf>,
    /// The name in each certificate that --client-ca signs, a URI or a DNS name; may have the number of the client in it.
    #[arg(long, value_name = "NAME", requires = "client_ca")]
    client_name: Option<Pattern>,
    /// For https://: the name that the server's certificate must have; default: the host of the address.
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || format!("expected host:port, http://host:port or https://host:port, not `{text}`");
        let (secure, rest) = match text.split_once("://") {
            None => (false, text),
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some(_) => return Err(fault()),
        };
        let authority: Authority = rest.parse().map_err(|_| fault())?;
        match authority.port_u16() {
            Some(_) => Ok(Self { secure, authority }),
            None => Err(fault()),
        }
    }
}

impl Place {
    /// Returns the URI as a relay's configuration wants it.
    pub(crate) fn uri(&self) -> String {
        format!("{}://{}", if self.secure { "https" } else { "http" }, self.authority)
    }

    /// Returns the target that clients connect to.
    pub(crate) async fn target(&self, trust: &Trust, resumes: bool) -> anyhow::Result<Target> {
        let unknown = || format!("cannot resolve {}", self.authority);
        let mut found = tokio::net::lookup_host(self.authority.as_str())
            .await
            .with_context(unknown)?;
        let server: SocketAddr = found.next().with_context(unknown)?;
        let tls = match self.secure {
            false => None,
            true => {
                let host = self.authority.host().trim_matches(['[', ']']);
                let name = trust.server_name.as_deref().unwrap_or(host);
                Some(Secure::new(trust.ca.as_deref(), name, trust.shows()?, resumes)?)
            }
        };
        Ok(Target {
            server,
            authority: Arc::from(self.authority.as_str()),
            tls,
        })
    }
}

impl Target {
    /// A server on this machine.
    pub(crate) fn local(server: SocketAddr, tls: Option<Arc<Secure>>) -> Self {
        let authority = server.to_string().into();
        Self { server, authority, tls }
    }
}

impl Trust {
    /// Fails if TLS options are given for a place without TLS.
    pub(crate) fn check(&self, place: Option<&Place>) -> anyhow::Result<()> {
        let given = self.ca.is_some() || self.cert.is_some() || self.client_ca.is_some() || self.server_name.is_some();
        if given && !place.is_some_and(|place| place.secure) {
            bail!("--ca, --cert, --key, --client-ca and --server-name need a --server or --upstream with https://");
        }
        Ok(())
    }

    fn shows(&self) -> anyhow::Result<Credentials> {
        if let (Some(certificate), Some(key)) = (self.cert.clone(), self.key.clone()) {
            return Ok(Credentials::Files { certificate, key });
        }
        match (&self.client_ca, &self.client_ca_key, self.client_name.clone()) {
            (Some(certificate), Some(key), Some(names)) => {
                let authority = ClientAuthority::read(certificate, key, names);
                Ok(Credentials::Signed(Box::new(authority.context("--client-ca")?)))
            }
            _ => Ok(Credentials::None),
        }
    }

    /// Whether certificates are signed here, so that a relay has no file of its own.
    pub(crate) const fn signs(&self) -> bool {
        self.client_ca.is_some()
    }

    /// Returns the same for a relay's control plane, and the token, as text of the relay's configuration; none if the URI is enough. A
    /// relay has what the first client would have.
    pub(crate) fn credentials(&self, token: Option<&Path>) -> Option<String> {
        let first = |file: &Option<Pattern>| file.as_ref().map(|file| file.path(0));
        let files = [
            ("ca_certificate_file", self.ca.clone()),
            ("certificate_file", first(&self.cert)),
            ("private_key_file", first(&self.key)),
        ];
        let given = files
            .iter()
            .filter_map(|(key, file)| Some(format!("{key}: '{}'", file.as_ref()?.display())));
        let given: Vec<_> = given.collect();
        let tls = (!given.is_empty())
            .then(|| format!("channel_creds: [{{ type: tls, config: {{ {} }} }}]", given.join(", ")));
        let token = token.map(|file| {
            let file = file.display();
            format!("call_creds: [{{ type: jwt_token_file, config: {{ jwt_token_file: '{file}' }} }}]")
        });
        let both: Vec<_> = tls.into_iter().chain(token).collect();
        (!both.is_empty()).then(|| both.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_written_in_three_ways() {
        let read = |text: &str| text.parse::<Place>().map(|place| place.uri());
        assert_eq!(read("127.0.0.1:80").unwrap(), "http://127.0.0.1:80");
        assert_eq!(read("http://cp.test:80").unwrap(), "http://cp.test:80");
        assert_eq!(read("https://[::1]:443").unwrap(), "https://[::1]:443");
        for wrong in ["cp.test", "ftp://cp.test:1", "https://", "a b:1", "://a:1"] {
            assert!(read(wrong).unwrap_err().contains("expected host:port"), "{wrong}");
        }
    }
}
