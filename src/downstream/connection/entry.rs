// SPDX-License-Identifier: Apache-2.0
//! What comes before HTTP on a connection, and who the client is by it.
//!
//! Owns the order: the PROXY header of a balancer, or the credentials of a Unix socket; then TLS. Knows nothing of HTTP.

use std::time::Duration;

use super::{Connection, PREFACE_TIMEOUT};
use crate::clock;
use crate::downstream::handshakes::HandshakeFault;
use crate::identity::{Identity, certified};
use crate::wire::{Peer, ProxyFault, proxied};

/// What is wrong with the PROXY header of a connection.
#[derive(Debug, thiserror::Error)]
pub(in crate::downstream) enum HeaderFault {
    #[error("{0}")]
    Bad(ProxyFault),
    #[error("its PROXY header did not arrive within {0:?}")]
    Slow(Duration),
    #[error("it begins with a PROXY header, but its peer is not in `proxy_protocol.from` of the listener")]
    Stranger,
}

impl HeaderFault {
    /// Returns the fault as one word, for the metric.
    pub(in crate::downstream) const fn reason(&self) -> &'static str {
        match self {
            Self::Bad(fault) => fault.reason(),
            Self::Slow(_) => "timeout",
            Self::Stranger => "stranger",
        }
    }
}

impl Connection {
    /// Returns the connection when HTTP begins on it, and who its client is. None if it ends before.
    pub(super) async fn enter(mut self) -> Option<(Self, Identity)> {
        let begun = clock::now();
        if self.entrance.expects_header(&self.peer) {
            self = self.read_header().await?;
        }
        let mut identity = Identity::of_address(self.peer.address());
        if let Some((user, group)) = self.socket.credentials() {
            identity = identity.with([format!("uid:{user}"), format!("gid:{group}")]);
        }
        let entrance = self.entrance.clone();
        let Some(handshakes) = entrance.tls() else {
            return Some((self, identity));
        };
        let left = PREFACE_TIMEOUT.saturating_sub(clock::now().saturating_duration_since(begun));
        match handshakes.shake(self.socket, left).await {
            Ok((socket, resumed)) => {
                self.calls.shared.metrics.handshakes.established(resumed);
                self.socket = socket;
                let identity = self.certified(identity);
                Some((self, identity))
            }
            Err(HandshakeFault::Stranger) => {
                self.calls.not_proxied(&self.peer, &HeaderFault::Stranger);
                None
            }
            Err(fault) => {
                self.calls.not_secure(&self.peer, &fault);
                None
            }
        }
    }

    /// Reads the PROXY header. From here on, the connection comes from the address in it.
    async fn read_header(mut self) -> Option<Self> {
        let stated = clock::timeout(PREFACE_TIMEOUT, proxied(&mut self.socket)).await;
        let stated = match stated {
            Some(stated) => stated.map_err(HeaderFault::Bad),
            None => Err(HeaderFault::Slow(PREFACE_TIMEOUT)),
        };
        match stated {
            Ok(stated) => self.peer = stated.map_or(self.peer, Peer::Tcp),
            Err(fault) => {
                self.calls.not_proxied(&self.peer, &fault);
                return None;
            }
        }
        self.calls.shared.metrics.arrivals.proxy_header("good");
        match self.guest.at(self.peer) {
            Ok(guest) => {
                self.guest = guest;
                Some(self)
            }
            Err(full) => {
                self.calls.not_admitted(&self.peer, &full);
                None
            }
        }
    }

    /// Adds what the client's certificate says, if it has shown one.
    fn certified(&self, identity: Identity) -> Identity {
        let Some(certificate) = self.socket.certificate() else {
            return identity;
        };
        let said = certified(certificate);
        let identity = identity.certified(&said);
        if let Some(fault) = said.fault {
            self.calls.not_spiffe(&identity, &said.texts, &fault);
        }
        identity
    }
}
