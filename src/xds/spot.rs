// SPDX-License-Identifier: Apache-2.0
//! What only one resource can have at a time: the address of a listener, or the domain of a virtual host.
//!
//! Owns when two of them collide: addresses as sockets do, all else if it is equal. Knows no other field of a resource.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::BTreeSet;
use std::sync::Arc;

use prost::Message as _;

use super::Resource;
use proto::distributary::references as fields;

/// The address of a listener, or the domain of a virtual host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    taken: TakenAddress,
    /// Whether a socket is bound there. A listener that is not bound takes its own address and no other.
    bound: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TakenAddress {
    Socket(Port, Host),
    Pipe(Box<str>),
    Internal(Box<str>),
    Domain(Box<str>),
}

/// Ports with equal numbers are different ones for TCP and UDP, and in each network namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Port {
    udp: bool,
    number: u32,
    namespace: Box<str>,
}

/// The address that has a port. Of each family, the one that stands for all is the first in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Host {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    /// `::` that takes IPv4 as well.
    Both,
    /// What is not an IP address.
    Named(Box<str>),
}

const FIRST: [Host; 3] = [
    Host::V4(Ipv4Addr::UNSPECIFIED),
    Host::V6(Ipv6Addr::UNSPECIFIED),
    Host::Both,
];

impl Host {
    fn read(socket: &fields::SocketAddress) -> Self {
        match socket.address.parse::<IpAddr>().map(|address| address.to_canonical()) {
            Ok(IpAddr::V6(address)) if address.is_unspecified() && socket.ipv4_compat => Self::Both,
            Ok(IpAddr::V6(address)) => Self::V6(address),
            Ok(IpAddr::V4(address)) => Self::V4(address),
            Err(_) => Self::Named(socket.address.as_str().into()),
        }
    }

    /// Whether a socket that is bound to it takes the port of the other address too.
    fn covers(&self, other: &Self) -> bool {
        match self {
            Self::V4(address) => address.is_unspecified() && matches!(other, Self::V4(_) | Self::Both),
            Self::V6(address) => address.is_unspecified() && matches!(other, Self::V6(_) | Self::Both),
            Self::Both => !matches!(other, Self::Named(_)),
            Self::Named(_) => false,
        }
    }
}

impl Spot {
    /// Creates the spot of a virtual host.
    #[must_use]
    pub fn domain(text: &str) -> Self {
        Self {
            taken: TakenAddress::Domain(text.into()),
            bound: false,
        }
    }

    /// Returns the addresses in the body of a listener: none if it cannot be read, and none for a port that the system chooses.
    #[must_use]
    pub fn of_listener(body: &[u8]) -> Vec<Self> {
        let listener = fields::ListenerAddresses::decode(body).unwrap_or_default();
        let earlier = listener.deprecated_v1.and_then(|earlier| earlier.bind_to_port);
        let bound = listener.bind_to_port.or(earlier).is_none_or(|bind| bind.value);
        let additional = listener.additional_addresses.iter().map(|one| &one.address);
        let all = [&listener.address].into_iter().chain(additional).flatten();
        all.filter_map(TakenAddress::read)
            .map(|taken| Self { taken, bound })
            .collect()
    }

    /// Whether no two listeners, or no two virtual hosts, can have these spots at the same time.
    #[must_use]
    pub fn collides(&self, other: &Self) -> bool {
        let covers = || match (&self.taken, &other.taken) {
            (TakenAddress::Socket(port, one), TakenAddress::Socket(of_other, other)) if port == of_other => {
                one.covers(other) || other.covers(one)
            }
            _ => false,
        };
        self.taken == other.taken || self.bound && other.bound && covers()
    }
}

impl TakenAddress {
    fn read(address: &fields::Address) -> Option<Self> {
        if let Some(pipe) = &address.pipe {
            return Some(Self::Pipe(pipe.path.as_str().into()));
        }
        if let Some(internal) = &address.envoy_internal_address {
            return Some(Self::Internal(internal.server_listener_name.as_str().into()));
        }
        let socket = address
            .socket_address
            .as_ref()
            .filter(|socket| socket.port_value != 0)?;
        let port = Port {
            udp: socket.protocol == 1,
            number: socket.port_value,
            namespace: socket.network_namespace_filepath.as_str().into(),
        };
        Some(Self::Socket(port, Host::read(socket)))
    }
}

/// The spots that some resources take.
#[derive(Debug, Default)]
pub struct Spots {
    taken: BTreeSet<TakenAddress>,
    /// Those of sockets that are bound.
    bound: BTreeSet<Spot>,
}

impl Spots {
    /// Returns those of these listeners.
    #[must_use]
    pub fn of_listeners<'a>(listeners: impl IntoIterator<Item = &'a Arc<Resource>>) -> Self {
        listeners
            .into_iter()
            .flat_map(|listener| Spot::of_listener(&listener.body()))
            .collect()
    }

    /// Adds one.
    pub fn insert(&mut self, spot: Spot) {
        self.taken.insert(spot.taken.clone());
        if spot.bound {
            self.bound.insert(spot);
        }
    }

    /// Whether any of them collides with this one. Its cost does not depend on how many they are.
    #[must_use]
    pub fn collide(&self, spot: &Spot) -> bool {
        if self.taken.contains(&spot.taken) {
            return true;
        }
        let TakenAddress::Socket(port, _) = &spot.taken else {
            return false;
        };
        // The first of a family is the one that stands for all of it, if that is there; and for that one, each stands for all.
        let first = |host: Host| {
            let from = Spot {
                taken: TakenAddress::Socket(port.clone(), host),
                bound: false,
            };
            self.bound.range(from..).next()
        };
        spot.bound && FIRST.into_iter().filter_map(first).any(|one| one.collides(spot))
    }

    /// Whether any of them collides with an address of this listener.
    #[must_use]
    pub fn are_of(&self, listener: &Resource) -> bool {
        !self.taken.is_empty()
            && Spot::of_listener(&listener.body())
                .iter()
                .any(|spot| self.collide(spot))
    }
}

impl FromIterator<Spot> for Spots {
    fn from_iter<T: IntoIterator<Item = Spot>>(spots: T) -> Self {
        let mut all = Self::default();
        spots.into_iter().for_each(|spot| all.insert(spot));
        all
    }
}
