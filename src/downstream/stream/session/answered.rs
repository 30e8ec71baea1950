//! What a session says of itself when an operator asks.
//!
//! Owns what is looked at for each depth of a question. Changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::Session;
use crate::downstream::stream::seats::Seats;
use crate::inquiry::{ClientResource, ClientStream, ClientType, Depth, Inquiry};
use crate::protocol::{Portrait, Stand};
use crate::wire::Peer;
use crate::xds::{Condemned, Name, Objection, Sight, Standing, TypeUrl, named_in};

/// So many resources are told of those that the client names, and of the others, where its rejections are counted.
const BLAMED_MAX: usize = 64;

impl Session {
    /// Answers a question, if it is asked.
    pub(super) fn answer(&self, inquiry: &Arc<Inquiry>) {
        let question = inquiry.question();
        let Some(node) = self.server.node() else { return };
        if !question.whom.is_about(self.accounts.number(), node) {
            return;
        }
        let sight = self.sight();
        let types = self.types(&sight, &question.depth);
        let asked = |type_url: &TypeUrl| types.iter().any(|one| one.type_url == *type_url);
        let concerned = match &question.depth {
            Depth::Types | Depth::Resources | Depth::Rejections => true,
            Depth::RejectionsAt(type_url) | Depth::Among(type_url, _) => asked(type_url),
            Depth::Resource(..) => types.iter().any(|one| !one.resources.is_empty()),
        };
        if !concerned || !question.whom.type_url.as_ref().is_none_or(asked) {
            return;
        }
        inquiry.answer(ClientStream {
            number: self.accounts.number(),
            node: node.clone(),
            identity: self.accounts.identity().clone(),
            peer: match *self.accounts.peer() {
                Peer::Tcp(address) => Some(address),
                Peer::Unix => None,
            },
            dialect: self.method.dialect,
            service: self.method.service.clone(),
            since: self.accounts.since(),
            types,
        });
    }

    fn types(&self, sight: &Sight, depth: &Depth) -> Vec<ClientType> {
        let condemned: Vec<Arc<Condemned>> = self.seats.iter().flat_map(Seats::condemned).collect();
        let types = self.server.portraits(sight, depth.type_url()).map(|portrait| {
            let accepted = self.accounts.accepted(portrait.type_url());
            let seats = self.seats.as_ref();
            ClientType {
                server: seats.and_then(|seats| seats.server_of(portrait.type_url())),
                older: condemned
                    .iter()
                    .filter(|one| is_served_older(portrait, one))
                    .cloned()
                    .collect(),
                ..client_type(portrait, (accepted, self.waits_since(portrait)), depth)
            }
        });
        types.collect()
    }

    /// Returns since when the client waits for something of the type: on earlier streams too, until one of them was answered.
    fn waits_since(&self, portrait: Portrait<'_>) -> Option<Instant> {
        let before = self.accounts.waits().filter(|_| !self.answered());
        portrait
            .waiting_since()
            .map(|since| before.map_or(since, |before| before.min(since)))
    }

    /// The stream ends unanswered: its client still waits.
    pub(super) fn note_unanswered(&self) {
        let Some(node) = self.server.node() else { return };
        let sight = self.sight();
        let portraits = self.server.portraits(&sight, None);
        let waits = portraits.filter_map(|portrait| Some((portrait.type_url(), self.waits_since(portrait)?)));
        if let Some(longest) = waits.min_by_key(|(_, since)| *since) {
            self.accounts
                .unanswered(&self.shared, (node, &self.method), longest, self.now);
        }
    }
}

/// Whether older content stands in for this at the client.
fn is_served_older(portrait: Portrait<'_>, condemned: &Condemned) -> bool {
    let served = || portrait.stand(condemned.name())?.resource;
    condemned.type_url == *portrait.type_url()
        && served().is_some_and(|served| served.version() == condemned.stands_in.version())
}

fn client_type(
    portrait: Portrait<'_>,
    (accepted, waiting_since): (Option<Instant>, Option<Instant>),
    depth: &Depth,
) -> ClientType {
    let resources: Vec<ClientResource> = match depth {
        Depth::Types => Vec::new(),
        Depth::Resources => portrait.stands().map(resource).collect(),
        Depth::Rejections => portrait.rejections().map(resource).collect(),
        Depth::RejectionsAt(_) => blamed(portrait),
        Depth::Among(_, names) => among(portrait, names),
        Depth::Resource(_, name) => portrait.stand(name).map(resource).into_iter().collect(),
    };
    let settled = resources.iter().all(|resource| resource.standing.is_settled());
    ClientType {
        type_url: portrait.type_url().clone(),
        status: portrait.status(),
        wildcard: portrait.wildcard(),
        names: portrait.names(),
        sent: portrait.sent(),
        accepted,
        unanswered_since: portrait.unanswered_since(),
        waiting_since,
        server: None,
        objections: portrait.objections().cloned().collect(),
        relayed: portrait.relayed().cloned(),
        older: Vec::new(),
        ready: (*depth == Depth::Resources).then_some(portrait.is_quiet() && settled),
        resources,
    }
}

/// Returns what the client rejects, first of all what it names: it rejects a full state as a whole.
fn blamed(portrait: Portrait<'_>) -> Vec<ClientResource> {
    let (mut named, mut others) = (Vec::new(), Vec::new());
    let mut words: Option<(&Objection, BTreeSet<&str>)> = None;
    for stand in portrait.rejections() {
        let Some(objection) = stand.objection else { continue };
        let known = words.take().filter(|(of, _)| std::ptr::eq(*of, objection));
        let (_, names) = words.insert(known.unwrap_or_else(|| (objection, named_in(objection.words()))));
        let list = if names.contains(stand.name.as_str()) {
            &mut named
        } else {
            &mut others
        };
        if list.len() < BLAMED_MAX {
            list.push(resource(stand));
        }
    }
    named.append(&mut others);
    named
}

/// Returns where these resources stand. A full state is rejected as a whole: what the client names is to blame, or else all of it. What is
/// still to be tried alone is not rejected yet.
fn among(portrait: Portrait<'_>, names: &BTreeSet<Name>) -> Vec<ClientResource> {
    let blames = portrait.rejects_all().map(|objection| named_in(objection.words()));
    let blames = blames.filter(|words| words.iter().any(|word| portrait.stand(&Name::from(*word)).is_some()));
    let blamed = |name: &&Name| blames.as_ref().is_none_or(|words| words.contains(name.as_str()));
    let stands = names.iter().filter(blamed).filter_map(|name| portrait.stand(name));
    let found = stands.map(|stand| {
        let tried = stand.standing == Standing::Rejected && portrait.tries(stand.name);
        let standing = if tried { Standing::Sent } else { stand.standing };
        resource(Stand { standing, ..stand })
    });
    found.collect()
}

fn resource(stand: Stand<'_>) -> ClientResource {
    ClientResource {
        name: stand.name.clone(),
        standing: stand.standing,
        resource: stand.resource.cloned(),
        objection: stand.objection.cloned(),
    }
}
