//! A place in a client's node.
//!
//! Owns which places there are, how each is written, and how it is read. Does not know what the values are for.

use std::fmt;

use super::Node;
use super::path::Path;

/// The longest path that the relay suggests: clients choose the keys, and nobody writes longer ones into a configuration.
const PATH_BYTES_MAX: usize = 200;

/// A place in a client's node. An absent value is the empty text.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

impl Selector {
    /// Returns the value in this node.
    #[must_use]
    pub fn read<'a>(&self, node: &'a Node) -> &'a str {
        match self {
            Self::Id => &node.id,
            Self::Cluster => &node.cluster,
            Self::Region => &node.locality.region,
            Self::Zone => &node.locality.zone,
            Self::SubZone => &node.locality.sub_zone,
            Self::UserAgent => &node.user_agent,
            Self::Metadata(path) => node.metadata.get(path.as_str()).map_or("", String::as_str),
        }
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
