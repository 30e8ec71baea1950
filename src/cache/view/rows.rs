// SPDX-License-Identifier: Apache-2.0
//! The rows of what the clients of one view reject: each content once for each kind of client and for each of its reasons.
//!
//! Owns how clients are counted: by content, and by their software. The same rows are shown to people and told to the control plane (E-24).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::rejected::Rejecter;
use classes::{Class, ClientKind, Node, Selector};
use inquiry::StreamNumber;
use xds::{Name, Objection, Refusal, Rejection, Resource, Version, printable};

/// So many contents of a type are told at a time, each for each kind of client.
const TOLD_MAX: usize = 1024;
/// As many kinds of clients are told apart; the others count as one.
const KINDS_MAX: usize = 64;
const OTHERS: &str = "other software";
/// How much of a node's id is told.
const ID_CHARS_MAX: usize = 128;
/// How many clients are named in a row.
const NAMED_MAX: usize = 10;

/// A content that clients of one kind reject for one reason.
#[derive(Clone, Debug)]
pub struct Row {
    /// The content; `None`: the clients are relays, which say in words what their own clients reject.
    pub content: Option<Arc<Resource>>,
    /// What the clients have in common, for people: their software and its version.
    pub kind: Arc<str>,
    /// How many of them reject it.
    pub clients: usize,
    /// Some of them: their streams, and the ids of their nodes.
    pub some: Vec<(StreamNumber, Arc<str>)>,
    /// How many of them were sent older content in its place.
    pub older: usize,
    /// Why.
    pub objection: Arc<Objection>,
    /// When the first response with it was sent that was rejected so.
    pub since: Instant,
    /// What one of the clients has instead.
    pub before: Option<Arc<Resource>>,
    /// When the control plane was last told.
    pub reported: Option<Instant>,
}

/// The software, and the node's id where that tells clients apart; `None`: one of very many others.
type ClientSoftware = Option<(ClientKind, Option<Arc<str>>)>;
/// The content, the words and the kind.
type RejectionKey = (Option<(Name, Version)>, Box<str>, ClientSoftware);

/// The rows so far.
pub(super) struct Rows {
    has_id: bool,
    /// How many clients there are of each kind that rejects something, as far as they were counted.
    kinds: BTreeMap<ClientSoftware, usize>,
    rows: BTreeMap<RejectionKey, Row>,
}

/// K-28: only where the control plane tells the clients of a view from others by their id, it is told the id.
fn has_id(class: &Class) -> bool {
    let mut key = class.rule.iter().flat_map(|rule| rule.key.iter());
    key.any(|selector| *selector == Selector::Id)
}

impl Rows {
    /// Begins for the clients of a class.
    pub(super) fn of(class: &Class) -> Self {
        Self {
            has_id: has_id(class),
            kinds: BTreeMap::new(),
            rows: BTreeMap::new(),
        }
    }

    /// A client rejects a content, of which the control plane was told then.
    pub(super) fn add(
        &mut self,
        one: &Rejecter,
        refusal: &Refusal,
        content: Option<&Arc<Resource>>,
        reported: Option<Instant>,
    ) {
        let kind = self.kind(&one.node);
        self.kinds.entry(kind.clone()).or_default();
        let named = content.map(|content| (content.name().clone(), content.version()));
        let key = (named, refusal.objection.words().into(), kind.clone());
        let row = self.rows.entry(key).or_insert_with(|| Row {
            content: content.cloned(),
            kind: told(kind.as_ref()),
            clients: 0,
            some: Vec::new(),
            older: 0,
            objection: refusal.objection.clone(),
            since: refusal.since,
            before: None,
            reported,
        });
        row.clients += 1;
        row.older += usize::from(one.stance.holds.is_older());
        row.since = row.since.min(refusal.since);
        row.before = row.before.take().or_else(|| one.stance.holds.content().cloned());
        if row.some.len() < NAMED_MAX {
            row.some.push((one.stream, one.node.id.clone()));
        }
    }

    /// Returns the rows.
    pub(super) fn list(self) -> Vec<Row> {
        self.rows.into_values().collect()
    }

    /// Returns what the control plane is told: each content once for each kind. `everyone` shows all clients that ask for the type.
    pub(super) fn told(mut self, everyone: impl FnOnce(&mut dyn FnMut(&Node))) -> Vec<Rejection> {
        let mut told: BTreeMap<RejectionKey, Rejection> = BTreeMap::new();
        for ((content, words, kind), row) in std::mem::take(&mut self.rows) {
            let words = if content.is_none() { words } else { Box::default() };
            let key = (content, words, kind);
            if told.len() >= TOLD_MAX && !told.contains_key(&key) {
                continue;
            }
            let content = key.0.clone();
            let rejection = told.entry(key).or_insert_with(|| Rejection {
                content,
                kind: row.kind,
                clients: 0,
                of: 0,
                objection: row.objection,
            });
            rejection.clients += row.clients;
        }
        if told.is_empty() {
            return Vec::new();
        }
        everyone(&mut |node| self.count(node));
        let told = told.into_iter().map(|((.., kind), rejection)| Rejection {
            of: self
                .kinds
                .get(&kind)
                .copied()
                .unwrap_or_default()
                .max(rejection.clients),
            ..rejection
        });
        told.collect()
    }

    /// There is a client with this node.
    fn count(&mut self, node: &Node) {
        let kind = self.kind(node);
        if let Some(count) = self.kinds.get_mut(&kind) {
            *count += 1;
        }
    }

    fn kind(&self, node: &Node) -> ClientSoftware {
        let id = self.has_id.then(|| node.id.clone());
        let kind = Some((ClientKind::of(node), id));
        (self.kinds.len() < KINDS_MAX || self.kinds.contains_key(&kind))
            .then_some(kind)
            .flatten()
    }
}

/// Returns a kind as people read it.
fn told(kind: Option<&(ClientKind, Option<Arc<str>>)>) -> Arc<str> {
    match kind {
        None => OTHERS.into(),
        Some((software, None)) => software.to_string().into(),
        Some((software, Some(id))) => {
            let id: String = printable(id).chars().take(ID_CHARS_MAX).collect();
            format!("{software}, node {id}").into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use classes::UserAgent;

    fn node(id: &str, version: &str) -> Node {
        Node {
            id: id.into(),
            user_agent: Arc::new(UserAgent {
                name: "envoy".into(),
                version: version.into(),
            }),
            ..Node::default()
        }
    }

    /// Clients choose their software and its version: whoever has the sixty-fifth is one of the others.
    #[test]
    fn very_many_kinds_are_one() {
        let mut rows = Rows::of(&Class::default());
        let kinds: Vec<ClientSoftware> = (0..70)
            .map(|one| {
                let kind = rows.kind(&node("a", &one.to_string()));
                *rows.kinds.entry(kind.clone()).or_default() += 1;
                kind
            })
            .collect();
        let kinds: Vec<Arc<str>> = kinds.iter().map(|kind| told(kind.as_ref())).collect();
        assert_eq!((&*kinds[63], &*kinds[64], &*kinds[69]), ("envoy 63", OTHERS, OTHERS));
        assert_eq!(&*told(rows.kind(&node("b", "7")).as_ref()), "envoy 7");
        assert_eq!(rows.kinds[&None], 6);
    }

    /// A node's id is told only where the control plane knows it anyway, and nothing strange of it.
    #[test]
    fn when_an_id_is_told() {
        let mut rows = Rows::of(&Class::default());
        let strange = node("pod\u{1b}[31m", "1");
        assert_eq!(&*told(rows.kind(&strange).as_ref()), "envoy 1");
        rows.has_id = true;
        let kind = told(rows.kind(&strange).as_ref());
        assert!(
            kind.starts_with("envoy 1, node pod") && !kind.contains('\u{1b}'),
            "{kind}"
        );
        let long = told(rows.kind(&node(&"x".repeat(1000), &"y".repeat(1000))).as_ref());
        assert_eq!(long.len(), "envoy , node ".len() + 2 * ID_CHARS_MAX);
    }
}
