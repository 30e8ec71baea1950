// SPDX-License-Identifier: Apache-2.0
//! Tenants behind one relay, in front of a control plane that keeps one snapshot for each node id (K-28). Whatever the rules
//! and the nodes of clients are, no tenant gets another tenant's content, unless the relay has warned that two views have one
//! id.
//!
//! Owns a world of its own, with random rules and nodes. Leaves delays and faults to the other worlds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cache::{Routes, Scopes, Seat, View};
use classes::{Classes, Member, Members, Parts, Passes, Path, Pattern, Piece, Rule, Selector};
use prost::Message as _;
use proto::envoy::config::core::v3::{Locality, Node};
use proto::envoy::service::discovery::v3 as discovery;
use proto::google::protobuf::{Any, ListValue, Struct, Value, value::Kind};
use protocol::{self, Client, ClientSettings, Request, Server};
use xds::{Dialect, Sight, Unshared};

use super::body::Type;
use super::classes::{client_settings, opening, relay_node, scopes, stream_settings};
use super::now;
use super::rng::Rng;
use super::wire::cut;

/// The number of steps in every test run, over all worlds.
const STEPS: u64 = 100_000;
/// The largest number of clients.
const CLIENTS: usize = 12;
/// The steps of one world.
const WORLD: usize = 400;
/// The fields of a node that can show a client's tenant, and that a key can name.
const TENANT: [&[&str]; 3] = [&["TENANT"], &["LABELS", "acme.io/tenant"], &["mesh", "tenant"]];
/// Values that are easily confused when they are joined without escaping.
const VALUES: [&str; 17] = [
    "",
    "a",
    "b",
    "c",
    "ab",
    "bc",
    "a/b",
    "b/c",
    "a=b",
    "%2F",
    "a%2Fb",
    "/",
    "=",
    "b/locality.zone=c",
    "c/locality.zone=a",
    "relay",
    "ü\n",
];

/// Who a client is. Two tenants differ in at least one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Tenant {
    name: &'static str,
    zone: &'static str,
}

struct World {
    rng: Rng,
    now: Instant,
    classes: Classes,
    values: Vec<&'static str>,
    scopes: Scopes,
    settings: Arc<protocol::StreamSettings>,
    upstream: Arc<ClientSettings>,
    sessions: Vec<Session>,
    writers: Vec<Writer>,
    /// What the control plane keeps for each node id: the tenant of the last node with that id.
    snapshots: BTreeMap<String, Tenant>,
    /// Ids for which the relay has warned that two views have them.
    said: BTreeSet<String>,
    /// The first leak for which the relay had given no warning.
    leak: Option<String>,
    leaks: u64,
    responses: u64,
    nonces: u64,
}

/// One client stream.
struct Session {
    tenant: Tenant,
    server: Server,
    seat: Seat,
    node: Node,
}

/// One view's stream to the control plane.
struct Writer {
    view: Arc<View>,
    client: Client,
    /// The node, as the control plane knows it.
    node: Node,
    /// The snapshot that it was last sent.
    sent: Option<Tenant>,
}

fn text(text: &str) -> Value {
    Value {
        kind: Some(Kind::StringValue(text.to_owned())),
    }
}

fn map(members: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value {
        kind: Some(Kind::StructValue(Struct {
            fields: members.into_iter().collect(),
        })),
    }
}

impl Tenant {
    fn new(values: &[&'static str], rng: &mut Rng) -> Self {
        let mut value = || rng.pick(values).copied().unwrap_or_default();
        Self {
            name: value(),
            zone: value(),
        }
    }

    fn node(&self, rng: &mut Rng) -> Node {
        let nested = |outer: &str, inner: &str| (outer.to_owned(), map([(inner.to_owned(), text(self.name))]));
        let own = ListValue {
            values: vec![text(self.name), text(self.zone)],
        };
        let fields = [
            ("TENANT".to_owned(), text(self.name)),
            nested("LABELS", "acme.io/tenant"),
            nested("mesh", "tenant"),
            (
                "whole".to_owned(),
                Value {
                    kind: Some(Kind::ListValue(own)),
                },
            ),
        ];
        Node {
            // K-28: an id says which tenant a client is of. Only clients of one tenant may share an id.
            id: format!("{}~{}~{}", self.name, self.zone, rng.below(3)),
            cluster: self.name.to_owned(),
            locality: Some(Locality {
                zone: self.zone.to_owned(),
                ..Locality::default()
            }),
            metadata: Some(Struct { fields: fields.into() }),
            ..Node::default()
        }
    }

    /// The tenant that a control plane finds in a node, from all its fields.
    fn of(node: &Node) -> Self {
        let known = |text: &str| VALUES.iter().find(|value| **value == text).copied().unwrap_or_default();
        let place = node.locality.as_ref().map_or("", |place| place.zone.as_str());
        let fields = node.metadata.as_ref().map(|members| &members.fields);
        if let Some(Kind::ListValue(list)) = fields
            .and_then(|fields| fields.get("whole"))
            .and_then(|value| value.kind.as_ref())
        {
            let both: Vec<&str> = list.values.iter().map(said).collect();
            return Self {
                name: known(both[0]),
                zone: known(both[1]),
            };
        }
        let names = TENANT.iter().filter_map(|path| {
            let (first, rest) = path.split_first()?;
            let mut value = fields?.get(*first)?;
            for key in rest {
                let Some(Kind::StructValue(inner)) = &value.kind else {
                    return None;
                };
                value = inner.fields.get(*key)?;
            }
            Some(said(value))
        });
        let cluster = Some(node.cluster.as_str()).filter(|cluster| *cluster != "relays");
        let name = cluster.into_iter().chain(names).find(|name| !name.is_empty());
        Self {
            name: known(name.unwrap_or_default()),
            zone: known(place),
        }
    }

    fn resource(&self) -> String {
        format!("{}|{}", self.name, self.zone)
    }
}

fn said(value: &Value) -> &str {
    match &value.kind {
        Some(Kind::StringValue(text)) => text,
        _ => "",
    }
}

/// Rules, each of which tells all tenants apart by its key. Templates may be arbitrarily bad.
fn rules(rng: &mut Rng) -> Classes {
    let name = |rng: &mut Rng| match rng.below(4) {
        0 => Selector::Cluster,
        at => Selector::Metadata(Path::new(TENANT[at - 1].iter().copied())),
    };
    let rule = |rng: &mut Rng| {
        let mut key = if rng.chance(20) {
            Vec::new()
        } else {
            vec![name(rng), Selector::Zone]
        };
        if key.is_empty() || rng.chance(20) {
            key.insert(rng.below(key.len() + 1), Selector::Id);
        }
        if rng.chance(30) {
            key.reverse();
        }
        let template = |rng: &mut Rng| {
            let mut pieces = Vec::new();
            for at in 0..key.len() {
                if rng.chance(60) {
                    pieces.push(Piece::Text(
                        (*rng.pick(&["/", "", "=", "relay/", "~"]).unwrap_or(&"")).to_owned(),
                    ));
                }
                if rng.chance(90) {
                    pieces.push(Piece::Key(at));
                }
            }
            pieces
        };
        let id = rng.chance(40).then(|| template(rng));
        let passes = match rng.below(5) {
            0 if key.contains(&Selector::Id) => Passes::Whole,
            1 => Passes::Parts(Parts {
                metadata: Members::All,
                locality: true,
                user_agent: true,
            }),
            2 => Passes::Parts(Parts {
                metadata: Members::These(vec![Member {
                    path: Path::new(["whole"]),
                    below: false,
                }]),
                ..Parts::default()
            }),
            // If the key is the id alone, the control plane needs the whole node to know the tenant.
            _ if key == [Selector::Id] => Passes::Whole,
            _ => Passes::Nothing,
        };
        Rule {
            key,
            id: id.filter(|_| passes != Passes::Whole),
            passes,
            ..Rule::default()
        }
    };
    let mut all: Vec<Rule> = Vec::new();
    if rng.chance(40) {
        let pattern = *rng.pick(&["a*", "*b", "relay", "*"]).unwrap_or(&"*");
        let matches = vec![(Selector::Zone, Pattern::read(pattern).expect("it is a pattern"))];
        all.push(Rule { matches, ..rule(rng) });
    }
    all.push(rule(rng));
    Classes::new(all)
}

impl World {
    fn new(seed: u64, now: Instant) -> Self {
        // A generator of its own, so that the seeds of other worlds do not change their meaning.
        let mut rng = Rng::new(seed ^ 0x7e4a_4e75);
        // With few values, tenants often have one in common.
        let values = (0..5).filter_map(|_| rng.pick(&VALUES).copied()).collect();
        let classes = rules(&mut rng);
        let settings = stream_settings(&classes);
        Self {
            scopes: scopes(&classes, Routes::default(), 0),
            classes,
            values,
            rng,
            now,
            settings: Arc::new(settings),
            upstream: client_settings("relay", Duration::from_millis(1)),
            sessions: Vec::new(),
            writers: Vec::new(),
            snapshots: BTreeMap::new(),
            said: BTreeSet::new(),
            leak: None,
            leaks: 0,
            responses: 0,
            nonces: 0,
        }
    }

    fn step(&mut self) {
        self.now += self.rng.millis(1, 400);
        match self.rng.below(10) {
            0..=3 => self.arrive(),
            4..=5 if self.sessions.len() > 1 => self.leave(),
            _ if self.sessions.len() > CLIENTS => self.leave(),
            6 => {
                self.now += Duration::from_secs(31);
                self.scopes.sweep(self.now);
            }
            7 => {
                // A control plane that restarts makes new snapshots, from the nodes that come.
                if self.rng.chance(10) {
                    self.snapshots.clear();
                }
                self.writers.iter_mut().for_each(|writer| writer.sent = None);
            }
            _ => {}
        }
        self.turn();
    }

    /// A stream ends.
    fn leave(&mut self) {
        let gone = self.rng.below(self.sessions.len());
        drop(self.sessions.swap_remove(gone));
    }

    /// A client opens a stream.
    fn arrive(&mut self) {
        let tenant = Tenant::new(&self.values, &mut self.rng);
        let node = tenant.node(&mut self.rng);
        let mut server = Server::new(self.settings.clone(), opening(Dialect::Delta, 7));
        let request = discovery::DeltaDiscoveryRequest {
            node: Some(node.clone()),
            type_url: Type::Cds.url().to_owned(),
            ..Default::default()
        };
        let answers = Unshared { chunk: 1 << 20 };
        server
            .handle(request, &answers, self.now)
            .expect("the request is in order");
        let known = server.node().expect("the request has a node").clone();
        let seat = self
            .scopes
            .enter(&known, None, 0, &Arc::default())
            .expect("there is room");
        while let Some(want) = server.poll_want() {
            seat.want(&want).expect("there is room");
        }
        self.sessions.push(Session {
            tenant,
            server,
            seat,
            node,
        });
    }

    /// All participants have a turn.
    fn turn(&mut self) {
        for view in self.scopes.take_created() {
            let (node, twin) = self.scopes.introduce(&view, &relay_node());
            if twin.is_some() {
                self.said.insert(node.id.clone());
            }
            let mut client = Client::new(self.upstream.clone(), Dialect::Delta, node.clone());
            client.handle_connected(Duration::ZERO);
            self.writers.push(Writer {
                view,
                client,
                node,
                sent: None,
            });
        }
        self.writers.retain(|writer| !writer.view.mailbox().is_closed());
        for at in 0..self.writers.len() {
            self.converse(at);
        }
        let mut sessions = std::mem::take(&mut self.sessions);
        for session in &mut sessions {
            self.read(session);
        }
        self.sessions = sessions;
    }

    /// Runs a view's stream. The control plane answers with the snapshot for the node id, made for the tenant that it finds in
    /// the last node with that id.
    fn converse(&mut self, at: usize) {
        let writer = &mut self.writers[at];
        for want in writer.view.take_wants(self.now) {
            let changes = writer.client.handle_want(&want);
            drop(writer.view.publish(&changes));
        }
        let mut asked = false;
        while let Some(request) = writer.client.poll_request(self.now) {
            let request = super::turn::introduced(request, writer.client.take_node());
            if let Request::Delta(request) = request
                && let Some(node) = request.node
            {
                asked = true;
                writer.node = node;
            }
        }
        if asked {
            self.snapshots.insert(writer.node.id.clone(), Tenant::of(&writer.node));
        }
        let snapshot = self
            .snapshots
            .entry(writer.node.id.clone())
            .or_insert_with(|| Tenant::of(&writer.node));
        if writer.client.wanted() && writer.sent.as_ref() != Some(snapshot) {
            self.nonces += 1;
            let before = writer.sent.replace(snapshot.clone());
            let response = discovery::DeltaDiscoveryResponse {
                type_url: Type::Cds.url().to_owned(),
                nonce: self.nonces.to_string(),
                resources: vec![resource(&snapshot.resource())],
                removed_resources: before.iter().map(Tenant::resource).collect(),
                ..Default::default()
            };
            let response = cut(response.encode_to_vec())
                .finish(Dialect::Delta)
                .expect("it is a response");
            let changes = writer.client.handle_response(response, self.now);
            drop(writer.view.publish(&changes));
        }
        let changes = writer.client.handle_timeout(self.now);
        drop(writer.view.publish(&changes));
    }

    /// A client reads and acknowledges all responses.
    fn read(&mut self, session: &mut Session) {
        let answers = Unshared { chunk: 1 << 20 };
        loop {
            for (type_url, dirty) in session.seat.bell().take() {
                session.server.handle_dirty(&type_url, dirty);
            }
            let sight = Sight::new(session.seat.view().cut(), Default::default());
            let Some(response) = session.server.poll_response(&sight, &answers, self.now) else {
                return;
            };
            self.responses += 1;
            for item in response.batch.items() {
                let got = item.resource.name().to_string();
                if got != session.tenant.resource() {
                    self.note(session, &got);
                }
            }
            let request = discovery::DeltaDiscoveryRequest {
                type_url: response.type_url.url().to_owned(),
                response_nonce: response.nonce.to_string(),
                ..Default::default()
            };
            drop(response);
            session
                .server
                .handle(request, &answers, self.now)
                .expect("it is in order");
        }
    }

    /// Notes that a client got content of another tenant.
    fn note(&mut self, session: &Session, got: &str) {
        self.leaks += 1;
        let writer = self
            .writers
            .iter()
            .find(|writer| Arc::ptr_eq(&writer.view, session.seat.view()));
        let id = writer.map_or("", |writer| writer.node.id.as_str());
        // Only a template may give two views one id.
        let templates = self.classes.rules().iter().any(|rule| rule.id.is_some());
        if !templates || !self.said.contains(id) {
            let (tenant, node, rules) = (&session.tenant, &session.node, self.classes.rules());
            let leak = format!("{got:?} at {tenant:?}, which is seen as {id:?}\n{node:?}\n{rules:#?}");
            self.leak.get_or_insert(leak);
        }
    }
}

fn resource(name: &str) -> discovery::Resource {
    let length = u8::try_from(name.len()).expect("names are short");
    discovery::Resource {
        name: name.to_owned(),
        version: "1".to_owned(),
        resource: Some(Any {
            type_url: Type::Cds.url().to_owned(),
            value: Bytes::from([&[0x0a, length], name.as_bytes()].concat()),
        }),
        ..Default::default()
    }
}

/// K-28: no resource of one tenant at another, over 100,000 random steps; where a template gives two views one id, the relay has said so.
#[test]
fn no_tenant_gets_what_is_another_s() {
    let (mut steps, mut responses, mut told) = (0, 0, 0);
    let begun = now();
    for seed in 0.. {
        if steps >= STEPS {
            break;
        }
        let mut world = World::new(seed, begun);
        for _ in 0..WORLD {
            world.step();
            steps += 1;
            if let Some(leak) = &world.leak {
                panic!("seed {seed}: {leak}");
            }
        }
        responses += world.responses;
        told += world.leaks;
    }
    println!(
        "{steps} steps, {responses} responses, {told} foreign resources where the relay had said that two views have one id"
    );
    // Otherwise nothing was checked.
    assert!(responses > STEPS / 10 && told > 0);
}
