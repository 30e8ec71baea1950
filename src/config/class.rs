//! The rules that say which clients share a view: their grammar. It owns how they are written; the cache applies them.

use std::fmt;

/// One entry of `classes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRule {
    /// The client belongs here when all of these match.
    pub matches: Vec<(NodePath, Glob)>,
    /// There is one view for each distinct combination of these values.
    pub key: Vec<NodePath>,
    /// Who the control plane sees.
    pub node: NodeTemplate,
}

/// A place in a client's node. An absent value is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodePath {
    /// `id`
    Id,
    /// `cluster`
    Cluster,
    /// `locality.region`
    Region,
    /// `locality.zone`
    Zone,
    /// `locality.sub_zone`
    SubZone,
    /// `user_agent_name`
    UserAgentName,
    /// `metadata.A.B`, of which this is `A.B`.
    Metadata(String),
}

impl NodePath {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "id" => Self::Id,
            "cluster" => Self::Cluster,
            "locality.region" => Self::Region,
            "locality.zone" => Self::Zone,
            "locality.sub_zone" => Self::SubZone,
            "user_agent_name" => Self::UserAgentName,
            _ => match text.strip_prefix("metadata.") {
                Some(keys) if keys.split('.').all(|key| !key.is_empty()) => Self::Metadata(keys.to_owned()),
                _ => {
                    return Err(format!(
                        "`{text}` is not a field of a node; write id, cluster, locality.region, locality.zone, \
                         locality.sub_zone, user_agent_name or metadata.KEY"
                    ));
                }
            },
        })
    }
}

impl fmt::Display for NodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id => f.write_str("id"),
            Self::Cluster => f.write_str("cluster"),
            Self::Region => f.write_str("locality.region"),
            Self::Zone => f.write_str("locality.zone"),
            Self::SubZone => f.write_str("locality.sub_zone"),
            Self::UserAgentName => f.write_str("user_agent_name"),
            Self::Metadata(keys) => write!(f, "metadata.{keys}"),
        }
    }
}

/// A pattern in which every `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(pub String);

/// The node that a control plane sees for a class: the relay's own, with the fields of the key as the clients have
/// them, and with these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeTemplate {
    /// Replaces the id.
    pub id: Option<Template>,
    /// Replaces the cluster.
    pub cluster: Option<Template>,
}

/// A text with fields of the client's node in it. Every field that it names is part of the rule's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(pub Vec<Piece>);

/// A part of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Itself.
    Text(String),
    /// The value of a field of the client's node.
    Field(NodePath),
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            literal.push_str(before);
            if let Some(after) = brace.strip_prefix("{{") {
                literal.push('{');
                rest = after;
            } else if let Some(after) = brace.strip_prefix("}}") {
                literal.push('}');
                rest = after;
            } else if let Some((path, after)) = brace.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                if !literal.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                }
                pieces.push(Piece::Field(NodePath::parse(path)?));
                rest = after;
            } else {
                return Err(format!(
                    "`{text}` has a brace without its partner; write {{{{ or }}}} for a brace itself"
                ));
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(Self(pieces))
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = &NodePath> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Field(path) => Some(path),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_take_fields_and_escapes() {
        let text = |text: &str| Piece::Text(text.to_owned());
        for (written, pieces) in [
            ("", vec![]),
            ("relay", vec![text("relay")]),
            ("relay/{cluster}", vec![text("relay/"), Piece::Field(NodePath::Cluster)]),
            (
                "{id}{cluster}",
                vec![Piece::Field(NodePath::Id), Piece::Field(NodePath::Cluster)],
            ),
            ("{{{id}}}", vec![text("{"), Piece::Field(NodePath::Id), text("}")]),
            ("{{x}}", vec![text("{x}")]),
            (
                "{metadata.a.b}",
                vec![Piece::Field(NodePath::Metadata("a.b".to_owned()))],
            ),
        ] {
            assert_eq!(Template::parse(written), Ok(Template(pieces)), "{written}");
        }
        for bad in [
            "{",
            "}",
            "{id",
            "id}",
            "{}",
            "{name}",
            "{metadata.}",
            "{metadata.a..b}",
            "{locality}",
        ] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_print_as_they_are_written() {
        for path in [
            "id",
            "cluster",
            "locality.region",
            "locality.zone",
            "locality.sub_zone",
            "user_agent_name",
            "metadata.a.b",
        ] {
            assert_eq!(NodePath::parse(path).map(|path| path.to_string()).as_deref(), Ok(path));
        }
    }
}
