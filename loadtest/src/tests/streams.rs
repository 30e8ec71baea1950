// SPDX-License-Identifier: Apache-2.0
//! Tests of servers that end streams: one that dies, refuses, freezes or sends its clients away.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;
use http::{HeaderMap, Response};
use peers::request::{Messages, framed};
use prost::Message as _;

use super::foreign::{another, any_server};
use super::now;
use crate::command::arguments::Arguments;
use crate::measure::record::{Assertion, Record, Recorder};
use crate::story::file::Scenario;
use crate::subject::network::{Network, Stopped, Wires};

const STREAMS: &str = "clients without a stream at the end";

/// Plays a scenario at a server, and does something when each phase begins.
fn played(scenario: &Scenario, server: SocketAddr, mut at: impl FnMut(&str)) -> Record {
    let server = server.to_string();
    let arguments = <Arguments as clap::Parser>::parse_from(["x", "--server", &server]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let recorder = Recorder::new("here", now()).unwrap();
    let mut say = |phase: &str| at(phase);
    runtime
        .block_on(crate::story::play::run(scenario, &arguments, &recorder, &mut say))
        .unwrap();
    recorder.finish(now()).unwrap()
}

/// The only assertion that did not hold.
fn failed(record: &Record) -> &Assertion {
    let failed: Vec<_> = record.assertions.iter().filter(|it| !it.held()).collect();
    let [only] = failed.as_slice() else {
        panic!("{:#?}\n{:#?}", record.assertions, record.breaches)
    };
    only
}

fn counted(record: &Record, name: &str) -> f64 {
    record.counters.get(name).copied().unwrap_or_default()
}

#[test]
fn a_server_that_dies_and_stays_away_is_no_success() {
    let (plane, _world) = another();
    let (address, mut plane) = (plane.address, Some(plane));
    let record = played(&any_server(""), address, |phase| {
        if phase == "watch" {
            plane = None;
        }
    });
    let failed = failed(&record);
    assert_eq!((failed.phase.as_deref(), &*failed.text), (Some("watch"), STREAMS));
    assert!((failed.measured.unwrap().value - 9.0).abs() < f64::EPSILON);
    let why = failed.why.as_deref().unwrap();
    assert!(
        why.starts_with("9 of 9 clients: the connection failed: ") && why.contains("refused"),
        "{why}"
    );
    assert!(
        counted(&record, "connections failed: refused") >= 9.0,
        "{:?}",
        record.counters
    );
    let watch = record.phases.last().unwrap();
    assert_eq!(
        (watch.with_stream, watch.series.last().unwrap().with_stream),
        (Some(0), Some(0))
    );
    assert_eq!(record.phases[0].with_stream, Some(1));
}

/// Clients whose connections are cut come back. For how long they were without streams is told of that phase, and of the run.
#[test]
fn streams_that_are_away_for_a_while() {
    let (plane, _world) = another();
    let network = Network::start(plane.address).unwrap();
    let record = played(&any_server(""), network.address, |phase| {
        if phase == "watch" {
            network.cut(Wires::ALL);
        }
    });
    assert!(record.held(), "{:#?}", record.assertions);
    let away = |name: &str| {
        let mut phases = record.phases.iter();
        phases
            .find(|phase| phase.name == name)
            .unwrap()
            .longest_without_stream_ms
            .unwrap()
    };
    assert!(away("join") <= 0.0 && away("watch") > 0.0, "{:?}", record.phases);
    let text = crate::report::table::table(&record);
    assert!(text.contains("; a client was without a stream for "), "{text}");
}

/// What is drawn for each second has a point for a phase that is shorter.
#[test]
fn a_phase_of_less_than_a_second_has_a_point() {
    let (plane, _world) = another();
    let record = played(
        &any_server("  - { name: short, do: { rest: 100ms } }"),
        plane.address,
        |_| {},
    );
    let short = record.phases.last().unwrap();
    assert_eq!((&*short.name, short.series.len()), ("short", 1));
}

/// With `churn`, clients may be without streams at the end of a phase, but not all of them for all of it.
#[test]
fn a_phase_without_any_stream_is_no_success() {
    let (plane, _world) = another();
    let (address, mut plane) = (plane.address, Some(plane));
    let mut scenario = any_server("  - { name: after, do: { rest: 100ms } }");
    scenario.churn = true;
    let record = played(&scenario, address, |phase| {
        if phase == "watch" {
            plane = None;
        }
    });
    let failed = record.assertions.iter().rfind(|it| !it.held()).unwrap();
    let text = "a client has a stream during the phase";
    assert_eq!((failed.phase.as_deref(), &*failed.text), (Some("after"), text));
    assert!(record.assertions.iter().all(|it| it.text != STREAMS));
    let why = failed.why.as_deref().unwrap();
    assert!(
        why.starts_with("nobody had one; at the end, 9 of 9 clients: ") && why.contains("refused"),
        "{why}"
    );
}

#[test]
fn a_server_that_freezes_is_no_success() {
    let (plane, _world) = another();
    let network = Network::start(plane.address).unwrap();
    let scenario = any_server("  - { name: frozen, do: { rest: 1100ms } }");
    let record = played(&scenario, network.address, |phase| {
        if phase == "frozen" {
            network.hold(Wires::ALL, Stopped::Everything);
        }
    });
    let failed = failed(&record);
    assert_eq!((failed.phase.as_deref(), &*failed.text), (Some("frozen"), STREAMS));
    assert_eq!(
        failed.why.as_deref(),
        Some("9 of 9 clients: the connection failed: the server did not answer a ping within 5s")
    );
    assert_eq!(record.phases.last().unwrap().with_stream, Some(0));
    assert!(
        counted(&record, "connections failed: silent") >= 9.0,
        "{:?}",
        record.counters
    );
}

/// How the server below ends streams.
#[derive(Clone, Debug)]
struct Manner {
    /// After this time, with OK.
    lasting: Duration,
    /// At once, with UNAVAILABLE, and all that are open.
    refuses: Arc<AtomicBool>,
}

/// Serves clients that ask for everything in delta; there is one resource of each type.
fn server(manner: Manner) -> SocketAddr {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let address = socket.local_addr().unwrap();
    // It ends with the program.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let local = tokio::task::LocalSet::new();
        runtime.block_on(local.run_until(async {
            let listener = tokio::net::TcpListener::from_std(socket).unwrap();
            let manner = Rc::new(manner);
            while let Ok((client, _)) = listener.accept().await {
                tokio::task::spawn_local(connection(client, Rc::clone(&manner)));
            }
        }));
    });
    address
}

async fn connection(client: tokio::net::TcpStream, manner: Rc<Manner>) {
    let Ok(mut connection) = h2::server::handshake(client).await else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        if manner.refuses.load(Ordering::Acquire) {
            let head = Response::builder()
                .header("grpc-status", "14")
                .header("grpc-message", "overloaded");
            let _ = respond.send_response(head.body(()).unwrap(), true);
            continue;
        }
        let Ok(stream) = respond.send_response(Response::new(()), false) else {
            continue;
        };
        tokio::task::spawn_local(answer(request.into_body(), stream, Rc::clone(&manner)));
    }
}

/// Answers each request that is no acknowledgement, until the stream is to end.
async fn answer(mut requests: h2::RecvStream, mut stream: h2::SendStream<Bytes>, manner: Rc<Manner>) {
    let (begun, mut messages, mut nonce) = (now(), Messages::default(), 0);
    loop {
        let (over, refuses) = (
            begun.elapsed() >= manner.lasting,
            manner.refuses.load(Ordering::Acquire),
        );
        if over || refuses {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", if refuses { "14" } else { "0" }.parse().unwrap());
            let _ = stream.send_trailers(trailers);
            return;
        }
        let pause = tokio::time::sleep(Duration::from_millis(10));
        let piece = tokio::select! { piece = requests.data() => piece, () = pause => continue };
        let Some(Ok(piece)) = piece else { return };
        let _ = requests.flow_control().release_capacity(piece.len());
        messages.extend(&piece);
        while let Some((_, request)) = messages.take() {
            let request = DeltaDiscoveryRequest::decode(request).unwrap();
            if request.response_nonce.is_empty() {
                nonce += 1;
                let body = Any {
                    type_url: request.type_url.clone(),
                    value: Bytes::from_static(b"\x0a\x01a"),
                };
                let only = Resource {
                    name: "a".to_owned(),
                    version: "1".to_owned(),
                    resource: Some(body),
                    ..Resource::default()
                };
                let response = DeltaDiscoveryResponse {
                    type_url: request.type_url,
                    resources: vec![only],
                    nonce: nonce.to_string(),
                    ..DeltaDiscoveryResponse::default()
                };
                let _ = stream.send_data(framed(&response), false);
            }
        }
    }
}

#[test]
fn a_server_that_refuses_new_streams_is_no_success() {
    let refuses = Arc::<AtomicBool>::default();
    let manner = Manner {
        lasting: Duration::MAX,
        refuses: Arc::clone(&refuses),
    };
    let record = played(&any_server(""), server(manner), |phase| {
        refuses.store(phase == "watch", Ordering::Release);
    });
    let failed = failed(&record);
    assert_eq!((failed.phase.as_deref(), &*failed.text), (Some("watch"), STREAMS));
    let why = failed.why.as_deref().unwrap();
    assert!(
        why.contains("the stream ended with gRPC status 14 (UNAVAILABLE): overloaded"),
        "{why}"
    );
    assert!(
        counted(&record, "streams ended: UNAVAILABLE") >= 18.0,
        "{:?}",
        record.counters
    );
}

/// istiod sends its clients away from time to time, so that they spread anew.
#[test]
fn a_server_that_ends_every_stream_with_ok_is_a_success() {
    let manner = Manner {
        lasting: Duration::from_millis(600),
        refuses: Arc::default(),
    };
    let record = played(
        &any_server("  - { name: more, do: { rest: 2s } }"),
        server(manner),
        |_| {},
    );
    assert!(record.held(), "{:#?}\n{:#?}", record.assertions, record.breaches);
    assert!(counted(&record, "streams ended: OK") >= 9.0, "{:?}", record.counters);
}
