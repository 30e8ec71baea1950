// SPDX-License-Identifier: Apache-2.0
//! Where relays are asked: an address, a name that stands for all of its addresses, or a URL of either.
//!
//! Owns the syntax, and that a name is looked up once for each question. Connects to nothing.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs as _};

use crate::config::Address;

/// A place as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum RelayPlace {
    Address { tls: bool, address: Address },
    Name { tls: bool, host: String, port: u16 },
}

/// One relay there.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// How it is called in answers.
    label: String,
    /// An error says why there is none.
    address: Result<Address, String>,
    /// The name by which it was found, for its certificate.
    host: Option<String>,
    tls: bool,
}

/// The variable that names relays where no flag does.
pub(super) const VARIABLE: &str = "DISTRIBUTARY_ADMIN";
/// The port of the admin address, unless it is written.
const PORT: u16 = 9901;
/// How many relays a name may stand for.
const RELAYS_MAX: usize = 256;

impl RelayPlace {
    /// Reads `ip:port`, `[v6]:port`, `unix:/path`, `name[:port]`, or `http://` or `https://` before one of them. The error says
    /// whether the variable has this text.
    pub(in crate::cli) fn parse(text: &str) -> Result<Self, String> {
        Self::read(text).map_err(|error| match is_in_variable(text) {
            true => format!("{error} (the value is that of {VARIABLE})"),
            false => error,
        })
    }

    /// Whether the variable names this place.
    pub(super) fn is_in_variable(&self) -> bool {
        let value = std::env::var(VARIABLE).unwrap_or_default();
        value.split(',').any(|text| Self::read(text).as_ref() == Ok(self))
    }

    fn read(text: &str) -> Result<Self, String> {
        let (tls, rest, usual) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest, 80),
            Some(("https", rest)) => (true, rest, 443),
            Some((scheme, _)) => {
                return Err(format!(
                    "`{scheme}` is no scheme of an admin address; write http or https"
                ));
            }
            None => (false, text, PORT),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.starts_with("unix:") || rest.parse::<SocketAddr>().is_ok() {
            let address = Address::parse(rest)?;
            return Ok(Self::Address { tls, address });
        }
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok().filter(|port| *port != 0)),
            None => (rest, Some(usual)),
        };
        let named = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
        match port {
            Some(port) if named => Ok(Self::Name {
                tls,
                host: host.to_owned(),
                port,
            }),
            Some(_) | None => Err(format!(
                "`{text}` is not an address; write ip:port, [v6]:port, name:port, http(s)://name:port or unix:/path"
            )),
        }
    }

    /// Returns the relays there, each once.
    pub(super) fn sites(&self) -> Vec<Site> {
        let (tls, host, port) = match self {
            Self::Address { tls, address } => return vec![Site::at(address.clone(), None, *tls)],
            Self::Name { tls, host, port } => (*tls, host, *port),
        };
        let name = (host.as_str(), port);
        let found = name.to_socket_addrs().map(Iterator::collect::<BTreeSet<_>>);
        let why = match found {
            Err(error) => format!("the name {host} has no address: {error}"),
            Ok(addresses) => match askable(addresses) {
                Ok(addresses) => {
                    let found = |address| Site::at(Address::Socket(address), Some(host.clone()), tls);
                    return addresses.into_iter().map(found).collect();
                }
                Err(fault) => format!("the name {host} has {fault}"),
            },
        };
        vec![Site {
            label: format!("{host}:{port}"),
            address: Err(why),
            host: None,
            tls,
        }]
    }
}

fn is_in_variable(text: &str) -> bool {
    std::env::var(VARIABLE).is_ok_and(|value| value.split(',').any(|one| one == text))
}

/// Returns the addresses of a name, if there are any and not too many.
fn askable(addresses: BTreeSet<SocketAddr>) -> Result<BTreeSet<SocketAddr>, String> {
    match addresses.len() {
        0 => Err("no address".to_owned()),
        1..=RELAYS_MAX => Ok(addresses),
        many => Err(format!("{many} addresses; at most {RELAYS_MAX} are asked")),
    }
}

impl Site {
    fn at(address: Address, host: Option<String>, tls: bool) -> Self {
        Self {
            label: address.to_string(),
            address: Ok(address),
            host,
            tls,
        }
    }

    pub(super) const fn address(&self) -> Result<&Address, &String> {
        self.address.as_ref()
    }

    pub(super) fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Whether its URL says that it speaks TLS.
    pub(super) const fn tls(&self) -> bool {
        self.tls
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_place() {
        let named = |tls, host: &str, port| {
            Ok(RelayPlace::Name {
                tls,
                host: host.to_owned(),
                port,
            })
        };
        assert_eq!(RelayPlace::parse("relay"), named(false, "relay", 9901));
        assert_eq!(
            RelayPlace::parse("relay.xds.svc:9000"),
            named(false, "relay.xds.svc", 9000)
        );
        assert_eq!(RelayPlace::parse("https://relay/"), named(true, "relay", 443));
        assert_eq!(RelayPlace::parse("http://relay:9901"), named(false, "relay", 9901));
        let address = |tls, text: &str| {
            Ok(RelayPlace::Address {
                tls,
                address: Address::parse(text).unwrap(),
            })
        };
        assert_eq!(RelayPlace::parse("127.0.0.1:1"), address(false, "127.0.0.1:1"));
        assert_eq!(RelayPlace::parse("https://[::1]:1/"), address(true, "[::1]:1"));
        assert_eq!(
            RelayPlace::parse("unix:/run/x.sock"),
            address(false, "unix:/run/x.sock")
        );
        for wrong in [
            "",
            ":1",
            "relay:0",
            "relay:x",
            "ftp://relay",
            "http://relay/path",
            "::1",
            "a b",
            "<b>:1",
            "unix:",
        ] {
            assert!(RelayPlace::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_without_an_address_says_so() {
        let place = RelayPlace::parse("relay.invalid:1").unwrap();
        let [found] = place.sites().try_into().unwrap();
        let why = found.address().unwrap_err();
        assert!(why.starts_with("the name relay.invalid has no address"), "{why}");
    }

    /// Each address takes a thread and a connection.
    #[test]
    fn a_name_has_few_enough_addresses() {
        let many = |count: u16| {
            (1..=count)
                .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
                .collect()
        };
        assert_eq!(askable(many(0)), Err("no address".to_owned()));
        assert_eq!(askable(many(3)).unwrap().len(), 3);
        let fault = askable(many(2000)).unwrap_err();
        assert_eq!(fault, format!("2000 addresses; at most {RELAYS_MAX} are asked"));
    }

    #[test]
    fn a_name_stands_for_its_addresses() {
        let found = RelayPlace::parse("localhost:1").unwrap().sites();
        assert!(
            !found.is_empty()
                && found
                    .iter()
                    .all(|one| one.address().is_ok() && one.host() == Some("localhost"))
        );
    }
}
