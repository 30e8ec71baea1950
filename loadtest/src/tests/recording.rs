//! Tests that a recording says again what a control plane said, without its secrets.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Parser as _;
use distributary::json::{Schemas, Secrets};

use super::dump::world_with_a_secret;
use super::now;
use crate::command::arguments::{Arguments, Command};
use crate::fleet::client::profile::Profile;
use crate::fleet::crew::Crew;
use crate::fleet::{Fleet, Plan};
use crate::measure::shard::Shard;
use crate::origin::control_plane::ControlPlane;
use crate::origin::ledger::{Spec, What};
use crate::origin::world::World;
use crate::recording::{Event, Head, Recording, Sink};
use crate::wire::folder::Folder;
use crate::wire::kind::{Dialect, Kind};
use crate::wire::place::Target;

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const PATIENCE: Duration = Duration::from_secs(60);

fn arguments(words: &str) -> Arguments {
    Arguments::try_parse_from(["distributary-load"].into_iter().chain(words.split_whitespace())).unwrap()
}

/// A control plane with clusters and their endpoints.
fn origin() -> (Arc<World>, ControlPlane) {
    let spec = |kind| Spec {
        kind,
        resources: 5,
        extras: 0,
        bytes: 300,
        authority: None,
    };
    let world = World::new(&[spec(Kind::Cds), spec(Kind::Eds)], now());
    let control_plane = ControlPlane::start(LOCAL, Arc::clone(&world), None).unwrap();
    (world, control_plane)
}

fn change(world: &World, kind: Kind, index: u32, what: What) {
    let ledger = world.ledger(kind).unwrap();
    ledger.write(index, what, 0, false, now()).unwrap();
    ledger.announce(&[index]);
}

/// Waits until `done`.
async fn until(what: &str, done: impl Fn() -> bool) {
    let begin = now();
    while !done() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Records a control plane under change. Returns the file, and what the control plane had at the end.
async fn recorded(folder: &Folder, words: &str) -> (PathBuf, Arc<World>) {
    let (world, control_plane) = origin();
    let file = folder.0.join("recording.jsonl");
    let words = format!(
        "record --server {} --output {} --force --node-id edge-{{n}} {words}",
        control_plane.address,
        file.display()
    );
    let arguments = arguments(&words);
    let Some(Command::Record(listen)) = &arguments.command else {
        panic!("not the command")
    };
    let acknowledged = |count: u64| {
        let counts = Arc::clone(&control_plane.counts);
        move || counts.acknowledgements.load(std::sync::atomic::Ordering::Relaxed) >= count
    };
    let changes = async {
        // Two clients, two types, and no listeners.
        until("the first answers", acknowledged(6)).await;
        change(&world, Kind::Eds, 1, What::New);
        until("a change", acknowledged(8)).await;
        change(&world, Kind::Cds, 2, What::Nothing);
        // In SotW, clients that drop the endpoints of a removed cluster repeat their last acknowledgement.
        let repeated = if words.contains("sotw") { 2 } else { 0 };
        until("a removal", acknowledged(10 + repeated)).await;
        change(&world, Kind::Eds, 3, What::New);
        until("another change", acknowledged(12 + repeated)).await;
    };
    let told = listen.run(&arguments.audience().unwrap(), changes).await.unwrap();
    assert!(
        told.contains("recording.jsonl: ") && told.contains(" events in "),
        "{told}"
    );
    (file, world)
}

fn read(file: &std::path::Path) -> Recording {
    Recording::read(file, &mut |text| panic!("{text}")).unwrap()
}

/// Clients of this profile, each on a connection of its own.
fn fleet(address: SocketAddr, profile: Profile, clients: u32, world: &Arc<World>) -> Fleet {
    let plan = Plan {
        target: Target::local(address, None),
        clients,
        per_connection: 1,
        world: Arc::clone(world),
        crew: Crew::of(profile),
        shard: Shard::WHOLE,
    };
    let fleet = Fleet::start(&plan, 1).unwrap();
    fleet.admit(clients);
    fleet
}

#[tokio::test]
async fn a_recording_played_to_many_clients_ends_as_the_control_plane_did() {
    let folder = Folder::new().unwrap();
    for words in ["--clients 2", "--clients 2 --dialect sotw"] {
        let (file, origin) = recorded(&folder, words).await;
        let recording = read(&file);
        assert_eq!(recording.head.clients, ["edge-0", "edge-1"]);
        assert!(recording.events.windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms));
        let of_second = recording.events.iter().filter(|event| event.client == 1).count();
        assert_eq!(
            of_second, 13,
            "five clusters, five endpoints, two changes, a removal: {recording:#?}"
        );
        let playing = arguments(&format!("--play {} --pace 50 --as edge-1", file.display()));
        let player = playing.player(&file, &mut |text| panic!("{text}")).unwrap();
        assert!(
            player.describe().contains("13 events of edge-1"),
            "{}",
            player.describe()
        );
        let world = World::learning();
        let mut profile = Profile::plain(Dialect::Delta, Kind::Cds, 1);
        profile.interests = vec![
            (Kind::Cds, crate::fleet::client::profile::Interest::All),
            (Kind::Eds, crate::fleet::client::profile::Interest::Follow),
        ];
        let fleet = fleet(player.address(), profile, 60, &world);
        assert_eq!(player.run().await, 13);
        for index in 0..5 {
            for kind in [Kind::Cds, Kind::Eds] {
                let (from, to) = (origin.ledger(kind).unwrap(), world.ledger(kind).unwrap());
                let name = from.name(index);
                let (wanted, _) = from.current(index).unwrap();
                let hash = wanted.as_ref().map(|body| xxhash_rust::xxh3::xxh3_128(body));
                let place = to.index(name.as_bytes()).unwrap();
                // Endpoints of a cluster that is gone are not asked for any more.
                let gone = kind == Kind::Eds && index == 2;
                let is_last = || to.inspect(place, |history| history.last().is_some_and(|last| last.hash == hash));
                until(&name, || gone || is_last() == Some(true)).await;
            }
        }
        let begin = now();
        while fleet.behind().await.unwrap() > 0 {
            assert!(begin.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(fleet.progress.violated(), 0, "{:?}", fleet.progress.violations());
        fleet.stop().unwrap();
    }
}

/// A recording of two nodes, which were told different clusters.
fn of_two_nodes(folder: &Folder) -> PathBuf {
    let file = folder.0.join("nodes.jsonl");
    let nodes = vec!["edge-0".to_owned(), "edge-1".to_owned()];
    let mut sink = Sink::create(&file, &Head::new("http://origin:1".to_owned(), 7, nodes), false).unwrap();
    for (at_ms, client, name) in [(0, 0, "a"), (0, 1, "b"), (5, 1, "c")] {
        let event = Event {
            at_ms,
            client,
            kind: Kind::Cds,
            name: name.to_owned(),
            body: Some(Bytes::from(format!("\n\u{1}{name}"))),
        };
        assert!(sink.write(&event).unwrap());
    }
    sink.close(10).unwrap();
    file
}

/// One client with this node id, that asks for all clusters.
fn client(address: SocketAddr, node: &str, dialect: Dialect) -> (Fleet, Arc<World>) {
    let mut profile = Profile::plain(dialect, Kind::Cds, 1);
    profile.identity = Arc::new(arguments(&format!("--node-id {node}")).identity.resolve().unwrap());
    let world = World::learning();
    (fleet(address, profile, 1, &world), world)
}

/// What a node gets that polls for all clusters.
async fn polled(address: SocketAddr, node: &str) -> String {
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
    let exchange = async {
        let path = format!("http://{address}{}", Kind::Cds.poll_path().unwrap());
        let request = http::Request::post(path).body(()).unwrap();
        let (answer, mut body) = client.send_request(request, false).unwrap();
        let asked = format!(r#"{{"node":{{"id":"{node}"}}}}"#);
        body.send_data(asked.into(), true).unwrap();
        let data = answer.await.unwrap().into_body().data().await;
        String::from_utf8(data.unwrap().unwrap().to_vec()).unwrap()
    };
    tokio::select! { text = exchange => text, ended = connection => panic!("{ended:?}") }
}

/// An incident of several nodes: each gets its own again.
#[tokio::test]
async fn each_node_gets_what_it_was_told() {
    let folder = Folder::new().unwrap();
    let file = of_two_nodes(&folder);
    for (flags, expected) in [("", ["a", "b c", "a"]), ("--as edge-1", ["b c"; 3])] {
        let playing = arguments(&format!("--play {} {flags}", file.display()));
        let player = playing.player(&file, &mut |text| panic!("{text}")).unwrap();
        let said = player.describe();
        let each = said.contains("to each node its own, to others those of edge-0");
        assert_eq!(each, flags.is_empty(), "{said}");
        let clients = [
            ("edge-0", Dialect::Delta),
            ("edge-1", Dialect::Sotw),
            ("other", Dialect::Delta),
        ];
        let clients = clients.map(|(node, dialect)| client(player.address(), node, dialect));
        player.run().await;
        let polled = polled(player.address(), "edge-1").await;
        assert!(
            polled.contains("\"name\":\"c\"") && !polled.contains("\"a\""),
            "{polled}"
        );
        for ((fleet, world), names) in clients.into_iter().zip(expected) {
            let ledger = world.ledger(Kind::Cds).unwrap();
            let known = || {
                let names = (0..ledger.len()).map(|index| ledger.name(index));
                names.collect::<Vec<_>>().join(" ")
            };
            until(names, || known() == names).await;
            assert_eq!(fleet.progress.violated(), 0, "{:?}", fleet.progress.violations());
            fleet.stop().unwrap();
        }
    }
}

/// A private key inside of a listener does not get into a recording.
#[tokio::test]
async fn secrets_are_left_out() {
    let world = world_with_a_secret();
    let control_plane = ControlPlane::start(LOCAL, Arc::clone(&world), None).unwrap();
    let folder = Folder::new().unwrap();
    let file = folder.0.join("secret.jsonl");
    let words = format!(
        "record --server {} --output {} --force",
        control_plane.address,
        file.display()
    );
    let given = arguments(&words);
    let Some(Command::Record(listen)) = &given.command else {
        panic!("not the command")
    };
    let counts = Arc::clone(&control_plane.counts);
    let has_it = move || counts.acknowledgements.load(std::sync::atomic::Ordering::Relaxed) >= 1;
    let told = listen
        .run(&given.audience().unwrap(), until("the listener", has_it))
        .await
        .unwrap();
    assert!(
        told.contains("1 resources had secrets, which are replaced by `[redacted]`"),
        "{told}"
    );
    let recording = read(&file);
    assert_eq!(recording.events.len(), 1);
    let body = recording.events[0].body.clone().unwrap();
    assert!(!body.windows(12).any(|part| part == b"very private") && body.windows(6).any(|part| part == b"public"));
    let shown = Schemas::standard().decode("envoy.config.listener.v3.Listener", &body, Secrets::Show);
    assert!(String::from_utf8(shown.unwrap().text).unwrap().contains("[redacted]"));

    // Nothing else ends a recording that has its time.
    let given = arguments(&format!("{words} --for 1ms"));
    let Some(Command::Record(listen)) = &given.command else {
        panic!("not the command")
    };
    let told = listen
        .run(&given.audience().unwrap(), std::future::pending())
        .await
        .unwrap();
    assert!(told.contains(" events in "), "{told}");
}

#[tokio::test]
async fn who_cannot_be_recorded_is_told() {
    let folder = Folder::new().unwrap();
    let file = folder.0.join("none.jsonl");
    let error = async |words: String| {
        let arguments = arguments(&format!("record --output {} {words}", file.display()));
        let Some(Command::Record(listen)) = &arguments.command else {
            panic!("not the command")
        };
        match arguments.audience() {
            Ok(audience) => listen.run(&audience, std::future::pending()).await.unwrap_err(),
            Err(error) => error,
        }
        .to_string()
    };
    let none = error(String::new()).await;
    assert_eq!(none, "--server is needed: the control plane that is heard");
    let many = error("--server 127.0.0.1:1 --clients 9".to_owned()).await;
    assert!(
        many.starts_with("a recording has at most 8 clients, but there are 9"),
        "{many}"
    );
    let silent = std::net::TcpListener::bind(LOCAL).unwrap();
    let address = silent.local_addr().unwrap();
    let nothing = error(format!("--server {address} --deadline 200ms")).await;
    assert!(
        nothing.starts_with("the server said nothing within 200ms (--deadline)"),
        "{nothing}"
    );
    assert!(!file.exists(), "the next try needs the name");
}

#[tokio::test]
async fn a_recording_is_replaced_only_by_force() {
    let (_world, control_plane) = origin();
    let folder = Folder::new().unwrap();
    let file = folder.0.join("kept.jsonl");
    std::fs::write(&file, "kept").unwrap();
    let record = async |more: &str| {
        let words = format!(
            "record --server {} --output {} --for 300ms{more}",
            control_plane.address,
            file.display()
        );
        let arguments = arguments(&words);
        let Some(Command::Record(listen)) = &arguments.command else {
            panic!("not the command")
        };
        listen.run(&arguments.audience().unwrap(), std::future::pending()).await
    };
    let refused = record("").await.unwrap_err().to_string();
    assert!(
        refused.ends_with("kept.jsonl is there already: choose another --output, or replace it with --force"),
        "{refused}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    record(" --force").await.unwrap();
    assert!(!read(&file).events.is_empty());
}
