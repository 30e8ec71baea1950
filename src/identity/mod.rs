// SPDX-License-Identifier: Apache-2.0
//! Who a client is.
//!
//! Owns the texts of what the relay has checked about a client. Knows nothing of how it was checked, nor of what a client may do.

mod certificate;
mod named;
mod names;
mod subject;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

pub use certificate::{Certified, Lost, SvidFault, certified};
pub use named::{Named, claim};

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
/// The word before the first colon says where a text comes from, so no source can state the texts of another. Invariant: each text is
/// one for [`is_text`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity(Arc<KnownTexts>);

/// What is known of a client. All streams of a connection share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct KnownTexts {
    /// The texts, each with a [`END`].
    texts: Box<str>,
    /// What its certificate says and no text does.
    lost: Lost,
    /// What of its token was read, if there is one.
    read: Option<Arc<Named>>,
}

/// Why an identity is not known as far as the configuration names it (S-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Gap {
    /// The certificate has names of this kind that cannot be kept.
    #[error(
        "the configuration names identities that begin with `{0}`, and the certificate of the client has one that cannot be \
         read whole"
    )]
    Lost(&'static str),
    /// The token was read when less of it was named.
    #[error("the configuration names more of tokens than when the token of the client was read; come again with it")]
    Unread,
}

/// The most bytes of a text; the limit of SPIFFE for its names.
pub const TEXT_BYTES_MAX: usize = 2048;
const END: char = '\n';
const ADDRESS: &str = "ip:";
/// How many texts are shown: a token may have thousands.
const SHOWN_MAX: usize = 16;

/// Whether a text can be kept as it is: another form of it could be taken for another identity.
#[must_use]
pub fn is_text(text: &str) -> bool {
    !text.is_empty() && text.len() <= TEXT_BYTES_MAX && !text.contains(char::is_control)
}

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
        self.0.texts.split_terminator(END)
    }

    /// Returns the address of the client: behind a balancer, the one that the balancer has stated.
    pub fn address(&self) -> Option<IpAddr> {
        self.texts().find_map(|text| text.strip_prefix(ADDRESS)?.parse().ok())
    }

    /// Returns the one text that stands for the client: what was checked beyond its address, else the address.
    pub fn name(&self) -> &str {
        let checked = self.texts().find(|text| !text.starts_with(ADDRESS));
        checked.or_else(|| self.texts().next()).unwrap_or_default()
    }

    /// Returns this identity with more texts.
    #[must_use]
    pub fn with<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> Self {
        let mut all = self.0.texts.to_string();
        for text in texts {
            let text = text.as_ref();
            if is_text(text) {
                all.push_str(text);
                all.push(END);
            }
        }
        Self(Arc::new(KnownTexts {
            texts: all.into(),
            lost: self.0.lost,
            read: self.0.read.clone(),
        }))
    }

    /// Returns this identity with what a certificate says.
    pub fn certified(&self, said: &Certified) -> Self {
        let mut all = self.with(&said.texts);
        Arc::make_mut(&mut all.0).lost = said.lost;
        all
    }

    /// Returns this identity with texts of a token, which was read for what was named then.
    pub fn with_token(&self, texts: &[String], read: Arc<Named>) -> Self {
        let mut all = self.with(texts);
        Arc::make_mut(&mut all.0).read = Some(read);
        all
    }

    /// Whether there is more than an address: a certificate, a token or the user of a process.
    pub fn is_proven(&self) -> bool {
        self.texts().any(|text| !text.starts_with(ADDRESS))
    }

    /// S-11: whether it is known as far as it is named.
    ///
    /// # Errors
    /// Says what is not known. Whoever decides by it could not see what a rule is about.
    pub fn knows(&self, named: &Named) -> Result<(), Gap> {
        if let Some(kind) = self.0.lost.kinds().find(|kind| named.has_kind(kind)) {
            return Err(Gap::Lost(kind));
        }
        match &self.0.read {
            Some(read) if !read.includes(named) => Err(Gap::Unread),
            Some(_) | None => Ok(()),
        }
    }
}

impl Gap {
    /// Returns it as one word, for the metric.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Lost(kind) => kind.trim_end_matches(':'),
            Self::Unread => "unread",
        }
    }
}

impl<T: AsRef<str>> FromIterator<T> for Identity {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        Self::default().with(texts)
    }
}

/// The first texts in a row, for a log line.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, text) in self.texts().take(SHOWN_MAX).enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{text}")?;
        }
        match self.texts().skip(SHOWN_MAX).count() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
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
        assert!(identity.is_proven() && !Identity::of_address(address).is_proven() && !unknown.is_proven());
        let many = unknown.with((0..1000).map(|n| format!("dns:{n}"))).to_string();
        assert!(many.ends_with("dns:15 and 984 more"), "{many}");
    }

    /// S-11: what is named must be known.
    #[test]
    fn what_is_named_is_known_or_said() {
        let named = |text: &str| Named::from_iter([text]);
        let certificate = Certified {
            lost: [true, false, true, false].into(),
            ..Certified::default()
        };
        let identity = Identity::default().certified(&certificate).with(["dns:a"]);
        for (text, gap) in [
            ("spiffe://td/", Some(Gap::Lost("spiffe:"))),
            ("uri:", None),
            ("dns:b", Some(Gap::Lost("dns:"))),
            ("subject:", None),
            ("ip:10.", None),
            ("", Some(Gap::Lost("spiffe:"))),
        ] {
            assert_eq!(identity.knows(&named(text)).err(), gap, "{text}");
        }
        let read = Identity::default().with_token(&[], Arc::new(named("claim:i#a=")));
        assert_eq!(read.knows(&named("claim:i#a=b")), Ok(()));
        assert_eq!(read.knows(&named("claim:i#b=b")), Err(Gap::Unread));
        assert_eq!(Identity::default().knows(&named("claim:i#b=b")), Ok(()));
    }
}
