// SPDX-License-Identifier: Apache-2.0
//! How the connections of a listener begin.
//!
//! Owns which peers are balancers, and whether clients must have an identity. Knows nothing of single connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use ipnet::IpNet;

use super::handshakes::Handshakes;
use crate::wire::Peer;

/// What comes before HTTP on the connections of a listener.
#[derive(Debug)]
pub struct Entrance {
    /// The TLS handshakes, if it has TLS.
    tls: Option<Handshakes>,
    /// The balancers, whose connections begin with a PROXY header.
    proxies: ArcSwap<Vec<IpNet>>,
    /// Whether a call needs more of an identity than an address.
    requires_identity: AtomicBool,
}

impl Entrance {
    /// Creates the entrance of a listener.
    #[must_use]
    pub fn new(tls: Option<Handshakes>, proxies: Vec<IpNet>) -> Self {
        Self {
            tls,
            proxies: ArcSwap::from_pointee(proxies),
            requires_identity: AtomicBool::new(false),
        }
    }

    /// Sets whether a call needs more of an identity than an address, for calls that begin from now on.
    pub fn require_identity(&self, required: bool) {
        self.requires_identity.store(required, Ordering::Relaxed);
    }

    /// Whether a call needs more of an identity than an address.
    pub(super) fn requires_identity(&self) -> bool {
        self.requires_identity.load(Ordering::Relaxed)
    }

    /// The TLS handshakes, if it has TLS.
    pub const fn tls(&self) -> Option<&Handshakes> {
        self.tls.as_ref()
    }

    /// Replaces the balancers, for connections that begin from now on.
    pub fn set_proxies(&self, proxies: &[IpNet]) {
        if **self.proxies.load() != *proxies {
            self.proxies.store(Arc::new(proxies.to_owned()));
        }
    }

    /// Whether connections of this peer must begin with a PROXY header.
    pub(super) fn expects_header(&self, peer: &Peer) -> bool {
        let address = peer.address().map(|address| address.to_canonical());
        address.is_some_and(|address| self.proxies.load().iter().any(|network| network.contains(&address)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_balancers_send_headers() {
        let proxies = ["10.0.0.0/8", "2001:db8::7/128"].map(|network| network.parse().unwrap());
        let entrance = Entrance::new(None, Vec::new());
        let peer = Peer::Tcp("10.1.2.3:1".parse().unwrap());
        assert!(!entrance.expects_header(&peer));
        entrance.set_proxies(&proxies);
        for (address, expected) in [
            ("10.1.2.3:1", true),
            ("[::ffff:10.1.2.3]:1", true),
            ("[2001:db8::7]:1", true),
            ("11.1.2.3:1", false),
            ("[2001:db8::8]:1", false),
        ] {
            let peer = Peer::Tcp(address.parse().unwrap());
            assert_eq!(entrance.expects_header(&peer), expected, "{address}");
        }
        assert!(!entrance.expects_header(&Peer::Unix));
    }
}
