// SPDX-License-Identifier: Apache-2.0
//! A place in what is known of a client: in its node, in its identity, or in a text that a pattern has matched.
//!
//! Owns which places there are, how each is written, and how it is read. Does not know what the values are for.

use std::fmt;

use super::path::Path;
use super::{Fields, Node, Pattern};

/// The longest path that the relay suggests: clients choose the keys, and nobody writes longer ones into a configuration.
const PATH_BYTES_MAX: usize = 200;

/// How texts of identities begin: with the word for where they come from.
pub const IDENTITIES: [&str; 9] = [
    "claim:", "dns:", "gid:", "ip:", "jwt:", "spiffe:", "subject:", "uid:", "uri:",
];

/// A place in what is known of a client. An absent value is the empty text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selector {
    /// The node's id.
    Id,
    /// The node's cluster.
    Cluster,
    /// The locality's region.
    Region,
    /// The locality's zone.
    Zone,
    /// The locality's sub-zone.
    SubZone,
    /// The software, as it names itself.
    UserAgent,
    /// A scalar member of the metadata.
    Metadata(Path),
    /// What the relay has checked about the client: of the texts that begin with this word, see [`IDENTITIES`].
    Identity(&'static str),
    /// A field of a pattern that the client matches.
    Field(Box<str>),
}

impl Selector {
    /// Returns the value in this node; empty for what is not a part of a node.
    pub fn read<'a>(&self, node: &'a Node) -> &'a str {
        match self {
            Self::Id => &node.id,
            Self::Cluster => &node.cluster,
            Self::Region => &node.locality.region,
            Self::Zone => &node.locality.zone,
            Self::SubZone => &node.locality.sub_zone,
            Self::UserAgent => &node.user_agent.name,
            Self::Metadata(path) => node.metadata.get(path.as_str()).map_or("", String::as_str),
            Self::Identity(_) | Self::Field(_) => "",
        }
    }

    /// Returns the place for one kind of identity, by its name without the colon.
    #[must_use]
    pub fn identity(kind: &str) -> Option<Self> {
        let mut words = IDENTITIES.into_iter();
        words
            .find(|word| word.strip_suffix(':') == Some(kind))
            .map(Self::Identity)
    }

    /// Whether it is in what the relay has checked about a client, and not in what the client says.
    pub const fn is_identity(&self) -> bool {
        self.kind().is_some()
    }

    /// Returns the word of the identities that it is in, if it is in these.
    pub const fn kind(&self) -> Option<&'static str> {
        if let Self::Identity(word) = self {
            Some(word)
        } else {
            None
        }
    }

    /// Returns what the pattern's fields stand for, if the value matches. Of an identity one of its texts of the kind must match; a
    /// client without any does not.
    pub(super) fn find(&self, pattern: &Pattern, node: &Node, identity: &[&str]) -> Option<Fields> {
        if let Self::Identity(word) = self {
            return texts(word, identity).find_map(|text| pattern.found(text));
        }
        pattern.found(self.read(node))
    }

    /// Returns the value. Of an identity it is the first text of the kind.
    pub(super) fn value<'a>(&self, node: &'a Node, identity: &'a [&'a str], fields: &'a Fields) -> &'a str {
        if let Self::Identity(word) = self {
            return texts(word, identity).next().unwrap_or_default();
        }
        if let Self::Field(name) = self {
            return fields.value(name).unwrap_or_default();
        }
        self.read(node)
    }

    /// Returns the key that would separate these two, if they differ in what control planes usually look at.
    #[must_use]
    pub fn between(one: &Node, other: &Node) -> Option<Self> {
        if one.cluster != other.cluster {
            return Some(Self::Cluster);
        }
        let mut paths = one.metadata.keys().chain(other.metadata.keys());
        let plain = |path: &str| path.len() <= PATH_BYTES_MAX && path.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let path = paths.find(|path| plain(path) && one.metadata.get(*path) != other.metadata.get(*path))?;
        Path::read(path).ok().map(Self::Metadata)
    }
}

/// Returns the texts of one kind. A SPIFFE name is whole; the others are without the word.
fn texts<'a>(word: &'static str, identity: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let texts = identity.iter().copied();
    texts.filter_map(move |text| match word {
        "spiffe:" => text.starts_with(word).then_some(text),
        _ => text.strip_prefix(word),
    })
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id => f.write_str("id"),
            Self::Cluster => f.write_str("cluster"),
            Self::Region => f.write_str("locality.region"),
            Self::Zone => f.write_str("locality.zone"),
            Self::SubZone => f.write_str("locality.sub_zone"),
            Self::UserAgent => f.write_str("user_agent_name"),
            Self::Metadata(path) => write!(f, "metadata.{path}"),
            Self::Identity(word) => write!(f, "identity.{}", word.trim_end_matches(':')),
            Self::Field(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(cluster: &str, tenant: &str) -> Node {
        let path = Path::new(["LABELS", "tenant.id"]);
        Node {
            cluster: cluster.into(),
            metadata: [(path.as_str().to_owned(), tenant.to_owned())].into(),
            ..Node::default()
        }
    }

    #[test]
    fn what_would_separate_two_clients_is_named() {
        let between = |a, b| Selector::between(&a, &b).map(|key| key.to_string());
        assert_eq!(between(node("a", "t"), node("b", "u")).as_deref(), Some("cluster"));
        let label = r#"metadata.LABELS."tenant.id""#;
        assert_eq!(between(node("a", "t"), node("a", "u")).as_deref(), Some(label));
        assert_eq!(
            between(
                node("a", ""),
                Node {
                    cluster: "a".into(),
                    ..Node::default()
                }
            )
            .as_deref(),
            Some(label)
        );
        assert_eq!(between(node("a", "t"), node("a", "t")), None);
    }
}
