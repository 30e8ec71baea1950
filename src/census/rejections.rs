//! What the clients of one view reject of one type, as its control plane is told (E-24).
//!
//! Owns how they are counted: by content, and by the software of the client. Does not know when the control plane is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Census;
use crate::cache::View;
use crate::classes::{Class, Node, Selector};
use crate::inquiry::{ClientStream, Depth, Question, Whom};
use crate::xds::{Name, Objection, Rejection, TypeUrl, Version, printable};

/// As many kinds of clients are told apart; the others count as one.
const KINDS_MAX: usize = 64;
const OTHERS: &str = "other software";
/// As many contents are counted, each for each kind.
const CONTENTS_MAX: usize = 1024;
/// How much of the software's name and version, and of a node's id, is told.
const KIND_CHARS_MAX: usize = 128;

/// The clients that were heard so far.
#[derive(Default)]
struct Tally {
    /// How many clients there are of each kind.
    kinds: BTreeMap<Arc<str>, usize>,
    rejected: BTreeMap<Key, (usize, Arc<Objection>)>,
}

/// The content, what a relay says of its clients, and the kind of client.
type Key = (Option<(Name, Version)>, String, Arc<str>);

impl Census {
    /// Asks the clients of a view what they reject of a type.
    pub async fn rejections(&self, view: Arc<View>, type_url: TypeUrl) -> Vec<Rejection> {
        let names_node = has_id(view.class());
        let mut round = self.ask_at(
            view,
            Question {
                whom: Whom::default(),
                depth: Depth::RejectionsAt(type_url),
            },
        );
        let mut tally = Tally::default();
        while let Some(stream) = round.next().await {
            tally.add(stream, names_node);
        }
        tally.finish()
    }
}

impl Tally {
    fn add(&mut self, stream: ClientStream, names_node: bool) {
        let kind = self.kind(&stream.node, names_node);
        *self.kinds.entry(kind.clone()).or_default() += 1;
        for one in stream.types {
            if let Some(objection) = one.relayed {
                let key = (None, objection.words().to_owned(), kind.clone());
                self.count(key, objection);
            }
            for rejected in one.resources {
                let (Some(content), Some(objection)) = (rejected.resource, rejected.objection) else {
                    continue;
                };
                let content = (content.name().clone(), content.version());
                self.count((Some(content), String::new(), kind.clone()), Arc::new(objection));
            }
        }
    }

    fn count(&mut self, key: Key, objection: Arc<Objection>) {
        if self.rejected.len() < CONTENTS_MAX || self.rejected.contains_key(&key) {
            self.rejected.entry(key).or_insert((0, objection)).0 += 1;
        }
    }

    fn kind(&self, node: &Node, names_node: bool) -> Arc<str> {
        let (name, version) = (&*node.user_agent.name, &*node.user_agent.version);
        let software = match (name, version) {
            ("", _) => "unknown software".to_owned(),
            (name, "") => short(name),
            (name, version) => format!("{} {}", short(name), short(version)),
        };
        let kind: Arc<str> = if names_node {
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

    fn finish(self) -> Vec<Rejection> {
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

/// K-28: only where the control plane tells the clients of a view from others by their id, it is told the id.
fn has_id(class: &Class) -> bool {
    let mut key = class.rule.iter().flat_map(|rule| rule.key.iter());
    key.any(|selector| *selector == Selector::Id)
}

fn short(text: &str) -> String {
    printable(text).chars().take(KIND_CHARS_MAX).collect()
}
