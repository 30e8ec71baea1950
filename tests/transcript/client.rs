// SPDX-License-Identifier: Apache-2.0
//! A client of a story: it sends what Envoy or a gRPC library would send at that point, in either dialect.
//!
//! Owns the client's side of the protocol, and the checks that hold for every client. Knows nothing of stories.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use distributary::classes::RELAYS;
use distributary::identity::Identity;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest, ResourceLocator};
use distributary::proto::google::protobuf::{ListValue, Struct, Value, value::Kind};
use distributary::proto::google::rpc::Status as Detail;
use distributary::protocol::{End, Opening, Receipt, ReceiptKind, Server, StreamSettings};
use distributary::xds::{Access, Cut, Dialect, Dirty, Name, Resource, Sight, Stance, Target, TypeUrl, Unshared};

use crate::origin::Changed;
use crate::topic::{Raw, Topic, identity};
use crate::wire::{self, Item, Said};

/// One client, its stream, and the relay's machine at the other end of it.
pub(crate) struct Client {
    pub(crate) dialect: Dialect,
    pub(crate) view: String,
    pub(crate) service: Option<TypeUrl>,
    pub(crate) node: Option<Node>,
    repeats_node: bool,
    /// Whether it asks for names by locators.
    pub(crate) locates: bool,
    pub(crate) inbox: VecDeque<Said>,
    pub(crate) ended: Option<End>,
    last_receipt: Option<Receipt>,
    /// Whether its transport is stalled.
    pub(crate) stalled: bool,
    /// Whether the shell around the relay's machine has a reason to look at it.
    pub(crate) awake: bool,
    pub(crate) server: Option<Server>,
    /// The names in the errors with which it rejects responses.
    pub(crate) blames: String,
    /// The older contents that are found in the place of what it rejects.
    pub(crate) older: Vec<Arc<Resource>>,
    /// Where it stands with names that it rejects, as the view was told last.
    pub(crate) stances: BTreeMap<(TypeUrl, Name), Stance>,
    pub(crate) wants: BTreeSet<(TypeUrl, Target)>,
    answers: Unshared,
    streams: u32,
    /// What the relay has checked about it.
    pub(crate) identity: Identity,
    topics: BTreeMap<TypeUrl, Topic>,
    /// Versions and contents seen: B-04 demands that equal versions mean equal contents.
    versions: BTreeMap<(TypeUrl, String), String>,
}

impl Client {
    pub(crate) fn new(dialect: Dialect, view: &str, chunk: usize) -> Self {
        let id = |text: &str| text.to_owned();
        Self {
            dialect,
            view: view.to_owned(),
            service: None,
            node: Some(Node {
                id: id("client"),
                cluster: id("stories"),
                ..Default::default()
            }),
            repeats_node: false,
            locates: false,
            inbox: VecDeque::new(),
            ended: None,
            last_receipt: None,
            stalled: false,
            awake: false,
            server: None,
            blames: String::new(),
            older: Vec::new(),
            stances: BTreeMap::new(),
            wants: BTreeSet::new(),
            answers: Unshared { chunk },
            streams: 0,
            identity: Identity::default(),
            topics: BTreeMap::new(),
            versions: BTreeMap::new(),
        }
    }

    /// The stream is gone; what the client holds stays.
    pub(crate) fn disconnect(&mut self) {
        self.server = None;
        self.stances.clear();
        self.wants.clear();
        self.inbox.clear();
        self.ended = None;
        for topic in self.topics.values_mut() {
            topic.started = false;
            topic.nonce.clear();
            topic.unsettled.clear();
        }
    }

    fn server(&mut self, settings: &Arc<StreamSettings>) -> &mut Server {
        let (dialect, service) = (self.dialect, self.service.clone());
        let (streams, identity) = (&mut self.streams, &self.identity);
        self.server.get_or_insert_with(|| {
            *streams += 1;
            // K-11: no two streams share a prefix.
            let nonce_prefix = 0x5eed_0000 + *streams;
            let identity = identity.clone();
            Server::new(
                settings.clone(),
                Opening {
                    dialect,
                    service,
                    nonce_prefix,
                    identity,
                    polls: false,
                },
            )
        })
    }

    /// Its requests have come through these relays.
    pub(crate) fn came_through(&mut self, relays: &[&str]) {
        let text = |text: &&str| Value {
            kind: Some(Kind::StringValue((*text).to_owned())),
        };
        let values = relays.iter().map(text).collect();
        let list = Value {
            kind: Some(Kind::ListValue(ListValue { values })),
        };
        let fields = [(RELAYS.to_owned(), list)].into();
        self.node.get_or_insert_default().metadata = Some(Struct { fields });
    }

    /// From now on every request carries another node.
    pub(crate) fn rename(&mut self, id: &str) {
        self.node.get_or_insert_default().id = id.to_owned();
        self.repeats_node = true;
    }

    /// Subscribes: the first request of a type on a stream carries all that the client knows.
    pub(crate) fn subscribe(
        &mut self,
        settings: &Arc<StreamSettings>,
        type_url: &TypeUrl,
        names: &[&str],
        now: Instant,
    ) {
        let topic = self.topics.entry(type_url.clone()).or_default();
        let first = !topic.started;
        topic.names.extend(names.iter().map(|name| (*name).to_owned()));
        let mut raw = topic.request();
        raw.subscribe = names.iter().map(|name| (*name).to_owned()).collect();
        if first {
            raw.subscribe = topic.names.iter().cloned().collect();
            raw.initial = topic
                .held
                .iter()
                .map(|(name, (_, version))| (name.clone(), version.clone()))
                .collect();
        }
        self.send(settings, type_url, raw, now);
    }

    pub(crate) fn unsubscribe(
        &mut self,
        settings: &Arc<StreamSettings>,
        type_url: &TypeUrl,
        names: &[&str],
        now: Instant,
    ) {
        let wildcard = self.has_wildcard(type_url);
        let topic = self.topics.entry(type_url.clone()).or_default();
        for name in names {
            topic.names.remove(*name);
            topic.legacy &= *name != "*";
            if !wildcard {
                topic.held.remove(*name);
            }
        }
        let kept = topic.names.clone();
        if names.contains(&"*") {
            topic.held.retain(|name, _| kept.contains(name));
        }
        let mut raw = topic.request();
        raw.unsubscribe = names.iter().map(|name| (*name).to_owned()).collect();
        self.send(settings, type_url, raw, now);
    }

    fn has_wildcard(&self, type_url: &TypeUrl) -> bool {
        self.topics
            .get(type_url)
            .is_some_and(|topic| topic.legacy || topic.names.contains("*"))
    }

    /// Accepts or rejects the responses that it has not answered yet, oldest first: all of them, or those of one type.
    pub(crate) fn settle(
        &mut self,
        settings: &Arc<StreamSettings>,
        only: Option<&TypeUrl>,
        accept: bool,
        now: Instant,
    ) {
        let mut settled = 0;
        let types: Vec<TypeUrl> = self
            .topics
            .keys()
            .filter(|of| only.is_none_or(|only| only == *of))
            .cloned()
            .collect();
        for type_url in types {
            let unread = self.inbox.iter().filter(|said| said.type_url == type_url).count();
            let topic = self.topics.get_mut(&type_url).expect("a topic");
            let read = topic.unsettled.len() - unread;
            let read: Vec<Said> = topic.unsettled.drain(..read).collect();
            settled += read.len();
            for said in read {
                let topic = self.topics.get_mut(&type_url).expect("a topic");
                if accept {
                    topic.take(&said, self.dialect == Dialect::Sotw && type_url.traits().full_state);
                }
                let raw = Raw {
                    nonce: said.nonce,
                    error: (!accept).then(|| format!("it is bad: {}", self.blames)),
                    ..topic.request()
                };
                self.send(settings, &type_url, raw, now);
            }
        }
        assert!(settled > 0, "there is nothing to settle");
    }

    /// Sends a request as it is.
    pub(crate) fn send(&mut self, settings: &Arc<StreamSettings>, type_url: &TypeUrl, raw: Raw, now: Instant) {
        let meant = self.service.as_ref().unwrap_or(type_url).clone();
        let topic = self.topics.entry(meant).or_default();
        topic.note(&raw, self.dialect);
        if !raw.nonce.is_empty() {
            topic.unsettled.retain(|said| said.nonce != raw.nonce);
        }
        // B-01: the node comes with the first request only.
        let says_node = self.server.is_none() || self.repeats_node;
        let node = self.node.clone().filter(|_| says_node);
        let error_detail = raw.error.map(|message| Detail {
            code: 13,
            message,
            ..Default::default()
        });
        let (dialect, answers, locates) = (self.dialect, self.answers, self.locates);
        let split = |names| {
            if locates {
                (Vec::new(), located(names))
            } else {
                (names, Vec::new())
            }
        };
        let url = if type_url.url().ends_with("/none") {
            String::new()
        } else {
            type_url.url().to_owned()
        };
        let server = self.server(settings);
        let receipt = match dialect {
            Dialect::Sotw => {
                let (resource_names, resource_locators) = split(raw.names);
                let request = DiscoveryRequest {
                    node,
                    version_info: raw.version,
                    resource_names,
                    resource_locators,
                    type_url: url,
                    response_nonce: raw.nonce,
                    error_detail,
                };
                server.handle(request, &answers, now)
            }
            Dialect::Delta => {
                let (resource_names_subscribe, resource_locators_subscribe) = split(raw.subscribe);
                let (resource_names_unsubscribe, resource_locators_unsubscribe) = split(raw.unsubscribe);
                let request = DeltaDiscoveryRequest {
                    node,
                    type_url: url,
                    resource_names_subscribe,
                    resource_locators_subscribe,
                    resource_names_unsubscribe,
                    resource_locators_unsubscribe,
                    initial_resource_versions: raw.initial,
                    response_nonce: raw.nonce,
                    error_detail,
                };
                server.handle(request, &answers, now)
            }
        };
        self.awake = true;
        match receipt {
            Ok(receipt) => self.last_receipt = Some(receipt),
            Err(end) => self.ended = Some(end),
        }
    }

    /// Checks how the relay understood the last request: its kind, or what the client has accepted with it.
    pub(crate) fn was_understood(&self, how: &str, now: Instant) {
        let kind = match &self.last_receipt.as_ref().expect("a request").kind {
            ReceiptKind::First => "first".to_owned(),
            ReceiptKind::Update => "update".to_owned(),
            ReceiptKind::Ack(_) if how == "ack" => how.to_owned(),
            ReceiptKind::Ack(Some(changed)) if changed.news => format!("changed {:?}", now - changed.since),
            ReceiptKind::Ack(_) => "no change".to_owned(),
            ReceiptKind::Nack { .. } => "nack".to_owned(),
            ReceiptKind::Stale => "stale".to_owned(),
        };
        assert_eq!(kind, how, "how the request was understood (left)");
    }

    /// The nonce and the version of the `number`th response of a type, over all streams of this client.
    pub(crate) fn quote(&self, type_url: &TypeUrl, number: usize) -> &(String, String) {
        let topic = self.topics.get(type_url).expect("a type that was asked for");
        topic
            .history
            .get(number - 1)
            .unwrap_or_else(|| panic!("there was no response {number}"))
    }

    /// The version under which the client got this content.
    pub(crate) fn version_of(&self, type_url: &TypeUrl, content: &str) -> String {
        let seen = |((of, version), what): (&(TypeUrl, String), &String)| {
            (of == type_url && what == content).then(|| version.clone())
        };
        self.versions
            .iter()
            .find_map(seen)
            .unwrap_or_else(|| content.to_owned())
    }

    /// Interest that begins or ends at this client.
    pub(crate) fn take_wants(&mut self) -> Vec<(TypeUrl, Target)> {
        let mut begun = Vec::new();
        while let Some(want) = self.server.as_mut().and_then(Server::poll_want) {
            let key = (want.type_url, want.target);
            if want.wanted {
                // F-07: in each spelling.
                let new = self.wants.insert(key.clone());
                assert!(new || key_is_new_style(&key), "{key:?} is wanted twice");
                begun.extend(new.then_some(key));
            } else {
                assert!(self.wants.remove(&key), "{key:?} was not wanted");
            }
        }
        begun
    }

    /// What the relay wants of a type for this client.
    pub(crate) fn wanted(&self, type_url: &TypeUrl) -> Vec<String> {
        let targets = self.wants.iter().filter(|(of, _)| of == type_url);
        let text = |target: &Target| match target {
            Target::Wildcard => Name::WILDCARD.to_owned(),
            Target::Name(name) => name.to_string(),
        };
        targets.map(|(_, target)| text(target)).collect()
    }

    /// Rings the bell, as the view does for those who want one of the names or the wildcard.
    pub(crate) fn ring(&mut self, changed: &[Changed]) {
        let Some(server) = &mut self.server else { return };
        for (type_url, names) in changed {
            let wants = |name: &Name| self.wants.contains(&(type_url.clone(), Target::Name(name.clone())));
            let mine = |name: &&Name| wants(name) || name.collection().is_some_and(|all| wants(&all));
            let mine: Vec<Name> = names.iter().filter(mine).cloned().collect();
            // as in a real view, a resource without a name wakes every session that wants anything of the type.
            if names.iter().any(Name::is_empty) && self.wants.iter().any(|(of, _)| of == type_url) {
                self.awake = true;
                server.handle_dirty(type_url, Dirty::All);
                continue;
            }
            self.awake |= !mine.is_empty() || self.wants.contains(&(type_url.clone(), Target::Wildcard));
            if !mine.is_empty() {
                server.handle_dirty(type_url, Dirty::Names(mine));
            }
        }
    }

    /// It reads another view from now on.
    pub(crate) fn moves(&mut self, now: Instant) {
        if let Some(server) = &mut self.server {
            server.handle_moved(now);
        }
        self.awake = true;
    }

    /// These are the rules from now on.
    pub(crate) fn govern(&mut self, access: &Arc<Access>, now: Instant) {
        let Some(server) = &mut self.server else { return };
        let governed = server.handle_access(access.clone(), &self.answers, now);
        self.ended = self.ended.take().or(governed.err());
        self.awake = true;
    }

    /// Runs the relay: a timer that is due, then all responses that the transport takes. Like a real shell, this one looks only
    /// if it has a reason.
    pub(crate) fn poll(&mut self, cut: &Cut, now: Instant) {
        let Some(server) = self.server.as_mut().filter(|_| self.ended.is_none()) else {
            return;
        };
        if server.poll_timeout().is_some_and(|due| due <= now) {
            self.awake = true;
            server.handle_timeout(now);
        }
        if self.awake && !self.stalled {
            self.read(usize::MAX, cut, now);
            self.awake = false;
        }
    }

    /// The transport takes up to this many responses.
    pub(crate) fn read(&mut self, count: usize, cut: &Cut, now: Instant) {
        let sight = Self::sight(cut);
        for _ in 0..count {
            let Some(server) = &mut self.server else { break };
            tell(server, &sight, &self.older, &mut self.stances);
            let Some(response) = server.poll_response(&sight, &self.answers, now) else {
                if tell(server, &sight, &self.older, &mut self.stances) || server.is_short() {
                    continue;
                }
                break;
            };
            assert_eq!(response.dialect, self.dialect);
            self.receive(wire::read(&response));
        }
        if let Some(end) = self.server.as_mut().and_then(Server::poll_end) {
            self.ended = Some(end);
        }
    }

    /// One server answers for all authorities but `nowhere`.
    fn sight(cut: &Cut) -> Sight {
        Sight::from(Arc::new(cut.clone()))
    }

    fn receive(&mut self, said: Said) {
        let sotw = self.dialect == Dialect::Sotw;
        let topic = self.topics.get_mut(&said.type_url);
        let topic = topic.unwrap_or_else(|| panic!("B-29: nobody asked for {:?}", said.type_url));
        assert!(
            topic.history.iter().all(|(nonce, _)| *nonce != said.nonce),
            "B-03: {} again",
            said.nonce
        );
        if sotw {
            assert!(
                topic.unsettled.is_empty(),
                "B-24: {said} while a response is on its way"
            );
            let nothing = topic.names.is_empty() && !topic.legacy;
            assert!(
                !nothing || said.items.is_empty(),
                "B-29: {said} to a client that wants nothing"
            );
        }
        topic.nonce.clone_from(&said.nonce);
        topic.history.push((said.nonce.clone(), said.version.clone()));
        topic.unsettled.push_back(said.clone());
        let mut set: Vec<String> = said
            .items
            .iter()
            .map(|item| identity(Name::read(&item.name, &said.type_url).as_str(), item.label.as_deref()))
            .collect();
        set.sort();
        set.dedup();
        let full = sotw && said.type_url.traits().full_state;
        // C-18, B-04: the same version never stands for two contents.
        let mut seen: Vec<(String, String)> = if full {
            vec![(said.version.clone(), set.join(" "))]
        } else {
            Vec::new()
        };
        let bodies = said
            .items
            .iter()
            .filter(|item| item.label.is_some() && !item.version.is_empty());
        // F-09: one name may have several spellings.
        let name = |item: &Item| Name::read(&item.name, &said.type_url);
        seen.extend(bodies.map(|item| {
            (
                item.version.clone(),
                identity(name(item).as_str(), item.label.as_deref()),
            )
        }));
        for (version, content) in seen {
            let twin = |((of, other), what): (&(TypeUrl, String), &String)| {
                *of == said.type_url && *what == content && *other != version
            };
            assert!(!self.versions.iter().any(twin), "K-09: {content} under two versions");
            let old = self
                .versions
                .insert((said.type_url.clone(), version.clone()), content.clone());
            assert!(
                old.is_none_or(|old| old == content),
                "B-04, C-18: {version} stands for two contents"
            );
        }
        self.inbox.push_back(said);
    }
}

fn key_is_new_style((_, target): &(TypeUrl, Target)) -> bool {
    matches!(target, Target::Name(name) if name.is_new_style())
}

fn located(names: Vec<String>) -> Vec<ResourceLocator> {
    names.into_iter().map(|name| ResourceLocator { name }).collect()
}

/// The view is told what the client rejects, and what is found in its place is offered. Returns whether there was anything to tell.
fn tell(
    server: &mut Server,
    sight: &Sight,
    older: &[Arc<Resource>],
    stances: &mut BTreeMap<(TypeUrl, Name), Stance>,
) -> bool {
    let mut any = false;
    while let Some(told) = server.poll_stance() {
        any = true;
        let Some(name) = told.name else { continue };
        if told.asks {
            server.handle_older(&told.type_url, &name, older.to_vec(), sight);
        }
        let key = (told.type_url, name);
        match told.stance {
            Some(stance) => _ = stances.insert(key, stance),
            None => _ = stances.remove(&key),
        }
    }
    any
}
