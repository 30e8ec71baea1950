//! What the clients of one view reject of one type, as its control plane is told (E-24).
//!
//! Owns how they are counted: by content, and by the software of the client. Does not know when the control plane is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use classes::{Class, ClientKind, Node, Selector};
use xds::{Name, Objection, Rejection, Version, printable};

/// So many contents of a type are told at a time, each for each kind of client.
const TOLD_MAX: usize = 1024;
/// As many kinds of clients are told apart; the others count as one.
const KINDS_MAX: usize = 64;
const OTHERS: &str = "other software";
/// How much of a node's id is told.
const ID_CHARS_MAX: usize = 128;

/// K-28: only where the control plane tells the clients of a view from others by their id, it is told the id.
fn has_id(class: &Class) -> bool {
    let mut key = class.rule.iter().flat_map(|rule| rule.key.iter());
    key.any(|selector| *selector == Selector::Id)
}

/// The clients that were counted so far.
#[derive(Default)]
pub(super) struct Tally {
    has_id: bool,
    /// How many clients there are of each kind that rejects something.
    kinds: BTreeMap<Arc<str>, usize>,
    rejected: BTreeMap<Key, (usize, Arc<Objection>)>,
}

/// The content, what a relay says of its clients, and the kind of client.
type Key = (Option<(Name, Version)>, String, Arc<str>);

impl Tally {
    /// Begins for the clients of a class.
    pub(super) fn of(class: &Class) -> Self {
        Self {
            has_id: has_id(class),
            ..Self::default()
        }
    }

    /// A client with this node rejects this.
    pub(super) fn add(&mut self, node: &Node, content: Option<(Name, Version)>, objection: &Arc<Objection>) {
        let kind = self.kind(node);
        self.kinds.entry(kind.clone()).or_default();
        let words = if content.is_none() { objection.words() } else { "" };
        let key = (content, words.to_owned(), kind);
        if self.rejected.len() < TOLD_MAX || self.rejected.contains_key(&key) {
            self.rejected.entry(key).or_insert((0, objection.clone())).0 += 1;
        }
    }

    /// There is a client with this node.
    pub(super) fn count(&mut self, node: &Node) {
        let kind = self.kind(node);
        if let Some(count) = self.kinds.get_mut(&kind) {
            *count += 1;
        }
    }

    fn kind(&self, node: &Node) -> Arc<str> {
        let software = ClientKind::of(node).to_string();
        let kind: Arc<str> = if self.has_id {
            format!("{software}, node {}", short(&node.id)).into()
        } else {
            software.into()
        };
        if self.kinds.len() < KINDS_MAX || self.kinds.contains_key(&kind) {
            kind
        } else {
            OTHERS.into()
        }
    }

    /// Returns what was counted.
    pub(super) fn finish(self) -> Vec<Rejection> {
        let kinds = self.kinds;
        let all = self.rejected.into_iter();
        let rejection = |((content, _, kind), (clients, objection)): (Key, (usize, Arc<Objection>))| Rejection {
            content,
            clients,
            of: kinds.get(&kind).copied().unwrap_or(clients).max(clients),
            kind,
            objection,
        };
        all.map(rejection).collect()
    }
}

fn short(text: &str) -> String {
    printable(text).chars().take(ID_CHARS_MAX).collect()
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
        let mut tally = Tally::default();
        let kinds: Vec<Arc<str>> = (0..70)
            .map(|one| {
                let kind = tally.kind(&node("a", &one.to_string()));
                *tally.kinds.entry(kind.clone()).or_default() += 1;
                kind
            })
            .collect();
        assert_eq!((&*kinds[63], &*kinds[64], &*kinds[69]), ("envoy 63", OTHERS, OTHERS));
        assert_eq!(&*tally.kind(&node("b", "7")), "envoy 7");
        assert_eq!(tally.kinds[OTHERS], 6);
    }

    /// A node's id is told only where the control plane knows it anyway, and nothing strange of it.
    #[test]
    fn when_an_id_is_told() {
        let mut tally = Tally::default();
        let strange = node("pod\u{1b}[31m", "1");
        assert_eq!(&*tally.kind(&strange), "envoy 1");
        tally.has_id = true;
        let told = tally.kind(&strange);
        assert!(
            told.starts_with("envoy 1, node pod") && !told.contains('\u{1b}'),
            "{told}"
        );
        let long = tally.kind(&node(&"x".repeat(1000), &"y".repeat(1000)));
        assert_eq!(long.len(), "envoy , node ".len() + 2 * ID_CHARS_MAX);
    }
}
