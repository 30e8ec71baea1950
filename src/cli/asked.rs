// SPDX-License-Identifier: Apache-2.0
//! A server that a command is told to ask. Owns how its address is written, what is shown to it besides, and that commands which ask are
//! silent. Sends nothing.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context as _, Error};
use clap::{Args, ValueEnum};
use http::uri::Authority;
use http::{HeaderName, HeaderValue};
use tokio::runtime::Runtime;

use super::Misuse;
use crate::config::{CertificateFiles, Credentials, Endpoint, Grpc, LogFilter, Rejections, Supply, Tls, Transport};
use crate::get::{AskedPeer, header};
use crate::proto::envoy::config::core::v3::Node;
use crate::telemetry::{LogFormat, ProcessLog};

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

/// How a server is asked if it is the only one.
#[derive(Clone, Debug, Args)]
pub(super) struct Alone {
    /// delta (with a second attempt in sotw if the server does not support delta), or sotw
    #[arg(long, value_enum, default_value_t = Dialect::Delta)]
    dialect: Dialect,
    #[command(flatten)]
    manner: Manner,
    /// Use TLS, as https:// does
    #[arg(long)]
    tls: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Dialect {
    Sotw,
    Delta,
}

/// The files for TLS towards what a command asks.
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
    /// Whether there are any, so that TLS is meant.
    pub(super) const fn is_given(&self) -> bool {
        self.ca.is_some() || self.cert.is_some()
    }

    /// Returns TLS with these files.
    pub(super) fn settings(&self) -> Tls {
        let identity = self.cert.clone().zip(self.key.clone());
        let identity = identity.map(|(certificate_file, private_key_file)| CertificateFiles {
            certificate_file,
            private_key_file,
        });
        Tls {
            authorities: self.ca.clone().map(Supply::Files),
            server_name: None,
            spiffe_id: None,
            identity: identity.map(Supply::Files),
        }
    }

    /// Returns these files, if any is given.
    pub(super) fn of(ca: &Option<PathBuf>, cert: &Option<PathBuf>, key: &Option<PathBuf>) -> Option<Self> {
        let [ca, cert, key] = [ca, cert, key].map(Clone::clone);
        Some(Self { ca, cert, key }).filter(Self::is_given)
    }
}

/// Returns what runs a command that asks. The error at the end is for the user: the log is off unless `RUST_LOG` asks for it.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    let level = std::env::var("RUST_LOG").ok().filter(|level| !level.is_empty());
    let filter = LogFilter::parse(level.as_deref().unwrap_or("off")).map_err(Error::msg)?;
    drop(ProcessLog::start(filter.as_str(), LogFormat::Text)?);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().context("cannot start")
}

impl Alone {
    /// Returns the server at an address, which is asked as this node.
    pub(super) fn peer(&self, server: &ServerAddress, node: Node) -> Result<AskedPeer, Misuse> {
        let transport = match self.dialect {
            Dialect::Delta => Transport::Delta,
            Dialect::Sotw => Transport::Sotw,
        };
        self.manner.peer(server, self.tls, transport, node)
    }
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
    ) -> Result<AskedPeer, Misuse> {
        let ServerAddress {
            text,
            endpoint,
            tls: scheme,
        } = server;
        let asked = tls || self.files.is_given();
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
        let credentials = match tls {
            true => Credentials::Tls(self.files.settings()),
            false => Credentials::Insecure,
        };
        Ok(AskedPeer {
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
