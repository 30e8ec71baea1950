// SPDX-License-Identifier: Apache-2.0
//! How the relay authenticates to a control plane for one view: TLS, the relay's certificate, and a token.
//!
//! Owns the rule that a token is never sent without TLS (A97). Does not read files before a connection needs them.

use std::path::PathBuf;
use std::sync::Arc;

use super::channel::Channel;
use super::connect;
use super::failure::Failure;
use super::target::{ServerTarget, UpstreamSettings};
use super::token::ServerToken;
use crate::config::{CertificateFiles, Credentials, Supply, Tls};

/// How the relay authenticates to a control plane.
#[derive(Debug)]
pub(super) struct ServerAccess {
    pub(super) credentials: Credentials,
    pub(super) token: Option<Arc<ServerToken>>,
}

/// The files that a class of clients uses instead of those in the server's entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassFiles {
    /// The certificate and its key.
    pub identity: Option<CertificateFiles>,
    /// The token.
    pub token: Option<PathBuf>,
}

impl ServerAccess {
    /// Returns the access that the server's entry configures.
    pub(super) fn of_server(credentials: &Credentials, token: Option<&PathBuf>) -> Arc<Self> {
        let token = match credentials {
            Credentials::Tls(_) => token.map(|path| Arc::new(ServerToken::new(path))),
            Credentials::Insecure => None,
        };
        Arc::new(Self {
            credentials: credentials.clone(),
            token,
        })
    }

    /// Connects once, to check that the server can be reached.
    pub(super) async fn meet(
        &self,
        target: &ServerTarget,
        settings: &UpstreamSettings,
        by_class: bool,
    ) -> Result<(), Failure> {
        if by_class && !self.identifies() {
            let grpc = &target.grpc;
            connect::reach(&grpc.endpoint, settings.keepalive).await
        } else {
            Channel::open(target, self, settings).await.map(drop)
        }
    }

    /// Whether the relay can authenticate without the files of a class: it has a certificate of its own, or TLS is off.
    pub(super) const fn identifies(&self) -> bool {
        match &self.credentials {
            Credentials::Tls(tls) => tls.identity.is_some(),
            Credentials::Insecure => true,
        }
    }

    /// Returns this access, with the files of a class in place of its own. K-29: without TLS the files are not used.
    pub(super) fn for_class(self: &Arc<Self>, files: Option<ClassFiles>) -> Arc<Self> {
        let (Some(files), Credentials::Tls(tls)) = (files, &self.credentials) else {
            return self.clone();
        };
        let token = files.token.map(|path| Arc::new(ServerToken::new(&path)));
        Arc::new(Self {
            credentials: Credentials::Tls(Tls {
                identity: files.identity.map(Supply::Files).or_else(|| tls.identity.clone()),
                ..tls.clone()
            }),
            token: token.or_else(|| self.token.clone()),
        })
    }
}
