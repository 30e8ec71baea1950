// SPDX-License-Identifier: Apache-2.0
//! Memory gets short: one thing after the other is refused, and whoever is served goes on being served.

use std::time::Duration;

use bytes::Bytes;
use distributary::downstream::{Action, Used};
use distributary::wire::message;
use distributary::xds::Dialect;
use tonic::Code;

use crate::memory::{cluster, resources};
use crate::support::client::{Call, Client};
use crate::support::messages::Subscriber;
use crate::support::process::Process;
use crate::support::{Address, CDS, EDS, PATIENCE, Relay, now, says, until};

async fn call(client: &Client) -> Call {
    client.ads(Dialect::Delta).await
}

async fn asks(client: &Client, type_url: &str, name: &str) -> Subscriber {
    let mut subscriber = Subscriber::new(call(client).await, Dialect::Delta, type_url);
    subscriber.subscribe(&[name]);
    subscriber
}

/// Whether a new connection is closed before it can be used.
async fn is_refused(address: &Address) -> bool {
    let Address::Tcp(address) = address else { return false };
    let Ok(socket) = tokio::net::TcpStream::connect(address).await else {
        return true;
    };
    // A ping shows whether anybody is there.
    let Ok((_client, mut connection)) = h2::client::handshake(socket).await else {
        return true;
    };
    let mut ping = connection.ping_pong().unwrap();
    tokio::select! {
        pong = ping.ping(h2::Ping::opaque()) => pong.is_err(),
        _ = connection => true,
    }
}

/// A percent of a limit of memory of 1.6 GiB.
const PERCENT: usize = 16 << 20;

/// The actions that are shown as active.
fn active(text: &str) -> Vec<&str> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("distributary_overload_active{action=\""));
    let active = lines.filter_map(|line| line.strip_suffix("\"} 1"));
    active.collect()
}

fn presses(relay: &Relay, percent: usize) {
    let last = relay.shared.act(Used {
        used: percent * PERCENT,
        max: 100 * PERCENT,
    });
    let expected: Vec<&str> = Action::ALL
        .into_iter()
        .filter(|action| Some(*action) <= last)
        .map(Action::word)
        .collect();
    let text = relay.shared.metrics.encode().unwrap();
    let mut shown = active(&text);
    shown.sort_by_key(|name| expected.iter().position(|known| known == name));
    assert_eq!(shown, expected, "at {percent} %");
    relay.shows(&format!("overload_pressure{{resource=\"memory\"}} {percent}"));
}

/// Each threshold adds one refusal, in the order that the manual states.
#[tokio::test]
async fn one_thing_after_the_other() {
    let relay = Relay::with(|plan| plan.protocol.timers.unanswered = Duration::from_secs(1));
    relay.put(EDS, &["a", "b", "c"], "1");
    let reading = relay.shared.budget.bytes_max();
    presses(&relay, 79);
    assert_eq!(relay.shared.budget.bytes_max(), reading);
    presses(&relay, 80);
    assert_eq!(relay.shared.budget.bytes_max(), reading / 2);
    let client = relay.connect().await;
    let mut grows = asks(&client, EDS, "a").await;
    grows.take().await;
    let unanswered = call(&client).await;

    presses(&relay, 90);
    assert!(is_refused(&relay.address).await);
    let mut stays = asks(&client, EDS, "a").await;
    stays.take().await;

    presses(&relay, 92);
    let ended = call(&client).await.end().await;
    ended.assert(Code::Unavailable, true);
    says(&ended, Code::Unavailable, "`limits.memory` = 1677721600");
    stays.subscribe(&["b"]);
    stays.take().await;

    presses(&relay, 95);
    grows.subscribe(&["b"]);
    let mut early = Subscriber::new(unanswered, Dialect::Delta, EDS);
    early.subscribe(&["a"]);
    let ended = early.call.end().await;
    ended.assert(Code::Unavailable, true);
    presses(&relay, 98);
    relay.put(EDS, &["a", "b", "c"], "2");
    assert_eq!(stays.take().await.bodies, ["2", "2"]);
    stays.unsubscribe(&["b"]);
    let ended = grows.call.end().await;
    ended.assert(Code::ResourceExhausted, false);
    relay.put(EDS, &["a"], "3");
    assert_eq!(stays.take().await.bodies, ["3"]);

    presses(&relay, 0);
    assert_eq!(relay.shared.budget.bytes_max(), reading);
    relay.shared.act(Used { used: PERCENT, max: 0 });
    let text = relay.shared.metrics.encode().unwrap();
    assert!(!text.contains("{resource=\"memory\"}"), "there is no limit");
    asks(&relay.connect().await, EDS, "c").await.take().await;
}

/// A request that would bring more names is taken as soon as there is memory again.
#[tokio::test]
async fn names_wait_for_memory() {
    let relay = Relay::start();
    relay.put(EDS, &["a", "b"], "1");
    let mut client = asks(&relay.connect().await, EDS, "a").await;
    client.take().await;
    presses(&relay, 96);
    client.subscribe(&["b"]);
    assert!(client.call.is_silent().await);
    presses(&relay, 94);
    assert_eq!(client.take().await.bodies, ["1"]);
}

/// A message that will not be complete.
fn unfinished() -> Bytes {
    let whole = message(&vec![0; 15 << 20]);
    whole.slice(..whole.len() - 1)
}

/// The program measures itself: two unfinished requests fill its memory. It refuses newcomers and serves those that are there, and
/// when the memory is free again it serves everybody.
#[tokio::test]
async fn the_program_watches_its_memory() {
    let write = |content: &str| resources("short-of-memory.json", [cluster("a", content)]);
    let path = write("first");
    // The allocator of the system may keep what is free as long as something small lies above it; that of what is shipped gives it back.
    const GIVES_BACK: &str = "export MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=65536";
    let upstream = format!("xds_servers: [{{server_uri: '{}'}}]", path.to_str().unwrap());
    let relay = Process::under(GIVES_BACK, "short", &upstream, &[""], "limits: {memory: 40MiB}\n");
    let address = Address::Tcp(relay.clients);
    let served = Client::connect(&address).await;
    let mut served = asks(&served, CDS, "*").await;
    served.take().await;
    until(|| active(&relay.metrics()).is_empty(), || relay.metrics()).await;

    let mut greedy = Vec::new();
    for _ in 0..2 {
        let client = Client::connect(&address).await;
        let mut call = call(&client).await;
        call.send_bytes(unfinished());
        greedy.push((client, call));
    }
    let all = || active(&relay.metrics()).len() == Action::ALL.len();
    until(all, || relay.metrics()).await;
    assert!(is_refused(&address).await);
    write("second");
    assert!(served.take().await.bodies.concat().contains("second"));

    drop(greedy);
    let freed = || !active(&relay.metrics()).contains(&Action::RejectConnections.word());
    // The allocator keeps what is free for some ten seconds.
    let begun = now();
    while !freed() {
        assert!(begun.elapsed() < 3 * PATIENCE, "{}", relay.metrics());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let late = Client::connect(&address).await;
    let got = asks(&late, CDS, "*").await.take().await;
    assert!(got.bodies.concat().contains("second"));
}
