//! What the clients of one view reject of one type, as its control plane is told (E-24).
//!
//! Owns how they are counted: by content, and by the software of the client. Does not know when the control plane is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Census;
use crate::cache::View;
use crate::classes::{Class, ClientKind, Node, Selector};
use crate::inquiry::{ClientStream, Depth, Question, Whom};
use crate::xds::{Condemned, Name, Objection, Rejection, TypeUrl, Version, printable};

/// As many kinds of clients are told apart; the others count as one.
const KINDS_MAX: usize = 64;
const OTHERS: &str = "other software";
/// As many contents are counted, each for each kind.
const CONTENTS_MAX: usize = 1024;
/// How much of a node's id is told.
const ID_CHARS_MAX: usize = 128;

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
            view.clone(),
            Question {
                whom: Whom::default(),
                depth: Depth::RejectionsAt(type_url.clone()),
            },
        );
        let mut tally = Tally::default();
        while let Some(stream) = round.next().await {
            tally.add(stream, names_node);
        }
        let condemned = view.head().condemned();
        let condemned = condemned.iter().filter(|one| one.type_url == type_url);
        condemned.for_each(|one| tally.add_condemned(one, view.class()));
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

    /// Who has rejected what is condemned is served something else by now.
    fn add_condemned(&mut self, one: &Condemned, class: &Class) {
        let kind: Arc<str> = match &one.kind {
            // As a node of the kind is counted.
            Some(kind) if !has_id(class) => kind.to_string().into(),
            Some(_) | None => OTHERS.into(),
        };
        let content = (one.name().clone(), one.version);
        let key = (Some(content), String::new(), kind.clone());
        let known = self.rejected.get(&key).map_or(0, |(clients, _)| *clients);
        let objection = one.objection.clone();
        self.rejected.insert(key, (known.max(one.clients), objection));
        let all = self.kinds.entry(kind).or_default();
        *all = one.of.max(*all);
    }

    fn count(&mut self, key: Key, objection: Arc<Objection>) {
        if self.rejected.len() < CONTENTS_MAX || self.rejected.contains_key(&key) {
            self.rejected.entry(key).or_insert((0, objection)).0 += 1;
        }
    }

    fn kind(&self, node: &Node, names_node: bool) -> Arc<str> {
        let software = ClientKind::of(node).to_string();
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
    printable(text).chars().take(ID_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::UserAgent;
    use crate::clock;
    use crate::xds::{Resource, ResourceParts};

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
                let kind = tally.kind(&node("a", &one.to_string()), false);
                *tally.kinds.entry(kind.clone()).or_default() += 1;
                kind
            })
            .collect();
        assert_eq!((&*kinds[63], &*kinds[64], &*kinds[69]), ("envoy 63", OTHERS, OTHERS));
        assert_eq!(&*tally.kind(&node("b", "7"), false), "envoy 7");
        assert_eq!(tally.kinds[OTHERS], 6);
    }

    /// A node's id is told only where the control plane knows it anyway, and nothing strange of it.
    #[test]
    fn when_an_id_is_told() {
        let tally = Tally::default();
        let strange = node("pod\u{1b}[31m", "1");
        assert_eq!(&*tally.kind(&strange, false), "envoy 1");
        let told = tally.kind(&strange, true);
        assert!(
            told.starts_with("envoy 1, node pod") && !told.contains('\u{1b}'),
            "{told}"
        );
        let long = tally.kind(&node(&"x".repeat(1000), &"y".repeat(1000)), true);
        assert_eq!(long.len(), "envoy , node ".len() + 2 * ID_CHARS_MAX);
    }

    /// Who has rejected what is condemned is sent older content, and still counts.
    #[test]
    fn what_is_condemned_is_told() {
        let parts = ResourceParts {
            type_url: &TypeUrl::new("example.Odd"),
            name: "a".into(),
            aliases: Vec::new(),
            passed_on: &[],
            body: b"1",
            endpoints: None,
            received: clock::now(),
        };
        let condemned = Condemned {
            type_url: TypeUrl::new("example.Odd"),
            version: Version::from_bits(7),
            kind: Some(ClientKind::of(&node("a", "1"))),
            stands_in: Arc::new(Resource::new(parts, 0)),
            since: clock::now(),
            clients: 3,
            of: 5,
            objection: Arc::new(Objection::new(13, "no", clock::now())),
        };
        let mut tally = Tally::default();
        tally.add_condemned(&condemned, &Class::default());
        let told = tally.finish();
        assert_eq!(
            (told.len(), &*told[0].kind, told[0].clients, told[0].of),
            (1, "envoy 1", 3, 5)
        );
    }
}
