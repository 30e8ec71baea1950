//! With what a control plane is approached for one view: how the connection is protected, as whom, and with which token.
//!
//! Owns that a token never travels without TLS (A97). Refuses to read files before a connection needs them.

use std::path::PathBuf;
use std::sync::Arc;

use super::channel::Channel;
use super::connect;
use super::failure::Failure;
use super::target::{Target, UpstreamSettings};
use super::token::Token;
use crate::config::{Credentials, Identity, Tls};

/// With what a control plane is approached.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) credentials: Credentials,
    pub(super) token: Option<Arc<Token>>,
}

/// The files that a class of clients has instead of those of the server's entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassFiles {
    /// The certificate and its key.
    pub identity: Option<Identity>,
    /// The token.
    pub token: Option<PathBuf>,
}

impl Access {
    /// As the server's entry says.
    pub(super) fn of_server(credentials: &Credentials, token: Option<&PathBuf>) -> Arc<Self> {
        let token = match credentials {
            Credentials::Tls(_) => token.map(|path| Arc::new(Token::new(path))),
            Credentials::Insecure => None,
        };
        Arc::new(Self {
            credentials: credentials.clone(),
            token,
        })
    }

    /// Connects, to see whether anybody is there.
    pub(super) async fn meet(
        &self,
        target: &Target,
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

    /// Whether the server is shown a certificate for every class.
    pub(super) const fn identifies(&self) -> bool {
        match &self.credentials {
            Credentials::Tls(tls) => tls.identity.is_some(),
            Credentials::Insecure => true,
        }
    }

    /// The same, or with the files of a class. K-29: none of them is of use without TLS.
    pub(super) fn for_class(self: &Arc<Self>, files: Option<ClassFiles>) -> Arc<Self> {
        let (Some(files), Credentials::Tls(tls)) = (files, &self.credentials) else {
            return self.clone();
        };
        let token = files.token.map(|path| Arc::new(Token::new(&path)));
        Arc::new(Self {
            credentials: Credentials::Tls(Tls {
                identity: files.identity.or_else(|| tls.identity.clone()),
                ..tls.clone()
            }),
            token: token.or_else(|| self.token.clone()),
        })
    }
}
