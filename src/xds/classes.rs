//! Which clients share a view.
//!
//! Owns the rules that divide clients into classes (K-02), and what a control plane sees of a class (K-04). Does not know how
//! rules are written in a file.

use std::sync::Arc;

use super::credentials::{CredentialFiles, Credentials, Unfit};
use super::passes::{Passes, Taken};
use super::presented::Presented;
use super::selector::Selector;
use super::{Class, Node};
use crate::proto::envoy::config::core::v3 as core;

/// The rules, in order; the first that matches decides. Without rules all clients are one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes(Vec<Rule>);

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Patterns that must all match, in which `*` stands for any text.
    pub matches: Vec<(Selector, String)>,
    /// There is one class for each distinct combination of these values.
    pub key: Vec<Selector>,
    /// What replaces the relay's own node id.
    pub id: Option<Vec<Piece>>,
    /// What replaces the relay's own cluster.
    pub cluster: Option<Vec<Piece>>,
    /// Which parts of its clients' nodes are passed on in addition to the key.
    pub passes: Passes,
    /// K-29: the credentials for control planes, in place of those that all classes share.
    pub credentials: Option<Credentials>,
}

/// A part of a text that contains values of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// This text.
    Text(String),
    /// A value of the key, by its position. Other values are not allowed: they may differ between clients that share a view.
    Key(usize),
}

impl Classes {
    /// Creates classes from these rules, in this order.
    #[must_use]
    pub const fn new(rules: Vec<Rule>) -> Self {
        Self(rules)
    }

    /// The rules, in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.0
    }

    /// Returns the class of a client.
    #[must_use]
    pub fn class(&self, node: &Node) -> Class {
        let rule = self.position(node);
        let key = rule.and_then(|rule| self.0.get(rule)).map_or(&[][..], |rule| &rule.key);
        Class {
            rule,
            key: key.iter().map(|selector| selector.read(node).to_owned()).collect(),
            // K-04: what a server sends depends on it, so clients with and without this feature share nothing.
            endpoint_collections: node.features.endpoint_collections,
        }
    }

    /// Whether any class has credential files of its own.
    #[must_use]
    pub fn have_credentials(&self) -> bool {
        self.0.iter().any(|rule| rule.credentials.is_some())
    }

    /// Returns the class's own credential files, if it has any.
    ///
    /// # Errors
    ///
    /// K-29: the class has files of its own, and a value of its key cannot be a part of their paths.
    pub fn credentials(&self, class: &Class) -> Result<Option<CredentialFiles>, Unfit> {
        let rule = class.rule.and_then(|at| Some((at, self.0.get(at)?)));
        let own = rule.and_then(|(at, rule)| Some((at, rule, rule.credentials.as_ref()?)));
        own.map(|(at, rule, own)| own.files(at, &rule.key, &class.key))
            .transpose()
    }

    /// Returns the part of this client's node that is passed on; `wire` is the node as it came.
    #[must_use]
    pub fn take(&self, node: &Node, wire: &core::Node) -> Option<Arc<Taken>> {
        if self.0.iter().all(|rule| rule.passes == Passes::Nothing) {
            return None;
        }
        let rule = self.position(node).and_then(|at| self.0.get(at))?;
        rule.passes.take(wire)
    }

    /// Returns the position of the first rule that matches.
    fn position(&self, node: &Node) -> Option<usize> {
        self.0.iter().position(|rule| {
            let mut patterns = rule.matches.iter();
            patterns.all(|(selector, pattern)| matches(pattern, selector.read(node)))
        })
    }

    /// Returns what the control plane sees of the class.
    #[must_use]
    pub fn presented(&self, class: &Class) -> Presented {
        let endpoint_collections = class.endpoint_collections;
        let Some(rule) = class.rule.and_then(|at| self.0.get(at)) else {
            return Presented {
                endpoint_collections,
                ..Presented::default()
            };
        };
        let text = |pieces: &Vec<Piece>| Piece::fill(pieces, &class.key);
        Presented {
            common: rule.key.iter().cloned().zip(class.key.iter().cloned()).collect(),
            id: rule.id.as_ref().map(text),
            cluster: rule.cluster.as_ref().map(text),
            passes: rule.passes.clone(),
            passed: None,
            endpoint_collections,
        }
    }
}

impl Piece {
    /// Joins the pieces into one text, with the values of a class's key filled in.
    #[must_use]
    pub fn fill(pieces: &[Self], key: &[String]) -> String {
        let texts = pieces.iter().map(|piece| match piece {
            Self::Text(text) => text.as_str(),
            Self::Key(at) => key.get(*at).map_or("", String::as_str),
        });
        texts.collect()
    }
}

/// Whether the whole text matches the pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::{Features, Locality, Path};

    fn node(cluster: &str, zone: &str, tenant: Option<&str>) -> Node {
        Node {
            id: "n1".into(),
            cluster: cluster.into(),
            locality: Locality {
                zone: zone.to_owned(),
                ..Locality::default()
            },
            metadata: tenant
                .map(|tenant| ("TENANT".to_owned(), tenant.to_owned()))
                .into_iter()
                .collect(),
            ..Node::default()
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("edge", "edge", true),
            ("edge", "edges", false),
            ("", "", true),
            ("", "x", false),
            ("*", "", true),
            ("edge-*", "edge-", true),
            ("edge-*", "edg", false),
            ("*-eu", "edge-eu", true),
            ("*-eu", "-eu-", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("ab*bc", "abc", false),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    /// K-02: without rules all clients share; with rules the first that matches decides by its key.
    #[test]
    fn the_first_rule_that_matches_decides() {
        let classes = Classes::new(vec![
            Rule {
                matches: vec![
                    (Selector::Cluster, "edge-*".to_owned()),
                    (Selector::Zone, "a".to_owned()),
                ],
                key: vec![Selector::Cluster, Selector::Metadata(Path::new(["TENANT"]))],
                id: Some(vec![Piece::Text("relay/".to_owned()), Piece::Key(0), Piece::Key(7)]),
                cluster: None,
                passes: Passes::Nothing,
                credentials: None,
            },
            Rule {
                matches: vec![(Selector::Cluster, "edge-*".to_owned())],
                ..Rule::default()
            },
        ]);
        let first = classes.class(&node("edge-1", "a", Some("t")));
        assert_eq!(
            (first.rule, first.key.as_slice()),
            (Some(0), ["edge-1".to_owned(), "t".to_owned()].as_slice())
        );
        assert_eq!(classes.class(&node("edge-1", "a", None)).key, ["edge-1", ""]);
        assert_eq!(classes.class(&node("edge-1", "b", None)).rule, Some(1));
        assert_eq!(classes.class(&node("core", "a", None)), Class::default());
        assert_eq!(Classes::default().class(&node("edge-1", "a", None)), Class::default());
        let presented = classes.presented(&first);
        assert_eq!(
            (presented.id.as_deref(), presented.cluster),
            (Some("relay/edge-1"), None)
        );
        let tenant = Selector::Metadata(Path::new(["TENANT"]));
        assert_eq!(
            presented.common,
            [(Selector::Cluster, "edge-1".to_owned()), (tenant, "t".to_owned())]
        );
        assert_eq!(classes.presented(&Class::default()), Presented::default());
    }

    /// K-04: a feature that changes what a server sends is part of the class, whatever the rules.
    #[test]
    fn features_that_change_answers_divide() {
        let mut other = node("c", "z", None);
        other.features = Features {
            endpoint_collections: true,
            ..Features::default()
        };
        assert_ne!(
            Classes::default().class(&other),
            Classes::default().class(&node("c", "z", None))
        );
        other.features = Features {
            wrapper: true,
            ttl: true,
            ..Features::default()
        };
        assert_eq!(
            Classes::default().class(&other),
            Classes::default().class(&node("c", "z", None))
        );
    }
}
