//! A server that a command is told to ask. Owns how its address is written, and what is shown to it besides. Sends nothing.

use std::fmt;
use std::path::PathBuf;

use anyhow::Error;
use clap::Args;
use http::uri::Authority;
use http::{HeaderName, HeaderValue};

use super::Misuse;
use crate::config::{Credentials, Endpoint, Grpc, Identity, LogFilter, Rejections, Supply, Tls, Transport};
use crate::get::{Peer, header};
use crate::proto::envoy::config::core::v3::Node;
use crate::telemetry::{Format, Log};

/// The address of a server, as it was written.
#[derive(Clone, Debug)]
pub(super) struct ServerAddress {
    text: String,
    endpoint: Endpoint,
    /// Whether it is to be reached with TLS, if the address says that.
    tls: Option<bool>,
}

/// How a server is asked.
#[derive(Clone, Debug, Args)]
pub(super) struct Manner {
    /// A header of the request; repeat for more
    #[arg(long = "header", value_name = "KEY=VALUE", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// A file with a token that is sent with the request; only with TLS
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The name of the server in the request and for TLS [default: as in its address]
    #[arg(long, value_name = "NAME")]
    authority: Option<Authority>,
    #[command(flatten)]
    files: TlsFiles,
}

#[derive(Clone, Debug, Default, Args)]
pub(super) struct TlsFiles {
    /// PEM file of the authorities to trust [default: the system's]; means TLS
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// PEM file of the client certificate; means TLS
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// PEM file of its key
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

impl ServerAddress {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (endpoint, tls) = Endpoint::parse(text)?;
        let text = text.to_owned();
        Ok(Self { text, endpoint, tls })
    }

    /// Whether its address says that it speaks TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.tls == Some(true)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TlsFiles {
    /// Returns these files, if any is given.
    pub(super) fn of(ca: &Option<PathBuf>, cert: &Option<PathBuf>, key: &Option<PathBuf>) -> Option<Self> {
        let [ca, cert, key] = [ca, cert, key].map(Clone::clone);
        (ca.is_some() || cert.is_some()).then_some(Self { ca, cert, key })
    }
}

/// The error at the end is for the user. The log is off unless `RUST_LOG` asks for it.
pub(super) fn quiet_log() -> anyhow::Result<()> {
    let level = std::env::var("RUST_LOG").ok().filter(|level| !level.is_empty());
    let filter = LogFilter::parse(level.as_deref().unwrap_or("off")).map_err(Error::msg)?;
    drop(Log::start(filter.as_str(), Format::Text)?);
    Ok(())
}

impl Manner {
    /// Returns the manner in which a second server is asked, to which nothing is sent that is meant for the first one: with a certificate
    /// of its own, or the same if its address wants one.
    pub(super) fn of_second(
        &self,
        second: &ServerAddress,
        files: Option<TlsFiles>,
        token_file: Option<PathBuf>,
    ) -> Self {
        let same = || second.is_secure().then(|| self.files.clone());
        Self {
            headers: Vec::new(),
            token_file,
            authority: None,
            files: files.or_else(same).unwrap_or_default(),
        }
    }

    /// Returns the server at an address, which is asked as this node.
    pub(super) fn peer(
        &self,
        server: &ServerAddress,
        tls: bool,
        transport: Transport,
        node: Node,
    ) -> Result<Peer, Misuse> {
        let ServerAddress {
            text,
            endpoint,
            tls: scheme,
        } = server;
        let files = self.files.clone();
        let asked = tls || files.ca.is_some() || files.cert.is_some();
        if asked && *scheme == Some(false) {
            return Err(Misuse(format!(
                "--server: `{text}` excludes TLS, but another flag asks for it; write https:// or remove --tls, --ca and --cert"
            )));
        }
        let tls = asked || *scheme == Some(true);
        if self.token_file.is_some() && !tls {
            let words = "--token-file: a token is sent only with TLS; write --tls, or https:// in --server";
            return Err(Misuse(words.to_owned()));
        }
        let identity = files.cert.zip(files.key);
        let identity = identity.map(|(certificate_file, private_key_file)| Identity {
            certificate_file,
            private_key_file,
        });
        let credentials = if tls {
            Credentials::Tls(Tls {
                authorities: files.ca.map(Supply::Files),
                server_name: None,
                spiffe_id: None,
                identity: identity.map(Supply::Files),
            })
        } else {
            Credentials::Insecure
        };
        Ok(Peer {
            server: text.clone(),
            grpc: Grpc {
                endpoint: endpoint.clone(),
                credentials,
                token: self.token_file.clone(),
                transport,
                rejections: Rejections::Keep,
            },
            authority: self.authority.clone(),
            headers: self.headers.iter().cloned().collect(),
            node,
        })
    }
}
