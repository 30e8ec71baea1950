// SPDX-License-Identifier: Apache-2.0
//! A client of a story that polls over REST.
//!
//! Owns the client's side: what it took last, and its one poll. Knows nothing of stories.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use distributary::identity::Identity;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DiscoveryRequest;
use distributary::protocol::{Poll, PollAnswer, StreamSettings};
use distributary::xds::{Cut, Resource, Sight, Target, TypeUrl, Unshared};
use prost::Message as _;

use crate::text::{duration, expected, listed, said, type_url};
use crate::wire::Body;

pub(crate) struct Poller {
    pub(crate) view: String,
    poll: Option<(Poll, Instant)>,
    heard: Option<Heard>,
    /// What it accepted last, of each type.
    versions: BTreeMap<TypeUrl, String>,
}

/// The answer to its poll.
struct Heard {
    type_url: TypeUrl,
    /// The status, and its body.
    said: String,
    version: Option<String>,
}

/// How long a client lets its poll wait.
const HOLD: Duration = Duration::from_secs(1);

impl Default for Poller {
    fn default() -> Self {
        Self {
            view: "origin".to_owned(),
            poll: None,
            heard: None,
            versions: BTreeMap::new(),
        }
    }
}

impl Poller {
    /// `polls cds [a b]`, or at a path, then perhaps `stale`, `nameless`, `of TYPE` in the body, and how long; `moves other`.
    pub(crate) fn line(&mut self, verb: &str, line: &str, settings: &Arc<StreamSettings>, now: Instant) {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        match (verb, words.as_slice()) {
            ("polls", [topic, ..]) => {
                assert!(self.poll.is_none(), "it polls already");
                let type_url = if topic.starts_with('/') {
                    TypeUrl::polled_at(topic).map(TypeUrl::new)
                } else {
                    Some(type_url(topic))
                };
                let (names, rest) = line.split_once(']').expect("names in brackets");
                let names = format!("[{}]", names.split_once('[').expect("names in brackets").1);
                match type_url {
                    Some(type_url) => self.ask(settings, type_url, &listed(&names), rest, now),
                    // H-01, H-03: there is no path for types that cannot be polled.
                    None => self.hear(TypeUrl::new("none"), "404".to_owned(), None),
                }
            }
            ("moves", [view]) => (*view).clone_into(&mut self.view),
            other => panic!("a poller does not know {other:?}"),
        }
    }

    fn ask(&mut self, settings: &Arc<StreamSettings>, type_url: TypeUrl, names: &[&str], rest: &str, now: Instant) {
        let mut hold = HOLD;
        let node = Node {
            id: "poller".to_owned(),
            ..Default::default()
        };
        // H-05: all of it, every time.
        let mut asked = DiscoveryRequest {
            node: Some(node),
            version_info: self.versions.get(&type_url).cloned().unwrap_or_default(),
            resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Default::default()
        };
        let mut words = rest.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "stale" => "stale".clone_into(&mut asked.version_info),
                "nameless" => asked.node = None,
                "of" => asked.type_url = type_url_of(words.next()),
                time => hold = duration(time),
            }
        }
        let shared = Unshared { chunk: 1 << 20 };
        match Poll::new(
            settings.clone(),
            Identity::default(),
            type_url.clone(),
            asked,
            &shared,
            now,
        ) {
            Ok(poll) => self.poll = Some((poll, now + hold)),
            Err(end) => self.hear(type_url, format!("refused {:?}", end.code), None),
        }
    }

    fn hear(&mut self, type_url: TypeUrl, said: String, version: Option<String>) {
        self.poll = None;
        self.heard = Some(Heard {
            type_url,
            said,
            version,
        });
    }

    pub(crate) fn take_wants(&mut self) -> Vec<(TypeUrl, Target)> {
        let mut wants = Vec::new();
        while let Some(want) = self.poll.as_mut().and_then(|(poll, _)| poll.poll_want()) {
            assert!(want.wanted);
            wants.push((want.type_url, want.target));
        }
        wants
    }

    /// When its time is over.
    pub(crate) fn until(&self) -> Option<Instant> {
        Some(self.poll.as_ref()?.1)
    }

    /// H-04: it is answered when there is something that it does not have, and at the end of its time.
    pub(crate) fn look(&mut self, cut: &Cut, now: Instant) {
        let Some((poll, until)) = &mut self.poll else { return };
        let sight = Sight::from(Arc::new(cut.clone()));
        poll.look(&sight, &Unshared { chunk: usize::MAX });
        let last = *until <= now;
        let (told, version) = match poll.answer(&sight, last) {
            PollAnswer::News(found) => {
                let items = found.resources().map(|resource| item(resource)).collect();
                let told = format!("200 {}", said(items, Vec::new(), Vec::new()));
                (told, Some(found.version().to_string()))
            }
            PollAnswer::Nothing if last => ("304".to_owned(), None),
            PollAnswer::Open if last => ("503".to_owned(), None),
            PollAnswer::Nothing | PollAnswer::Open => return,
        };
        let type_url = poll.type_url().clone();
        self.hear(type_url, told, version);
    }

    pub(crate) fn expect(&mut self, type_url: &TypeUrl, rest: &str, then: Option<&str>) {
        let heard = self
            .heard
            .take()
            .unwrap_or_else(|| panic!("but the poller heard nothing"));
        let (status, set) = rest.split_once(' ').unwrap_or((rest, ""));
        let wanted = if status == "200" {
            format!("200 {}", expected(set))
        } else {
            rest.trim().to_owned()
        };
        assert_eq!((&heard.type_url, heard.said), (type_url, wanted));
        match (then, heard.version) {
            (Some("ack"), Some(version)) => drop(self.versions.insert(type_url.clone(), version)),
            // H-05: a client that rejects an answer sends the version that it had before.
            (Some("nack"), Some(_)) | (None, None) => {}
            other => panic!("`ack` or `nack` goes with 200: {other:?}"),
        }
    }

    pub(crate) fn silent(&self, name: &str) {
        if let Some(heard) = &self.heard {
            panic!("but {name} heard {:?} {}", heard.type_url, heard.said);
        }
    }
}

fn item(resource: &Resource) -> String {
    let body = Body::decode(resource.body()).expect("a body");
    format!("{}@{}", resource.name(), body.label)
}

fn type_url_of(word: Option<&str>) -> String {
    type_url(word.expect("a type")).url().to_owned()
}
