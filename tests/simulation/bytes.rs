// SPDX-License-Identifier: Apache-2.0
//! Control planes that compare names byte by byte, and clients that write one name in several spellings (F-07, F-13). A
//! client that asks by a text gets, under that text, what the control plane has under it or under another spelling that some
//! client used.
//!
//! Owns worlds of their own, with one view; `DISTRIBUTARY_BYTES=S` runs one of them and prints a trace. Leaves wildcards
//!  and rejections to the other worlds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cache::{Routes, Scopes, Seat, View};
use classes::Classes;
use prost::Message as _;
use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3 as discovery;
use protocol::{self, Client, Request, Server};
use xds::{Dialect, Name, ServerState, Sight, Unshared, WRAPPER_URL};

use super::body::{Content, Type, read};
use super::classes::{client_settings, opening, relay_node, scopes, stream_settings};
use super::now;
use super::rng::Rng;
use super::served::{entry, resource};
use super::wire::{cut, encode};

/// The number of worlds in every test run.
const WORLDS: u64 = 2000;
/// The steps of one world.
const STEPS: usize = 60;
/// The largest number of clients.
const CLIENTS: usize = 4;
/// Names, each in several spellings. What follows a `#` is a directive for the client.
const NAMES: [&[&str]; 4] = [
    &["x", "%78", "x#entry=y", "%78#entry=y"],
    &["a b?j=2&k=1", "a%20b?k=1&j=2", "a b?k=1&j=2", "a%20b?j=2&k=1"],
    &["d/e:f", "d%2Fe:f", "d/e%3Af"],
    &["\"", "%22"],
];

/// How a control plane treats several texts of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// It knows one of them.
    One,
    /// It has the same content under all of them.
    All,
    /// It treats each as a name of its own.
    Apart,
}

struct World {
    rng: Rng,
    now: Instant,
    kind: Type,
    settings: Arc<protocol::StreamSettings>,
    scopes: Scopes,
    clients: Vec<Asker>,
    writer: Option<Writer>,
    /// What clients have written, without directives.
    written: BTreeSet<String>,
    origin: Origin,
    last: u64,
    served: u64,
    broken: Option<String>,
    /// Prints a trace, when one seed is run alone.
    tells: bool,
}

/// One client stream.
struct Asker {
    dialect: Dialect,
    server: Server,
    seat: Seat,
    texts: BTreeSet<String>,
    /// By text; `None`: it does not exist.
    holds: BTreeMap<String, Option<u64>>,
    nonce: String,
}

/// The view's way to the control plane.
struct Writer {
    view: Arc<View>,
    client: Client,
}

/// The control plane, and the one stream to it.
struct Origin {
    dialect: Dialect,
    reads: Reads,
    /// Whether it reports missing names in delta.
    says_missing: bool,
    truth: BTreeMap<String, u64>,
    asked: BTreeSet<String>,
    sent: BTreeMap<String, u64>,
    missing: BTreeSet<String>,
    owes: bool,
    first: bool,
    nonces: u64,
    up: VecDeque<Request>,
    down: VecDeque<Bytes>,
}

fn full(kind: Type, text: &str) -> String {
    format!("xdstp://a/{}/{text}", kind.message())
}

/// What a control plane is asked for.
fn bare(text: &str) -> &str {
    text.split('#').next().unwrap_or_default()
}

fn dialect(rng: &mut Rng) -> Dialect {
    if rng.chance(50) { Dialect::Delta } else { Dialect::Sotw }
}

impl Origin {
    fn new(rng: &mut Rng) -> Self {
        Self {
            dialect: dialect(rng),
            reads: *rng
                .pick(&[Reads::One, Reads::All, Reads::Apart])
                .expect("there are some"),
            says_missing: rng.chance(60),
            truth: BTreeMap::new(),
            asked: BTreeSet::new(),
            sent: BTreeMap::new(),
            missing: BTreeSet::new(),
            owes: false,
            first: true,
            nonces: 0,
            up: VecDeque::new(),
            down: VecDeque::new(),
        }
    }

    /// Whether it can say that something is gone.
    const fn says_gone(&self, kind: Type) -> bool {
        matches!(self.dialect, Dialect::Delta) || kind.full_state()
    }

    fn change(&mut self, kind: Type, revision: u64, rng: &mut Rng) {
        let texts = rng.pick(&NAMES).copied().unwrap_or_default();
        let texts: Vec<String> = texts.iter().map(|text| full(kind, bare(text))).collect();
        let text = rng.pick(&texts).expect("there are some").clone();
        let known = texts.iter().any(|text| self.truth.contains_key(text));
        if self.says_gone(kind) && known && rng.chance(30) {
            match self.reads {
                Reads::Apart => drop(self.truth.remove(&text)),
                Reads::One | Reads::All => self.truth.retain(|text, _| !texts.contains(text)),
            }
            return;
        }
        match self.reads {
            Reads::Apart => drop(self.truth.insert(text, revision)),
            Reads::All => self.truth.extend(texts.into_iter().map(|text| (text, revision))),
            Reads::One if known && !(self.says_gone(kind) && rng.chance(20)) => {
                let own = self.truth.iter_mut().find(|(text, _)| texts.contains(text));
                own.into_iter().for_each(|(_, known)| *known = revision);
            }
            Reads::One => {
                self.truth.retain(|text, _| !texts.contains(text));
                self.truth.insert(text, revision);
            }
        }
    }

    fn hear(&mut self, request: Request) {
        match request {
            Request::Sotw(request) => {
                let asked: BTreeSet<String> = request.resource_names.into_iter().collect();
                if !asked.is_subset(&self.asked) {
                    self.owes = true;
                }
                self.asked = asked;
            }
            Request::Delta(request) => {
                for text in request.resource_names_subscribe {
                    self.sent.remove(&text);
                    self.missing.remove(&text);
                    self.asked.insert(text);
                }
                for text in request.resource_names_unsubscribe {
                    self.asked.remove(&text);
                    self.sent.remove(&text);
                    self.missing.remove(&text);
                }
                if std::mem::take(&mut self.first) {
                    let revision = |version: String| version.parse().unwrap_or_default();
                    let held = request.initial_resource_versions.into_iter();
                    self.sent.extend(held.map(|(text, version)| (text, revision(version))));
                }
            }
        }
    }

    fn content(text: &str, revision: u64) -> Content {
        Content {
            name: text.to_owned(),
            revision,
            empty: false,
            covered: false,
            ttl: None,
            bad: false,
            refers: Vec::new(),
            endpoints: None,
        }
    }

    /// Sends what has changed.
    fn speak(&mut self, kind: Type) {
        let there = self.truth.iter().filter(|(text, _)| self.asked.contains(*text));
        let there: BTreeMap<String, u64> = there.map(|(text, revision)| (text.clone(), *revision)).collect();
        self.nonces += 1;
        let nonce = self.nonces.to_string();
        let message = match self.dialect {
            Dialect::Sotw => {
                if !(self.owes || there != self.sent) || !kind.full_state() && there.is_empty() {
                    return;
                }
                let all = there.iter().map(|(text, revision)| Self::content(text, *revision));
                let response = discovery::DiscoveryResponse {
                    version_info: nonce.clone(),
                    resources: all.map(|content| entry(kind, &content, "")).collect(),
                    type_url: kind.url().to_owned(),
                    nonce,
                    ..Default::default()
                };
                self.owes = false;
                self.sent = there;
                response.encode_to_vec()
            }
            Dialect::Delta => {
                let news = there
                    .iter()
                    .filter(|(text, revision)| self.sent.get(*text) != Some(revision));
                let news = news.map(|(text, revision)| Self::content(text, *revision));
                let resources: Vec<discovery::Resource> = news.map(|content| resource(kind, &content, "")).collect();
                let gone = self.sent.keys().filter(|text| !there.contains_key(*text));
                let mut gone: BTreeSet<String> = gone.cloned().collect();
                let lacks = self.asked.iter().filter(|text| !there.contains_key(*text));
                let lacks = lacks.filter(|text| self.says_missing && !self.missing.contains(*text));
                gone.extend(lacks.cloned());
                if resources.is_empty() && gone.is_empty() {
                    return;
                }
                self.missing.extend(gone.iter().cloned());
                self.missing.retain(|text| !there.contains_key(text));
                self.sent = there;
                let response = discovery::DeltaDiscoveryResponse {
                    resources,
                    type_url: kind.url().to_owned(),
                    removed_resources: gone.into_iter().collect(),
                    nonce,
                    ..Default::default()
                };
                response.encode_to_vec()
            }
        };
        self.down.push_back(message.into());
    }

    /// The stream is lost.
    fn forget(&mut self) {
        self.asked.clear();
        self.sent.clear();
        self.missing.clear();
        self.up.clear();
        self.down.clear();
        (self.owes, self.first) = (false, true);
    }
}

impl World {
    fn new(seed: u64, now: Instant) -> Self {
        // A generator of its own, so that the seeds of other worlds do not change their meaning.
        let mut rng = Rng::new(seed ^ 0x0b17_e500);
        let classes = Classes::default();
        let settings = stream_settings(&classes);
        Self {
            now,
            kind: *rng.pick(&[Type::Eds, Type::Cds, Type::Rds]).expect("there are some"),
            settings: Arc::new(settings),
            scopes: scopes(&classes, Routes::default(), 0),
            clients: Vec::new(),
            writer: None,
            written: BTreeSet::new(),
            origin: Origin::new(&mut rng),
            rng,
            last: 0,
            served: 0,
            broken: None,
            tells: false,
        }
    }

    fn tell(&self, line: impl FnOnce() -> String) {
        if self.tells {
            println!("{}", line());
        }
    }

    fn step(&mut self) {
        self.now += self.rng.millis(1, 400);
        match self.rng.below(10) {
            0 if self.clients.len() < CLIENTS => self.arrive(),
            0 => {
                self.tell(|| "client 0 goes".to_owned());
                drop(self.clients.swap_remove(0));
            }
            1..=3 if !self.clients.is_empty() => {
                let at = self.rng.below(self.clients.len());
                self.ask(at);
            }
            4 if !self.clients.is_empty() => {
                let at = self.rng.below(self.clients.len());
                self.give_up(at);
            }
            5..=7 => {
                self.last += 1;
                self.origin.change(self.kind, self.last, &mut self.rng);
                self.tell(|| format!("origin: {:?}", self.origin.truth));
            }
            8 if self.rng.chance(20) => self.now += Duration::from_secs(16),
            9 if self.rng.chance(30) => self.disconnect(),
            _ => {}
        }
        let most = self.rng.below(3);
        self.turn(most);
    }

    fn arrive(&mut self) {
        let dialect = dialect(&mut self.rng);
        let mut server = Server::new(self.settings.clone(), opening(dialect, 7));
        let text = self.text();
        self.tell(|| format!("client {} comes: {dialect:?} + {text}", self.clients.len()));
        let node = Some(Node {
            id: "client".to_owned(),
            client_features: vec!["xds.config.resource-in-sotw".to_owned()],
            ..Node::default()
        });
        let answers = Unshared { chunk: 1 << 20 };
        let (names, type_url) = (vec![text.clone()], self.kind.url().to_owned());
        let receipt = match dialect {
            Dialect::Sotw => {
                let request = discovery::DiscoveryRequest {
                    node,
                    resource_names: names,
                    type_url,
                    ..Default::default()
                };
                server.handle(request, &answers, self.now)
            }
            Dialect::Delta => {
                let request = discovery::DeltaDiscoveryRequest {
                    node,
                    resource_names_subscribe: names,
                    type_url,
                    ..Default::default()
                };
                server.handle(request, &answers, self.now)
            }
        };
        receipt.expect("the request is in order");
        let known = server.node().expect("the request has a node").clone();
        let seat = self
            .scopes
            .enter(&known, None, 0, &Arc::default())
            .expect("there is room");
        let mut client = Asker {
            dialect,
            server,
            seat,
            texts: BTreeSet::from([text]),
            holds: BTreeMap::new(),
            nonce: String::new(),
        };
        client.say_wants();
        self.clients.push(client);
    }

    /// Some text, which is noted.
    fn text(&mut self) -> String {
        let texts = self.rng.pick(&NAMES).copied().unwrap_or_default();
        let text = full(self.kind, self.rng.pick(texts).copied().unwrap_or_default());
        self.written.insert(bare(&text).to_owned());
        text
    }

    fn ask(&mut self, at: usize) {
        let text = self.text();
        self.tell(|| format!("client {at}: + {text}"));
        let client = &mut self.clients[at];
        client.texts.insert(text.clone());
        client.say(self.kind, vec![text], Vec::new(), self.now);
    }

    fn give_up(&mut self, at: usize) {
        let texts: Vec<String> = self.clients[at].texts.iter().cloned().collect();
        if let Some(text) = self.rng.pick(&texts).cloned() {
            self.tell(|| format!("client {at}: - {text}"));
            let client = &mut self.clients[at];
            client.texts.remove(&text);
            client.holds.remove(&text);
            client.say(self.kind, Vec::new(), vec![text], self.now);
        }
    }

    fn disconnect(&mut self) {
        self.tell(|| "a new stream".to_owned());
        self.origin.forget();
        if let Some(writer) = &mut self.writer {
            let changes = writer.client.handle_disconnected();
            drop(writer.view.publish(&changes));
            writer.client.handle_connected(Duration::ZERO);
        }
    }

    /// All participants have a turn. At most this many messages arrive in each direction.
    fn turn(&mut self, most: usize) {
        for view in self.scopes.take_created() {
            self.origin.forget();
            let settings = client_settings("relay", Duration::from_millis(1));
            let mut client = Client::new(settings, self.origin.dialect, relay_node());
            client.handle_connected(Duration::ZERO);
            view.publish_server_state(ServerState::Up);
            self.writer = Some(Writer { view, client });
        }
        self.scopes.sweep(self.now);
        self.writer.take_if(|writer| writer.view.mailbox().is_closed());
        self.converse(most);
        let mut clients = std::mem::take(&mut self.clients);
        for client in &mut clients {
            self.served += client.read(self.kind, self.now, &mut self.broken);
        }
        self.clients = clients;
    }

    fn converse(&mut self, most: usize) {
        let Some(writer) = &mut self.writer else { return };
        for want in writer.view.take_wants(self.now) {
            let changes = writer.client.handle_want(&want);
            drop(writer.view.publish(&changes));
        }
        for _ in 0..most {
            if let Some(bytes) = self.origin.down.pop_front() {
                let arrival = cut(bytes).finish(self.origin.dialect).expect("it is a response");
                let changes = writer.client.handle_response(arrival, self.now);
                drop(writer.view.publish(&changes));
            }
        }
        let changes = writer.client.handle_timeout(self.now);
        drop(writer.view.publish(&changes));
        while let Some(request) = writer.client.poll_request(self.now) {
            self.origin.up.push_back(request);
        }
        for _ in 0..most {
            if let Some(request) = self.origin.up.pop_front() {
                if self.tells {
                    println!("origin <- {request:?}");
                }
                self.origin.hear(request);
                self.origin.speak(self.kind);
            }
        }
        self.origin.speak(self.kind);
        let strange = self.origin.asked.iter().find(|text| !self.written.contains(*text));
        if let Some(text) = strange {
            self.broken
                .get_or_insert(format!("{text} is asked for, and nobody wrote it"));
        }
    }

    /// Lets everything arrive, and all timers expire.
    fn rest(&mut self) {
        for _ in 0..60 {
            self.now += Duration::from_secs(2);
            (0..3).for_each(|_| self.turn(usize::from(u8::MAX)));
        }
    }

    /// Checks that all content is right.
    fn judge(&mut self) {
        let name = |text: &String| Name::read(bare(text), self.kind.type_url());
        let mut asked: BTreeMap<Name, BTreeSet<String>> = BTreeMap::new();
        for text in self.clients.iter().flat_map(|client| &client.texts) {
            asked.entry(name(text)).or_default().insert(bare(text).to_owned());
        }
        let truth = &self.origin.truth;
        let mut wrong = Vec::new();
        for client in &self.clients {
            for text in &client.texts {
                let holds = client.holds.get(text).copied().flatten();
                let there: BTreeSet<u64> = asked[&name(text)]
                    .iter()
                    .filter_map(|text| truth.get(text))
                    .copied()
                    .collect();
                // Texts of clients that have left may still be asked for.
                let once = self.written.iter().filter(|other| name(other) == name(text));
                let once: BTreeSet<u64> = once.filter_map(|text| truth.get(text)).copied().collect();
                let sayable = client.dialect == Dialect::Delta || self.kind.full_state();
                let right = match holds {
                    Some(revision) => once.contains(&revision) || once.is_empty() && !sayable,
                    None => there.is_empty(),
                };
                if !right {
                    wrong.push(format!(
                        "{text} is held @{holds:?} ({:?}), not one of {there:?}",
                        client.dialect
                    ));
                }
            }
        }
        // F-04: all texts of one name mean the same.
        for (name, texts) in &asked {
            let holds = self.clients.iter().flat_map(|client| &client.holds);
            let holds = holds.filter(|(text, _)| texts.contains(bare(text)));
            let holds: BTreeSet<u64> = holds.filter_map(|(_, revision)| *revision).collect();
            let mut there = texts.iter().filter(|text| truth.contains_key(*text));
            if holds.len() > 1 && there.next().is_some() {
                wrong.push(format!("{name} is held @{holds:?}"));
            }
        }
        // E-19: when nothing more is wanted on a stream, the server is not told.
        let moot = |text: &&String| asked.is_empty() || asked.contains_key(&name(text));
        for text in self.origin.asked.iter().filter(|text| !moot(text)) {
            wrong.push(format!("{text} is asked for, and nobody wants it"));
        }
        if let Some(wrong) = wrong.into_iter().next() {
            self.broken.get_or_insert(wrong);
        }
    }

    /// On a new stream, one subscription to the text that the control plane answers to serves all clients.
    fn judge_anew(&mut self) {
        let name = |text: &String| Name::read(text, self.kind.type_url());
        let mut ways: BTreeMap<Name, Vec<&String>> = BTreeMap::new();
        for text in &self.origin.asked {
            ways.entry(name(text)).or_default().push(text);
        }
        let known = |text: &&String| self.origin.truth.contains_key(text.as_str());
        let many = ways.values().find(|texts| texts.len() > 1 && texts.iter().any(known));
        if let Some(texts) = many {
            let what = format!("{texts:?} are all asked for");
            self.broken.get_or_insert(what);
        }
    }
}

impl Asker {
    fn say_wants(&mut self) {
        while let Some(want) = self.server.poll_want() {
            self.seat.want(&want).expect("there is room");
        }
    }

    fn say(&mut self, kind: Type, more: Vec<String>, fewer: Vec<String>, now: Instant) {
        let answers = Unshared { chunk: 1 << 20 };
        let receipt = match self.dialect {
            Dialect::Sotw => {
                let request = discovery::DiscoveryRequest {
                    resource_names: self.texts.iter().cloned().collect(),
                    type_url: kind.url().to_owned(),
                    version_info: self.nonce.clone(),
                    response_nonce: self.nonce.clone(),
                    ..Default::default()
                };
                self.server.handle(request, &answers, now)
            }
            Dialect::Delta => {
                let request = discovery::DeltaDiscoveryRequest {
                    resource_names_subscribe: more,
                    resource_names_unsubscribe: fewer,
                    type_url: kind.url().to_owned(),
                    response_nonce: std::mem::take(&mut self.nonce),
                    ..Default::default()
                };
                self.server.handle(request, &answers, now)
            }
        };
        receipt.expect("it is in order");
        self.say_wants();
    }

    /// Reads and acknowledges all responses; returns how many.
    fn read(&mut self, kind: Type, now: Instant, broken: &mut Option<String>) -> u64 {
        let answers = Unshared { chunk: 1 << 20 };
        let mut entries = 0;
        loop {
            for (type_url, dirty) in self.seat.bell().take() {
                self.server.handle_dirty(&type_url, dirty);
            }
            let sight = Sight::new(self.seat.view().cut(), Default::default());
            let Some(response) = self.server.poll_response(&sight, &answers, now) else {
                return entries;
            };
            self.nonce = response.nonce.to_string();
            let (said, all) = told(kind, encode(&response), self.dialect);
            drop(response);
            if all && kind.full_state() {
                self.holds.clear();
            }
            for (text, revision) in said {
                entries += 1;
                // F-09: each client is answered in its own spelling.
                if !self.texts.contains(&text) {
                    let what = format!("{text} comes to a client that asked for {:?}", self.texts);
                    broken.get_or_insert(what);
                }
                self.holds.insert(text, revision);
            }
            self.say(kind, Vec::new(), Vec::new(), now);
        }
    }
}

/// The content of each text in a response, and whether the response is complete.
fn told(kind: Type, bytes: Bytes, dialect: Dialect) -> (Vec<(String, Option<u64>)>, bool) {
    let of = |inner: discovery::Resource| {
        let facts = inner.resource.map(|any| read(kind, &any).expect("it is a body"));
        (inner.name, facts.map(|facts| facts.revision))
    };
    match dialect {
        Dialect::Sotw => {
            let response = discovery::DiscoveryResponse::decode(bytes).expect("it is a response");
            let all = response.resources.into_iter().map(|any| {
                if any.type_url == WRAPPER_URL {
                    return of(discovery::Resource::decode(any.value).expect("it is a wrapper"));
                }
                let facts = read(kind, &any).expect("it is a body");
                (facts.name, Some(facts.revision))
            });
            (all.collect(), true)
        }
        Dialect::Delta => {
            let response = discovery::DeltaDiscoveryResponse::decode(bytes).expect("it is a response");
            let gone = response.removed_resources.into_iter().map(|text| (text, None));
            (response.resources.into_iter().map(of).chain(gone).collect(), false)
        }
    }
}

/// F-07, F-13: a client that asks by a text is served, under that text, what a control plane that compares bytes has.
#[test]
fn names_are_asked_for_as_they_are_written() {
    let mut served = 0;
    let begun = now();
    let only = std::env::var("DISTRIBUTARY_BYTES").ok();
    let only: Option<u64> = only.map(|seed| seed.parse().expect("a number"));
    for seed in only.map_or(0..WORLDS, |seed| seed..seed + 1) {
        let mut world = World::new(seed, begun);
        world.tells = only.is_some();
        for _ in 0..STEPS {
            world.step();
            assert_eq!(world.broken, None, "seed {seed}");
        }
        world.rest();
        world.judge();
        world.disconnect();
        world.rest();
        world.judge();
        world.judge_anew();
        let (kind, origin) = (world.kind, &world.origin);
        let (dialect, reads) = (origin.dialect, origin.reads);
        assert_eq!(world.broken, None, "seed {seed} ({kind:?}, {dialect:?}, {reads:?})");
        served += world.served;
    }
    println!("{WORLDS} worlds, {served} entries");
    // Otherwise nothing was checked.
    assert!(only.is_some() || served > WORLDS * 10);
}
