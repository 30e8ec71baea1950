// SPDX-License-Identifier: Apache-2.0
//! A collection with very many members: from a control plane through a view to sessions, and what that costs.
//!
//! The figures are those of a process of its own, so that nobody else's memory is in them. `MEMBERS=1000000` for a million, with
//! `cargo test --release --test cache -- --nocapture collections`.

use std::process::Command;

use bytes::Bytes;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, Resource as Wrapper};
use proto::google::protobuf::Any;
use protocol::{Client, ClientSettings, Code, Cutter, End};
use xds::{ServerFeatures, Sight, Unshared};

use prost::Message as _;

use super::*;

/// How many members there are, if `MEMBERS` says nothing.
const USUAL: usize = 15_000;
/// The number of members in one message of the control plane.
const AT_ONCE: usize = 5_000;
/// The most bytes that one member may cost one session, without what all sessions share, and with what is free again after the
/// answer was composed.
const PER_MEMBER: usize = 450;
/// The same for each of six sessions, which keep 16 bytes of it.
const KEPT: usize = 70;
/// The most bytes that one member may cost the view and its upstream machine, body and names included.
const IN_THE_VIEW: usize = 1200;
/// The most bytes that a refused session may take, however many members there are.
const REFUSED: usize = 80 << 20;
/// The longest time for a change of one member, however many there are: far below the time to look at all of them.
const ONE_CHANGE: Duration = Duration::from_secs(1);

const COLLECTION: &str = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/shop/*";

/// Bytes of memory that the process has for itself.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kib.unwrap_or_default() * 1024
}

fn member(number: usize, content: usize) -> Wrapper {
    Wrapper {
        name: COLLECTION.replace('*', &format!("{number:07}")),
        version: content.to_string(),
        resource: Some(Any {
            type_url: eds().url().to_owned(),
            value: Bytes::from(format!("{content:020}")),
        }),
        ..Wrapper::default()
    }
}

/// A control plane, the machine that reads from it, and the view.
struct Source {
    client: Client,
    view: Arc<View>,
    now: Instant,
    said: usize,
}

impl Source {
    fn new() -> Self {
        let settings = ClientSettings {
            types: Types::default(),
            relay_id: "relay".to_owned(),
            does_not_exist: Duration::from_secs(15),
            wildcard_quiet: Duration::from_millis(250),
            features: ServerFeatures::default(),
        };
        let node = Node {
            id: "relay".to_owned(),
            ..Node::default()
        };
        let mut client = Client::new(Arc::new(settings), Dialect::Delta, node);
        client.handle_connected(Duration::ZERO);
        Self {
            client,
            view: view(),
            now: start(),
            said: 0,
        }
    }

    /// Asks for what is wanted, and acknowledges what came.
    fn turn(&mut self) {
        for want in self.view.take_wants(self.now) {
            let changes = self.client.handle_want(&want);
            drop(self.view.publish(&changes));
        }
        while self.client.poll_request(self.now).is_some() {}
    }

    fn say(&mut self, resources: Vec<Wrapper>) {
        self.said += 1;
        let response = DeltaDiscoveryResponse {
            type_url: eds().url().to_owned(),
            nonce: self.said.to_string(),
            resources,
            ..Default::default()
        };
        let bytes = response.encode_to_vec();
        let mut cutter = Cutter::new(bytes.len(), usize::MAX);
        cutter.push(&bytes);
        let changes = cutter
            .finish(Dialect::Delta)
            .map(|response| self.client.handle_response(response, self.now));
        let changes = changes.unwrap_or_default();
        drop(self.view.publish(&changes));
        self.turn();
    }

    /// A quiet time, after which the collection is complete.
    fn rest(&mut self) {
        self.now += Duration::from_secs(11);
        let changes = self.client.handle_timeout(self.now);
        drop(self.view.publish(&changes));
    }
}

/// A client that asks for the collection, and acknowledges what it is sent.
struct Session {
    dialect: Dialect,
    server: Server,
    seat: Seat,
    now: Instant,
    /// The number of resources that were sent.
    got: usize,
    end: Option<End>,
}

impl Session {
    fn new(source: &Source, dialect: Dialect, names_per_stream: usize) -> Self {
        let settings = stream(StreamLimits {
            names_per_stream,
            ..StreamLimits::default()
        });
        let mut session = Self {
            dialect,
            server: opened(settings, dialect, 7),
            seat: source.view.enter(),
            now: source.now,
            got: 0,
            end: None,
        };
        session.says("");
        session
    }

    /// A request: the first one when there is no nonce.
    fn says(&mut self, nonce: &str) {
        let names = match self.dialect == Dialect::Sotw || nonce.is_empty() {
            true => vec![COLLECTION.to_owned()],
            false => Vec::new(),
        };
        let request = request(self.dialect, None, &eds(), names, nonce);
        let outcome = self.server.handle(request, &Unshared { chunk: 1 << 20 }, self.now);
        assert!(outcome.is_ok(), "{outcome:?}");
        while let Some(want) = self.server.poll_want() {
            assert_eq!(self.seat.want(&want), Ok(()));
        }
    }

    /// Reads everything that is sent.
    fn reads(&mut self) {
        for (type_url, dirty) in self.seat.bell().take() {
            self.server.handle_dirty(&type_url, dirty);
        }
        let mut sight = Sight::new(Arc::default(), ["a"].into_iter().collect());
        sight.add("a".into(), self.seat.view().cut());
        let answers = Unshared { chunk: 1 << 20 };
        loop {
            let Some(response) = self.server.poll_response(&sight, &answers, self.now) else {
                if self.server.is_short() {
                    continue;
                }
                break;
            };
            self.got += response.batch.items().len();
            let nonce = response.nonce.to_string();
            drop(response);
            self.says(&nonce);
        }
        self.end = self.server.poll_end();
    }
}

/// C-22, F-10, K-21: members cost a session a bounded number of bytes, and a change of one member no look at the others.
#[test]
fn very_many_members() {
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "collections::in_a_process_of_its_own",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .output()
        .expect("another process");
    let said = String::from_utf8_lossy(&child.stdout);
    println!("{said}");
    assert!(
        child.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&child.stderr)
    );
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "is run by `very_many_members`, in a process of its own"]
fn in_a_process_of_its_own() {
    let members = std::env::var("MEMBERS").map_or(USUAL, |members| members.parse().expect("a number"));
    let empty = resident();
    let mut source = Source::new();
    let first = Session::new(&source, Dialect::Delta, 0);
    source.turn();
    let begun = start();
    for number in (0..members).step_by(AT_ONCE) {
        source.say((number..number + AT_ONCE).map(|number| member(number, 1)).collect());
    }
    source.rest();
    let view = (resident() - empty) / members;
    println!("view: {view} bytes a member, {:?} in all", begun.elapsed());
    assert!(view < IN_THE_VIEW, "{view} bytes a member in the view");

    let (mut sessions, alone) = (vec![first], resident());
    for (at, dialect) in [Dialect::Delta, Dialect::Sotw].into_iter().enumerate() {
        let (before, begun) = (resident(), start());
        if at > 0 {
            sessions.push(Session::new(&source, dialect, 0));
        }
        sessions.iter_mut().for_each(Session::reads);
        let (took, each) = (begun.elapsed(), resident().saturating_sub(before) / members);
        println!("{dialect:?} session: {each} bytes a member, {took:?} in all");
        // The memory for composing the answer is free again, but not all of it has been given back.
        assert!(each < PER_MEMBER, "{each} bytes a member in a {dialect:?} session");
    }
    // The memory for composing answers is used again for the next ones, so many sessions show what each keeps.
    for _ in 0..4 {
        sessions.push(Session::new(&source, Dialect::Delta, 0));
        sessions.iter_mut().for_each(Session::reads);
    }
    let kept = resident().saturating_sub(alone) / sessions.len() / members;
    println!("{} sessions: {kept} bytes a member in each", sessions.len());
    assert!(kept < KEPT, "{kept} bytes a member in each session");
    assert!(sessions.iter().all(|session| session.got == members));

    source.say(vec![member(members / 2, 2)]);
    for session in &mut sessions {
        let begun = start();
        session.reads();
        let took = begun.elapsed();
        assert_eq!(session.got, members + 1, "one member and no other");
        assert!(took < ONE_CHANGE, "{took:?} for one change");
    }

    // A session over its limit is told so, and has cost no more than it may.
    let most = members * 2 / 3;
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let (before, begun) = (resident(), start());
        let mut session = Session::new(&source, dialect, most);
        session.reads();
        let (took, more) = (begun.elapsed(), resident().saturating_sub(before));
        println!("refused {dialect:?} session: {} KiB, {took:?}", more >> 10);
        assert!(more < REFUSED, "{more} bytes");
        let end = session.end.expect("an end");
        assert_eq!(end.code, Code::ResourceExhausted);
        assert_eq!(end.limit, Some("names_per_stream"));
        assert!(end.message.contains("limits.names_per_stream"), "{end}");
        assert_eq!(session.got, 0);
    }
}
