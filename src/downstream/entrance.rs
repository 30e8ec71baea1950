//! How the connections of a listener begin.
//!
//! Owns which peers are balancers. Knows nothing of single connections.

use ipnet::IpNet;

use super::handshakes::Handshakes;
use crate::wire::Peer;

/// What comes before HTTP on the connections of a listener.
#[derive(Debug, Default)]
pub struct Entrance {
    /// The TLS handshakes, if it has TLS.
    pub tls: Option<Handshakes>,
    /// The balancers, whose connections begin with a PROXY header.
    pub proxies: Vec<IpNet>,
}

impl Entrance {
    /// Whether connections of this peer must begin with a PROXY header.
    pub(super) fn expects_header(&self, peer: &Peer) -> bool {
        let address = peer.address().map(|address| address.to_canonical());
        address.is_some_and(|address| self.proxies.iter().any(|network| network.contains(&address)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_balancers_send_headers() {
        let entrance = Entrance {
            tls: None,
            proxies: vec!["10.0.0.0/8".parse().unwrap(), "2001:db8::7/128".parse().unwrap()],
        };
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
