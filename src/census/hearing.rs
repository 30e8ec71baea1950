//! What the clients of a view say of the contents that some of them reject.
//!
//! Owns the two questions, what those reject who have rejected something and then who has accepted that, and what makes a client another
//! than others. Condemns nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::Census;
use crate::cache::View;
use crate::inquiry::{ClientStream, ClientType, Depth, Question, Whom};
use crate::protocol::{Hearing, Witness};
use crate::xds::named_in;

/// As many contents that have changed are asked about, if a client rejects all of them and blames none.
const CHANGED_MAX: usize = 256;

impl Census {
    /// Asks the clients of a view that have rejected something of a type what it is, and then all of them about that.
    pub async fn hear(&self, view: Arc<View>, mut hearing: Hearing) -> Hearing {
        let type_url = hearing.type_url().clone();
        let rejecting = view.take_rejecting(&type_url);
        let mut round = self.ask_those(rejecting, at(Depth::RejectionsAt(type_url.clone())));
        let mut blames_none = false;
        while let Some(stream) = round.next().await {
            for one in &stream.types {
                let rejected = one.resources.iter().filter(|one| one.objection.is_some());
                rejected.clone().for_each(|one| hearing.ask(&stream.node, &one.name));
                blames_none |= rejected.count() > 1 && !blames_any(one);
            }
        }
        if blames_none {
            let changed = view.head().replaced_names(&type_url, CHANGED_MAX);
            changed.iter().for_each(|name| hearing.ask_about(name));
        }
        if hearing.names().is_empty() {
            return hearing;
        }
        let names = Arc::new(BTreeSet::clone(hearing.names()));
        let mut round = self.ask_at(view, at(Depth::Among(type_url, names)));
        while let Some(stream) = round.next().await {
            hear(&mut hearing, &stream);
        }
        hearing
    }
}

fn at(depth: Depth) -> Question {
    Question {
        whom: Whom::default(),
        depth,
    }
}

/// Whether the client names anything of what it rejects.
fn blames_any(one: &ClientType) -> bool {
    let mut rejected = one.resources.iter();
    let first = rejected.clone().find_map(|one| one.objection.as_ref());
    first.is_some_and(|objection| {
        let words = named_in(objection.words());
        rejected.any(|one| words.contains(one.name.as_str()))
    })
}

fn hear(hearing: &mut Hearing, stream: &ClientStream) {
    for one in &stream.types {
        let witness = Witness {
            node: &stream.node,
            client: client(stream),
            tenant: tenant(stream),
            since: stream.since,
            accepts: one.accepted.is_some(),
        };
        let stands = one.resources.iter().filter_map(|one| {
            let resource = one.resource.as_ref()?;
            Some((
                resource.name(),
                resource.version(),
                one.standing,
                one.objection.as_ref(),
            ))
        });
        hearing.hear(witness, stands);
    }
}

/// A client is another one if its node's id or what was checked about it is another. Its address says nothing: it may have come twice.
fn client(stream: &ClientStream) -> u64 {
    let mut hash = Xxh3::new();
    let checked = stream.identity.texts().filter(|text| !text.starts_with("ip:"));
    for text in checked.chain([&*stream.node.id]) {
        hash.update(text.as_bytes());
        hash.update(&[0]);
    }
    hash.digest()
}

/// Clients of one tenant have the same values of the class's key, and certificates of one trust domain.
fn tenant(stream: &ClientStream) -> u64 {
    let mut hash = Xxh3::new();
    let spiffe = stream
        .identity
        .texts()
        .filter_map(|text| text.strip_prefix("spiffe://"));
    let domains = spiffe.filter_map(|path| path.split('/').next());
    for text in domains.chain(stream.node.class.key.iter().map(String::as_str)) {
        hash.update(text.as_bytes());
        hash.update(&[0]);
    }
    hash.digest()
}
