// SPDX-License-Identifier: Apache-2.0
//! How streams and connections end: by a drain, by age, by silence, and a stream without its connection.

use std::sync::Arc;
use std::time::Duration;

use distributary::shutdown::after;
use distributary::wire::message;
use distributary::xds::{Dialect, ServerState, TypeUrl};
use prost::Message as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tonic::Code;

use crate::support::client::Client;
use crate::support::messages::Subscriber;
use crate::support::{CDS, EDS, PATIENCE, Plan, Relay, now, path, raw, says, until, wants, windows};
use crate::turns::{Tap, Tapped};

const SHORT: Duration = Duration::from_millis(300);

pub(crate) async fn subscriber(client: &Client, dialect: Dialect, type_url: &str, name: &str) -> Subscriber {
    let mut subscriber = client.subscriber(dialect, type_url).await;
    subscriber.subscribe(&[name]);
    subscriber
}

/// Returns the frames of a connection with one stream, which asks for all clusters and acknowledges nothing. Dropping the write
/// half closes the connection.
async fn raw_subscriber(relay: &Relay) -> (raw::Frames, OwnedWriteHalf) {
    let (frames, mut write) = raw::connect(relay.port()).await;
    write.write_all(&raw::call(1, path(Dialect::Delta), &[])).await.unwrap();
    let request = message(&wants(CDS, &[]).encode_to_vec());
    write.write_all(&raw::frame(raw::DATA, 0, 1, &request)).await.unwrap();
    (frames, write)
}

/// K-26: a drain ends streams without an error; a stream that waits for its first response ends only after it.
#[tokio::test]
async fn a_drain_ends_streams_in_good_order() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let relay = Relay::start();
        relay.put(CDS, &["a"], "body");
        let client = relay.connect().await;
        let mut served = subscriber(&client, dialect, CDS, "a").await;
        let mut waiting = subscriber(&client, dialect, EDS, "late").await;
        served.take().await;
        let mut idle = client.call(path(dialect)).await;

        relay.begin_drain(PATIENCE);
        assert_eq!(served.call.end().await.code, 0);
        assert_eq!(idle.end().await.code, 0, "a stream that asked for nothing ends at once");
        assert!(waiting.call.is_silent().await);
        relay.put(EDS, &["late"], "late");
        assert_eq!(waiting.next().await.unwrap().bodies, ["late"]);
        assert_eq!(waiting.call.end().await.code, 0);
        let refused = TcpStream::connect(relay.port()).await.is_err();
        assert!(refused, "a new connection was accepted");
        relay.settles_at(0).await;
        // Long before the time is up: the client got a GOAWAY, and its connection is closed.
        assert!(relay.trigger.finished(after(PATIENCE / 2)).await);
    }
}

/// Connections are closed one after the other, and each is served until then as if there were no drain.
#[tokio::test]
async fn who_has_not_left_yet_is_served() {
    let relay = Relay::start();
    relay.put(CDS, &["a"], "1");
    let mut clients = Vec::new();
    for _ in 0..8 {
        let client = relay.connect().await;
        let mut served = subscriber(&client, Dialect::Delta, CDS, "a").await;
        assert_eq!(served.take().await.bodies, ["1"]);
        clients.push((client, served));
    }
    let hour = Duration::from_secs(3600);
    relay.begin_spread_drain(hour, hour);
    relay.put(CDS, &["a"], "2");
    for (client, served) in &mut clients {
        assert_eq!(served.take().await.bodies, ["2"]);
        let mut other = subscriber(client, Dialect::Sotw, CDS, "a").await;
        assert_eq!(other.take().await.bodies, ["2"], "an old connection, too");
    }
    let refused = TcpStream::connect(relay.port()).await.is_err();
    assert!(refused, "a new connection was accepted");
}

/// K-26: a drain sends a GOAWAY without an error, so that clients connect elsewhere; open streams go on meanwhile.
#[tokio::test]
async fn a_drain_sends_new_calls_elsewhere() {
    let relay = Relay::start();
    let (mut frames, _write) = raw_subscriber(&relay).await;
    relay.settles_at(1).await;
    relay.begin_drain(PATIENCE);
    let farewell = frames.next_of(raw::GO_AWAY).await;
    assert_eq!(raw::reason(&farewell), h2::Reason::NO_ERROR);
    relay.put(CDS, &["a"], "late");
    assert_eq!(frames.next_of(raw::DATA).await.stream, 1);
    relay.settles_at(0).await;
}

/// The drain time is a limit: streams that have not ended by then are cut off.
#[tokio::test]
async fn a_drain_is_over_when_its_time_is() {
    let relay = Relay::start();
    let client = relay.connect().await;
    let mut waiting = subscriber(&client, Dialect::Delta, EDS, "never").await;
    relay.settles_at(1).await;
    let began = now();
    relay.begin_drain(SHORT);
    assert_eq!(waiting.call.end().await.code, -1);
    assert!(began.elapsed() >= SHORT);
    relay.settles_at(0).await;
    assert!(relay.trigger.finished(after(PATIENCE)).await);
}

/// K-26, G-18: an old stream ends without an error, but never before its first response.
#[tokio::test]
async fn old_streams_end() {
    let relay = Relay::with(|plan: &mut Plan| plan.settings.timers.stream_age = Some(SHORT));
    relay.put(CDS, &["a"], "body");
    let client = relay.connect().await;
    let began = now();
    let mut served = subscriber(&client, Dialect::Sotw, CDS, "a").await;
    let mut waiting = subscriber(&client, Dialect::Sotw, EDS, "late").await;
    served.take().await;
    assert_eq!(served.call.end().await.code, 0);
    assert!(began.elapsed() >= SHORT.mul_f64(0.8));
    until(|| began.elapsed() > SHORT * 2, || "time stands still").await;
    relay.put(EDS, &["late"], "late");
    assert_eq!(waiting.next().await.unwrap().bodies, ["late"]);
    assert_eq!(waiting.call.end().await.code, 0);
    relay.settles_at(0).await;
}

/// K-26: an old connection sends GOAWAY, so that no new stream begins on it. It waits for the client's acknowledgement, for a
/// limited time.
#[tokio::test]
async fn an_old_connection_sends_its_client_elsewhere() {
    let relay = Relay::with(|plan: &mut Plan| {
        plan.settings.timers.stream_age = Some(SHORT);
        plan.settings.timers.stream_age_jitter = 0;
    });
    relay.put(CDS, &["a"], "body");
    let began = now();
    let (mut frames, _write) = raw_subscriber(&relay).await;
    assert_eq!(frames.next_of(raw::DATA).await.stream, 1);
    let farewell = frames.next_of(raw::GO_AWAY).await;
    assert_eq!(raw::reason(&farewell), h2::Reason::NO_ERROR);
    assert!(began.elapsed() >= 2 * SHORT, "the response was not acknowledged yet");
    // The stream ends after that.
    assert_eq!(frames.next_of(raw::HEADERS).await.stream, 1);

    let began = now();
    let (mut frames, _write) = raw::connect(relay.port()).await;
    assert_eq!(raw::reason(&frames.next_of(raw::GO_AWAY).await), h2::Reason::NO_ERROR);
    assert!(began.elapsed() >= SHORT);
}

/// A client that has closed its half gets its answer and then the end of the stream, or in time an error if there is no answer.
#[tokio::test]
async fn half_closed_streams_end() {
    let relay = Relay::with(|plan: &mut Plan| plan.protocol.timers.unanswered = SHORT);
    relay.put(CDS, &["a"], "body");
    // The control plane is up but silent about the ghost, so only the client's closed half ends the wait for it.
    relay.view().publish_server_state(ServerState::Up);
    relay.put("type.googleapis.com/acme.A", &["other"], "body");
    let client = relay.connect().await;
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let mut served = subscriber(&client, dialect, CDS, "a").await;
        served.call.close_half();
        assert_eq!(served.next().await.unwrap().bodies, ["body"]);
        assert_eq!(served.call.end().await.code, 0);

        let mut unserved = subscriber(&client, dialect, "type.googleapis.com/acme.A", "ghost").await;
        unserved.call.close_half();
        says(&unserved.call.end().await, Code::Unavailable, "has closed");

        let mut silent = client.call(path(dialect)).await;
        silent.close_half();
        assert_eq!(silent.end().await.code, 0);
    }
    relay.settles_at(0).await;
}

/// A client that does not read one of its streams loses that stream; the others on the connection go on.
#[tokio::test]
async fn a_stream_that_is_not_read_ends_alone() {
    let relay = Relay::with(|plan: &mut Plan| plan.settings.timers.write_stall = Some(SHORT));
    let large = "x".repeat(1 << 20);
    relay.put(EDS, &["large"], &large);
    relay.put(CDS, &["a"], "first");
    let (client, _task) = Client::with(&relay.address, &windows(64 << 10, 16 << 20)).await;
    let mut others = vec![subscriber(&client, Dialect::Delta, CDS, "a").await];
    // Whether it is one of the connection's first streams or of many.
    for (stalls, content) in [(1, "second"), (2, "third")] {
        others.last_mut().unwrap().take().await;
        let mut stuck = subscriber(&client, Dialect::Delta, EDS, "large").await;
        relay.settles_at(i64::try_from(others.len()).unwrap()).await;
        relay.put(CDS, &["a"], content);
        assert_eq!(others[0].take().await.bodies, [content]);
        assert_eq!(stuck.call.end().await.code, -1, "reset");
        assert_eq!(relay.shared.metrics.send_stalls.get(), stalls);
        while others.len() < 70 {
            others.push(subscriber(&client, Dialect::Delta, CDS, "a").await);
        }
    }
    others.truncate(1);

    // Slow is not stuck: a client that reads a little from time to time gets everything.
    let mut slow = subscriber(&client, Dialect::Delta, EDS, "large").await;
    let mut got = 0;
    while got < large.len() {
        tokio::time::sleep(SHORT / 3).await;
        for _ in 0..8 {
            let Ok(Some(part)) = tokio::time::timeout(SHORT / 30, slow.call.responses.data()).await else {
                break;
            };
            let part = part.unwrap();
            got += part.len();
            slow.call.responses.flow_control().release_capacity(part.len()).unwrap();
        }
    }
    relay.settles_at(2).await;
}

async fn stoppable(relay: &Relay) -> (Client, Arc<Tap>) {
    let tap = Arc::<Tap>::default();
    let socket = Tapped(raw::socket(relay.port()).await, tap.clone());
    (Client::over(socket, &windows(1 << 30, 1 << 30)).await.0, tap)
}

/// A client that stops reading its connection is cut off; another one is served meanwhile.
#[tokio::test]
async fn a_connection_that_is_not_read_ends() {
    let relay = Relay::with(|plan: &mut Plan| {
        plan.settings.timers.write_stall = Some(2 * SHORT);
        plan.settings.timers.keepalive = Some(SHORT);
    });
    relay.put(CDS, &["a"], "small");
    let (client, tap) = stoppable(&relay).await;
    let mut stuck = subscriber(&client, Dialect::Delta, CDS, "a").await;
    stuck.take().await;
    tap.close();
    // More than the kernel's buffers on both sides can take.
    relay.put(EDS, &["large"], &"x".repeat(32 << 20));
    stuck.type_url = EDS.to_owned();
    stuck.subscribe(&["large"]);
    let eds = relay.shared.metrics.of(&TypeUrl::new(EDS));
    until(|| eds.responses.get() == 1, || "nothing is sent").await;

    let other = relay.connect().await;
    let mut other = subscriber(&other, Dialect::Delta, CDS, "a").await;
    assert_eq!(other.take().await.bodies, ["small"]);
    relay.settles_at(1).await;
    until(|| relay.open().1 == 1, || "the connection stays").await;
    assert_eq!(relay.shared.metrics.send_stalls.get(), 1);
}

/// Keepalive finds a client that has vanished, also when there is nothing to send to it.
#[tokio::test]
async fn a_vanished_client_is_noticed() {
    let relay = Relay::with(|plan: &mut Plan| plan.settings.timers.keepalive = Some(SHORT));
    relay.put(CDS, &["a"], "body");
    let (client, tap) = stoppable(&relay).await;
    let mut gone = subscriber(&client, Dialect::Sotw, CDS, "a").await;
    let other = relay.connect().await;
    let mut other = subscriber(&other, Dialect::Sotw, CDS, "a").await;
    gone.take().await;
    other.take().await;
    let began = now();
    tap.close();
    relay.settles_at(1).await;
    assert!(began.elapsed() < PATIENCE);
    assert_eq!(relay.shared.metrics.unanswered_pings.get(), 1);
    relay.put(CDS, &["a"], "second");
    assert_eq!(other.take().await.bodies, ["second"]);
    assert_eq!(relay.shared.metrics.unanswered_pings.get(), 1);
}

/// Closing a socket ends its streams.
#[tokio::test]
async fn a_cut_connection_ends_its_streams() {
    let relay = Relay::start();
    relay.put(CDS, &["a"], "body");
    let (client, task) = Client::with(&relay.address, &h2::client::Builder::new()).await;
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        subscriber(&client, dialect, CDS, "a").await.take().await;
    }
    task.abort();
    relay.settles_at(0).await;
    until(|| relay.open() == (0, 0), || "the connection stays").await;
}

/// `requests_per_second`: requests that come faster are read later; the stream goes on and nothing is lost.
#[tokio::test]
async fn fast_requests_are_read_later() {
    let relay = Relay::with(|plan: &mut Plan| plan.settings.limits.requests_per_second = 20);
    relay.put(CDS, &["a"], "body");
    let client = relay.connect().await;
    let mut fast = Subscriber::new(client.call(path(Dialect::Delta)).await, Dialect::Delta, CDS);
    let began = now();
    fast.subscribe(&["a"]);
    for _ in 0..25 {
        fast.unsubscribe(&["a"]);
        fast.subscribe(&["a"]);
    }
    let requests = relay.shared.metrics.of(&TypeUrl::new(CDS)).requests.clone();
    until(|| requests.get() == 51, || requests.get()).await;
    assert!(began.elapsed() > Duration::from_millis(1400), "{:?}", began.elapsed());
    assert!(fast.next().await.is_ok());
    relay.settles_at(1).await;
}
