//! Who a client is.
//!
//! Owns the texts of what the relay has checked about a client. Knows nothing of how it was checked, nor of what a client may do.

mod certificate;
mod subject;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

pub use certificate::{Certified, SvidFault, certified};

/// What the relay has checked about a client, as texts. Clones share the texts.
///
/// | Text | Where it comes from |
/// |---|---|
/// | `ip:10.0.0.7` | the address of the client |
/// | `uid:1000`, `gid:1000` | the credentials of a client on a Unix socket |
/// | `spiffe://td/path` | the only URI of its certificate |
/// | `jwt:ISSUER#SUBJECT`, `claim:ISSUER#NAME=VALUE` | the token of a call |
/// | `uri:URI`, `dns:NAME`, `subject:CN=...` | other names of its certificate |
///
/// The word before the first colon says where a text comes from, so no source can state the texts of another. Invariant: no text is
/// empty, longer than [`TEXT_BYTES_MAX`], or has a control character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(
    /// The texts, each with a [`END`]: one allocation, because every connection has an identity.
    Arc<str>,
);

/// The most bytes of a text; the limit of SPIFFE for its names.
pub const TEXT_BYTES_MAX: usize = 2048;
const END: char = '\n';
const ADDRESS: &str = "ip:";

impl Identity {
    /// Returns the identity of a client of which only the address is known, or nothing, as over a Unix socket.
    #[must_use]
    pub fn of_address(address: Option<IpAddr>) -> Self {
        address
            .map(|address| format!("{ADDRESS}{}", address.to_canonical()))
            .into_iter()
            .collect()
    }

    /// Returns the texts, in the order in which they were added.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.split_terminator(END)
    }

    /// Returns the address of the client: behind a balancer, the one that the balancer has stated.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.texts().find_map(|text| text.strip_prefix(ADDRESS)?.parse().ok())
    }

    /// Returns the one text that stands for the client: what was checked beyond its address, else the address.
    #[must_use]
    pub fn name(&self) -> &str {
        let checked = self.texts().find(|text| !text.starts_with(ADDRESS));
        checked.or_else(|| self.texts().next()).unwrap_or_default()
    }

    /// Returns this identity with more texts.
    #[must_use]
    pub fn with<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> Self {
        let mut all = self.0.to_string();
        for text in texts {
            let text = text.as_ref();
            // A text that cannot be kept as it is could be taken for another one.
            if !text.is_empty() && text.len() <= TEXT_BYTES_MAX && !text.contains(char::is_control) {
                all.push_str(text);
                all.push(END);
            }
        }
        Self(all.into())
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self(Arc::from(""))
    }
}

impl<T: AsRef<str>> FromIterator<T> for Identity {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        Self::default().with(texts)
    }
}

/// The texts in a row, for a log line.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, text) in self.texts().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{text}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_as_they_are_or_not_at_all() {
        let address = "::ffff:10.0.0.7".parse().ok();
        let long = format!("dns:{}", "a".repeat(TEXT_BYTES_MAX));
        let identity = Identity::of_address(address).with(["uid:1000", "", "dns:a\nuid:0", "dns:b\0", &long]);
        assert_eq!(identity.texts().collect::<Vec<_>>(), ["ip:10.0.0.7", "uid:1000"]);
        assert_eq!(identity.address(), "10.0.0.7".parse().ok());
        assert_eq!(identity.to_string(), "ip:10.0.0.7, uid:1000");
        let unknown = Identity::of_address(None);
        assert_eq!((unknown.texts().count(), unknown.address()), (0, None));
    }
}
