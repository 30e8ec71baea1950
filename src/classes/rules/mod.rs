// SPDX-License-Identifier: Apache-2.0
//! Which clients share a view.
//!
//! Owns the rules that divide clients into classes (K-02). Does not know how rules are written in a file.

mod written;

use std::sync::Arc;

use crate::credentials::Credentials;
use crate::passes::Passes;
use crate::selector::Selector;
use crate::{Class, Fields, Node, Pattern};

/// The rules, in order; the first that matches decides. Without rules all clients are one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes(Vec<Arc<Rule>>);

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// Patterns that must all match.
    pub matches: Vec<(Selector, Pattern)>,
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Piece {
    /// This text.
    Text(String),
    /// A value of the key, by its position. Other values are not allowed: they may differ between clients that share a view.
    Key(usize),
}

impl Classes {
    /// Creates classes from these rules, in this order.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Self {
        Self(rules.into_iter().map(Arc::new).collect())
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.0
    }

    /// Returns the class of a client. `identity` is what the relay has checked about it.
    pub fn class(&self, node: &Node, identity: &[&str]) -> Class {
        let mut found = self
            .0
            .iter()
            .filter_map(|rule| Some((rule, rule.find(node, identity)?)));
        let found = found.next();
        let key = found.iter().flat_map(|(rule, fields)| {
            let key = rule.key.iter();
            key.map(|selector| selector.value(node, identity, fields).to_owned())
        });
        Class {
            key: key.collect(),
            rule: found.as_ref().map(|(rule, _)| Arc::clone(rule)),
            // K-04: what a server sends depends on it, so clients with and without this feature share nothing.
            endpoint_collections: node.features.endpoint_collections,
        }
    }

    /// Whether any class has credential files of its own.
    pub fn have_credentials(&self) -> bool {
        self.0.iter().any(|rule| rule.credentials.is_some())
    }

    /// Returns the position of a rule, if it is one of these.
    pub fn position(&self, rule: &Rule) -> Option<usize> {
        self.0.iter().position(|known| **known == *rule)
    }
}

impl Rule {
    /// Whether the relay has checked a value of the key, so that no client can choose it.
    pub fn checks(&self, field: &Selector) -> bool {
        let of = |name: &str| {
            self.matches
                .iter()
                .find(|(_, pattern)| pattern.fields().any(|one| one == name))
        };
        if let Selector::Field(name) = field {
            return of(name).is_some_and(|(of, _)| of.is_identity());
        }
        field.is_identity()
    }

    /// Returns what the fields of its patterns stand for, if all of them match.
    fn find(&self, node: &Node, identity: &[&str]) -> Option<Fields> {
        let mut fields = Fields::default();
        for (selector, pattern) in &self.matches {
            fields.add(selector.find(pattern, node, identity)?);
        }
        Some(fields)
    }
}

impl Piece {
    /// Returns the position of the value of the key that it stands for.
    pub const fn value(&self) -> Option<usize> {
        match self {
            Self::Text(_) => None,
            Self::Key(at) => Some(*at),
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Features, Locality, Path, Presented};
    use proto::envoy::config::core::v3 as core;

    fn matching(field: Selector, pattern: &str) -> (Selector, Pattern) {
        (field, Pattern::read(pattern).unwrap())
    }

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

    /// K-02: without rules all clients share; with rules the first that matches decides by its key.
    #[test]
    fn the_first_rule_that_matches_decides() {
        let classes = Classes::new(vec![
            Rule {
                matches: vec![matching(Selector::Cluster, "edge-*"), matching(Selector::Zone, "a")],
                key: vec![Selector::Cluster, Selector::Metadata(Path::new(["TENANT"]))],
                id: Some(vec![Piece::Text("relay/".to_owned()), Piece::Key(0), Piece::Key(7)]),
                cluster: None,
                passes: Passes::Nothing,
                credentials: None,
            },
            Rule {
                matches: vec![matching(Selector::Cluster, "edge-*")],
                ..Rule::default()
            },
        ]);
        let class = |node: Node| classes.class(&node, &[]);
        let position = |class: &Class| class.rule.as_deref().and_then(|rule| classes.position(rule));
        let first = class(node("edge-1", "a", Some("t")));
        assert_eq!((position(&first), first.key.len()), (Some(0), 2));
        assert_eq!(*class(node("edge-1", "a", None)).key, ["edge-1", ""]);
        assert_eq!(position(&class(node("edge-1", "b", None))), Some(1));
        assert_eq!(class(node("core", "a", None)), Class::default());
        let without = Classes::default().class(&node("edge-1", "a", None), &[]);
        assert_eq!(without, Class::default());
        let presented = first.presented();
        assert_eq!(
            (presented.id.as_deref(), presented.cluster),
            (Some("relay/edge-1"), None)
        );
        let tenant = Selector::Metadata(Path::new(["TENANT"]));
        assert_eq!(
            presented.common,
            [(Selector::Cluster, "edge-1".to_owned()), (tenant, "t".to_owned())]
        );
        assert_eq!(Class::default().presented(), Presented::default());
    }

    /// K-02: a rule is the same wherever it stands, and another one in its place is another.
    #[test]
    fn a_class_outlives_a_change_of_other_rules() {
        let rule = |cluster: &&str| Rule {
            matches: vec![matching(Selector::Cluster, cluster)],
            key: vec![Selector::Zone],
            ..Rule::default()
        };
        let class = |rules: &[&str], of: &Node| {
            let classes = Classes::new(rules.iter().map(rule).collect());
            let class = classes.class(of, &[]);
            (class.rule.as_deref().and_then(|rule| classes.position(rule)), class)
        };
        let edge = node("edge", "a", None);
        let (at, before) = class(&["edge"], &edge);
        let (moved, after) = class(&["core", "edge"], &edge);
        assert_eq!((at, moved, &before), (Some(0), Some(1), &after));
        assert_ne!(class(&["ed*"], &edge).1, before);
        assert_ne!(class(&["core"], &node("core", "a", None)).1, before);
        assert_eq!(Classes::new(vec![rule(&"ed*")]).position(&rule(&"edge")), None);
    }

    /// K-02: an identity decides by what the relay has checked. Of several texts of a kind one must match, and the first is the value.
    #[test]
    fn an_identity_divides() {
        let namespaces = Rule {
            matches: vec![matching(Selector::Identity("spiffe:"), "spiffe://td/ns/{ns}/sa/*")],
            key: vec![Selector::Field("ns".into())],
            id: Some(vec![Piece::Text("r/".to_owned()), Piece::Key(0)]),
            ..Rule::default()
        };
        let names = Rule {
            matches: vec![matching(Selector::Identity("dns:"), "*.a")],
            key: vec![Selector::Identity("dns:"), Selector::Identity("uid:")],
            ..Rule::default()
        };
        let classes = Classes::new(vec![namespaces, names]);
        // What a client says of itself decides nothing.
        let liar = node("spiffe://td/ns/blue/sa/x", "blue", Some("blue"));
        let class = |identity: &'static [&'static str]| {
            let class = classes.class(&liar, identity);
            (
                class.rule.as_deref().and_then(|rule| classes.position(rule)),
                class.key.clone(),
                class,
            )
        };
        for (identity, rule, key) in [
            (&["ip:10.0.0.7", "spiffe://td/ns/red/sa/x"][..], Some(0), &["red"][..]),
            (&["spiffe://td/ns//sa/x"], None, &[]),
            (&["uri:spiffe://td/ns/red/sa/x"], None, &[]),
            (&["dns:x.b", "dns:x.a"], Some(1), &["x.b", ""]),
            (&["dns:x.b"], None, &[]),
            (&[], None, &[]),
        ] {
            let (at, values, _) = class(identity);
            assert_eq!(
                (at, &*values),
                (rule, key.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice())
            );
        }
        let presented = class(&["spiffe://td/ns/red/sa/x"]).2.presented();
        assert_eq!(presented.id.as_deref(), Some("r/red"));
        let relay = core::Node {
            id: "relay".to_owned(),
            ..Default::default()
        };
        let seen = class(&["dns:x.a"]).2.presented().over(&relay);
        assert_eq!(seen.id, "relay/identity.dns=x.a/identity.uid=");
    }

    /// K-04: a feature that changes what a server sends is part of the class, whatever the rules.
    #[test]
    fn features_that_change_answers_divide() {
        let mut other = node("c", "z", None);
        other.features = Features {
            endpoint_collections: true,
            ..Features::default()
        };
        let class = |node: &Node| Classes::default().class(node, &[]);
        assert_ne!(class(&other), class(&node("c", "z", None)));
        other.features = Features {
            wrapper: true,
            ttl: true,
            ..Features::default()
        };
        assert_eq!(class(&other), class(&node("c", "z", None)));
    }
}
