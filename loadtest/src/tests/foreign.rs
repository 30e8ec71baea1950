// SPDX-License-Identifier: Apache-2.0
//! Tests of runs at a server that is not this program's: what the default scenario asserts, what is left out because it is not known,
//! and the reason if there is no such server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Response;

use super::now;
use super::scenarios::try_record;
use crate::command::arguments::Arguments;
use crate::fleet::client::profile::Profile;
use crate::fleet::crew::Crew;
use crate::fleet::{Fleet, Plan};
use crate::measure::quantities::Time;
use crate::measure::record::{Recorder, counter};
use crate::origin::control_plane::ControlPlane;
use crate::origin::ledger::{Ledger, Spec};
use crate::origin::world::World;
use crate::story::file::{BUILT_IN, Scenario};
use crate::wire::kind::{Dialect, Kind};
use crate::wire::place::Target;

/// A control plane that is served as if it were another's, with what changes it.
pub(super) fn another() -> (ControlPlane, Arc<World>) {
    let spec = |kind| Spec {
        kind,
        resources: 3,
        extras: 0,
        bytes: 200,
        authority: None,
    };
    let world = World::new(&[Kind::Cds, Kind::Eds, Kind::Lds, Kind::Rds].map(spec), now());
    let plane = ControlPlane::start("127.0.0.1:0".parse().unwrap(), world.clone(), None).unwrap();
    (plane, world)
}

/// The usual scenario of another server, with nine clients and a short watch, and with these phases after it.
pub(super) fn any_server(more: &str) -> Scenario {
    let text = BUILT_IN.iter().find(|(name, _)| *name == "any-server").unwrap().1;
    let mut scenario = Scenario::read("here", &(text.replace("30s", "1s") + more), None, &[]).unwrap();
    scenario.clients.count = 9;
    scenario
}

#[test]
fn another_server_has_a_scenario_of_its_own() {
    let scenario = |words: &str| {
        let words = ["x"].into_iter().chain(words.split_whitespace());
        <Arguments as clap::Parser>::parse_from(words).scenario().to_owned()
    };
    assert_eq!(scenario("--server a:1"), "any-server");
    assert_eq!(scenario("--upstream a:1"), "any-server");
    assert_eq!(scenario("churn --server a:1"), "churn");
    assert_eq!(scenario("--server a:1 --control-plane 127.0.0.1:1"), "churn");
    assert_eq!(scenario(""), "churn");
}

/// Changes endpoints while the phase `watch` runs, each after all nine clients have the one before. Returns how many there were.
fn change(world: &World, recorder: &Recorder, over: &AtomicBool) -> u32 {
    let (begin, mut changes) = (now(), 0);
    loop {
        let phase = recorder.look(now()).unwrap().filter(|phase| phase.name == "watch");
        let responses = phase.map(|phase| phase.counter(counter::RESPONSES));
        if responses.is_some_and(|responses| responses >= 9.0 * f64::from(changes)) {
            if changes > 0 && over.load(Ordering::Acquire) {
                return changes;
            }
            changes += 1;
            world.ledger(Kind::Eds).unwrap().change(1, 0, false, now());
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "{changes}: {responses:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_first_client_that_sees_a_change_is_not_behind() {
    let (plane, world) = another();
    let scenario = any_server("  - { name: after, do: { rest: 1ms } }");
    let recorder = Recorder::new("here", now()).unwrap();
    let over = Arc::<AtomicBool>::default();
    let changing = {
        let (recorder, over) = (recorder.clone(), Arc::clone(&over));
        std::thread::spawn(move || change(&world, &recorder, &over))
    };
    let (mut changing, mut changes) = (Some(changing), 0);
    // The phase before ends only after this.
    let mut say = |phase: &str| {
        if phase == "after" {
            over.store(true, Ordering::Release);
            changes = changing.take().unwrap().join().unwrap();
        }
    };
    let server = plane.address.to_string();
    let arguments = <Arguments as clap::Parser>::parse_from(["x", "--server", &server]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let played = crate::story::play::run(&scenario, &arguments, &recorder, &mut say);
    runtime.block_on(played).unwrap();
    let record = recorder.finish(now()).unwrap();
    assert!(record.held(), "{:#?}\n{:#?}", record.assertions, record.breaches);
    let watch = record.phases.iter().find(|phase| phase.name == "watch").unwrap();
    assert!(changes > 0);
    assert_eq!(watch.propagation.count(), u64::from(8 * changes));
}

#[test]
fn a_live_server_passes_and_what_is_not_known_is_left_out() {
    let (plane, _world) = another();
    let server = format!("--server {}", plane.address);
    let record = try_record(&any_server(""), &server).unwrap();
    let watched = try_record(&any_server(""), &format!("{server} --pid {}", std::process::id())).unwrap();
    assert!(record.held(), "{:#?}\n{:#?}", record.assertions, record.breaches);
    let said: Vec<_> = record.assertions.iter().map(|it| &*it.text).collect();
    let joined = "clients with an answer to all that they asked for";
    let streams = "clients without a stream at the end";
    let behind = "clients that lack a change that another one saw";
    let (empty, gap) = (
        "clients that got nothing of all that they asked for",
        "longest time that a client was without a stream",
    );
    let join = [joined, empty, streams, gap];
    assert_eq!(said, [&join[..], &join, &[behind, streams, gap]].concat());
    assert_eq!(record.phases.last().unwrap().with_stream, Some(9));
    let note = record.notes.iter().find(|note| note.what == "changes").unwrap();
    assert_eq!(note.value, "no client saw one after another client");
    let watch = record.phases.last().unwrap();
    assert!(watch.server.is_none() && watch.series.iter().all(|second| second.owed.is_none()));
    assert!(
        !record.counters.keys().any(|name| name.contains("upstream")),
        "{:?}",
        record.counters
    );
    let text = crate::report::table::table(&record);
    assert!(!text.contains("server CPU") && text.contains("tool CPU"), "{text}");
    assert!(watched.held(), "{:#?}", watched.assertions);
    assert!(watched.phases.last().unwrap().server.unwrap().resident_bytes > 0);
    assert!(crate::report::table::table(&watched).contains("server CPU"));
}

/// B-20: the built-in control plane answers for a type of which it has nothing, as others do. Otherwise a relay asks it anew on another
/// stream.
#[test]
fn a_type_without_resources_is_answered() {
    let plane = ControlPlane::start("127.0.0.1:0".parse().unwrap(), World::new(&[], now()), None).unwrap();
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let plan = Plan {
            target: Target::local(plane.address, None),
            clients: 1,
            per_connection: 1,
            world: World::learning(),
            crew: Crew::of(Profile::plain(dialect, Kind::Lds, 0)),
            above: None,
        };
        let fleet = Fleet::start(&plan).unwrap();
        fleet.admit(1);
        let begin = now();
        while fleet.progress.messages() == 0 {
            assert!(begin.elapsed() < Duration::from_secs(30), "{dialect:?}: no answer");
            std::thread::yield_now();
        }
        fleet.stop().unwrap();
    }
}

/// A server may answer a node that it does not know with nothing.
#[test]
fn an_empty_answer_is_told() {
    let plane = ControlPlane::start("127.0.0.1:0".parse().unwrap(), World::new(&[], now()), None).unwrap();
    let record = try_record(&within(2), &format!("--server {}", plane.address));
    let told = record.map_or_else(
        |error| format!("{error:#}"),
        |record| {
            assert!(!record.held(), "{:#?}", record.assertions);
            format!("{:?}", record.assertions)
        },
    );
    assert!(told.contains("node known to"), "{told}");
}

/// The usual scenario, whose first phase may take so many seconds.
fn within(seconds: u64) -> Scenario {
    let mut scenario = any_server("");
    scenario.phases[0].limit = Some(Time(Duration::from_secs(seconds)));
    scenario
}

fn reason(words: &str) -> String {
    format!("{:#}", try_record(&any_server(""), words).unwrap_err())
}

#[test]
fn a_server_that_is_not_there_is_told() {
    // While it is bound, nobody else can listen there.
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let free = bound.local_addr().unwrap();
    let error = reason(&format!("--server {free}"));
    assert!(
        error.contains("refused") && error.contains("is anything listening there"),
        "{error}"
    );
    let gone = reason(&format!("--server {free} --pid 4194305"));
    assert!(gone.contains("--pid 4194305"), "{gone}");
}

/// Listens, and treats each connection in this way.
fn serve<F: Future<Output = ()>>(handle: impl Fn(tokio::net::TcpStream) -> F + Send + 'static) -> SocketAddr {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let address = socket.local_addr().unwrap();
    // It ends with the program.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(socket).unwrap();
            while let Ok((client, _)) = listener.accept().await {
                handle(client).await;
            }
        });
    });
    address
}

/// Answers every request with this status, and with this gRPC status.
fn answering(status: u16, grpc: Option<&'static str>) -> SocketAddr {
    serve(move |client| async move {
        let mut connection = h2::server::handshake(client).await.unwrap();
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            let mut head = Response::builder().status(status);
            if let Some(code) = grpc {
                head = head.header("grpc-status", code);
            }
            let _ = respond.send_response(head.body(()).unwrap(), true);
        }
    })
}

#[test]
fn a_server_that_refuses_or_is_none_is_told_without_a_breach() {
    for (address, words) in [
        (answering(200, Some("16")), "gRPC status 16"),
        (answering(200, Some("7")), "does it accept this client? See `node_id`"),
        (
            answering(200, Some("12")),
            "does it know this form of the protocol? See `dialect`",
        ),
        (answering(404, None), "is it an xDS server?"),
    ] {
        let error = reason(&format!("--server {address}"));
        assert!(
            error.contains(words) && error.contains("client 0 is not served"),
            "{error}"
        );
    }
}

/// Answers every connection with these bytes.
fn saying(answer: &'static [u8]) -> SocketAddr {
    serve(move |mut client| async move {
        use tokio::io::AsyncWriteExt as _;
        let _ = client.write_all(answer).await;
        std::future::pending().await
    })
}

#[test]
fn a_server_that_does_not_speak_http2_is_told() {
    for (address, words) in [
        (
            saying(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            "an HTTP/1 server answered, with `HTTP/1.1 400 Bad Request`; xDS is gRPC over HTTP/2: give the server's port for gRPC",
        ),
        (
            saying(b"SSH-2.0-x\r\n"),
            "a server that does not speak HTTP/2 answered, with `SSH-2.0-x`; xDS is gRPC",
        ),
        (
            saying(&[21, 3, 1, 0, 2, 2, 70]),
            "a server that wants TLS answered; write https:// before its address",
        ),
    ] {
        let error = reason(&format!("--server {address}"));
        assert!(error.contains(words) && error.contains(&address.to_string()), "{error}");
    }
}

#[test]
fn a_server_that_says_nothing_is_told() {
    let silent = serve(|client| async move {
        let _client = client;
        std::future::pending().await
    });
    let mut scenario = within(1);
    scenario.clients.groups[0].node_id = Some("edge-{n}".to_owned());
    let error = format!(
        "{:#}",
        try_record(&scenario, &format!("--server {silent}")).unwrap_err()
    );
    assert!(
        error.contains("sent nothing within 1s")
            && error.contains("`edge-0`")
            && error.contains("is this node known to it?"),
        "{error}"
    );
}

#[test]
fn who_lacks_a_change_that_another_client_saw_is_known() {
    let bell = Arc::default();
    let ledger = Ledger::learning(Kind::Cds, bell);
    let index = ledger.index(b"a").unwrap();
    let learn = |held: Option<u32>, body: &[u8]| ledger.learn(index, held, Some(body), now()).unwrap();
    let first = learn(None, b"one").content.serial;
    // Two clients hold the same; one sees the change.
    let second = learn(Some(first), b"two");
    assert!(second.since.is_none() && ledger.is_superseded(index, first));
    assert!(!ledger.is_superseded(index, second.content.serial));
    let other = learn(Some(first), b"two");
    assert!(other.since.is_some() && other.content.serial == second.content.serial);
    // The change is taken back: who never left the first content lacks nothing.
    let back = learn(Some(second.content.serial), b"one");
    assert!(back.since.is_none() && back.content.serial > second.content.serial);
    assert!(!ledger.is_superseded(index, first) && ledger.is_superseded(index, second.content.serial));
    // A client that comes late through the change does not make the newest content old.
    assert!(learn(Some(first), b"two").since.is_some() && !ledger.is_superseded(index, back.content.serial));
    // Many more contents are bounded.
    let mut held = back.content.serial;
    for number in 0..200_u32 {
        held = learn(Some(held), &number.to_be_bytes()).content.serial;
    }
    assert_eq!(ledger.inspect(index, <[_]>::len), Some(64));
    assert!(learn(Some(first), b"new").since.is_none());
}
