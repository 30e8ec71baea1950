// SPDX-License-Identifier: Apache-2.0
//! One client cannot take the resources that all clients need.

use distributary::proto::envoy::service::discovery::v3::DiscoveryRequest;
use distributary::wire::message;
use distributary::xds::Dialect;
use prost::Message as _;
use tokio::io::AsyncWriteExt as _;
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::hostile::rejection;
use crate::support::client::{Call, Client};
use crate::support::messages::Subscriber;
use crate::support::polls::{Poller, request};
use crate::support::{CDS, EDS, Relay, path, raw, says, until, wants_sotw};

const CHECK: &str = "/grpc.health.v1.Health/Check";

async fn is_checked(client: &Client) {
    let mut call = client.unary(CHECK, &HealthCheckRequest::default()).await;
    assert_eq!(call.next::<HealthCheckResponse>().await.unwrap().status, 1);
}

/// Health checks whose requests never come do not delay others, and end by themselves.
#[tokio::test]
async fn health_checks_without_a_request() {
    const CALLS: u32 = 300;
    let relay = Relay::start();
    let client = relay.connect().await;
    let (mut frames, mut write) = raw::connect(relay.port()).await;
    frames.next_of(raw::WINDOW_UPDATE).await;
    let calls: Vec<u8> = (0..CALLS).flat_map(|n| raw::call(2 * n + 1, CHECK, &[])).collect();
    write.write_all(&calls).await.unwrap();
    // An answer to a complete one shows that those before it have begun.
    let request = message(&HealthCheckRequest::default().encode_to_vec());
    let end = raw::frame(raw::DATA, 1, 2 * CALLS + 1, &request);
    let whole = [raw::call(2 * CALLS + 1, CHECK, &[]), end].concat();
    write.write_all(&whole).await.unwrap();
    assert_eq!(frames.next_of(raw::HEADERS).await.stream, 2 * CALLS + 1);
    is_checked(&client).await;
    is_checked(&relay.connect().await).await;

    tokio::time::pause();
    let mut ended = 0;
    while ended < CALLS {
        let frame = frames.next_of(raw::HEADERS).await;
        ended += u32::from(frame.stream < 2 * CALLS);
    }
    tokio::time::resume();
    is_checked(&client).await;
}

/// A request to the health service names one service, and may not have more bytes than that needs.
#[tokio::test]
async fn a_large_health_check() {
    let relay = Relay::start();
    let request = HealthCheckRequest {
        service: "x".repeat(5000),
    };
    let mut call = relay.connect().await.unary(CHECK, &request).await;
    says(&call.end().await, Code::ResourceExhausted, "4096");
}

/// Polls whose bodies never end do not keep other polls from being read, be they small or large.
#[tokio::test]
async fn polls_without_an_end() {
    const CLUSTERS: &str = "/v3/discovery:clusters";
    let relay = Relay::start();
    let mut slow = Vec::new();
    for _ in 0..12 {
        let mut poller = Poller::connect(relay.port()).await;
        let head = format!("POST {CLUSTERS} HTTP/1.1\r\nhost: relay\r\ncontent-length: 100000\r\n\r\n");
        assert!(poller.write(&[head.as_bytes(), &[b' '; 70_000]].concat()).await);
        slow.push(poller);
    }
    let held = || relay.shared.budget.bytes();
    until(|| held() == 12 * 70_000, held).await;
    crate::rest::put(&relay, CDS, &["a"], 1);
    let body = request("", &["a"]) + &" ".repeat(100_000);
    let answer = Poller::connect(relay.port()).await.poll(CLUSTERS, &body).await;
    assert_eq!(answer.says().1, ["a"]);
    drop(slow);
    until(|| held() == 0, held).await;
}

/// A large poll is read on a thread of its own: whoever shares the thread of its connection is answered meanwhile.
#[tokio::test]
async fn a_large_poll_is_read_beside_others() {
    let relay = Relay::start();
    crate::rest::put(&relay, CDS, &["a"], 1);
    let client = relay.connect().await;
    is_checked(&client).await;
    let mut poller = Poller::connect(relay.port()).await;
    // Read to its end before anything is found to be wrong with it.
    let names = "\"a-name-that-nobody-knows\",".repeat(300_000);
    let body = format!("{{\"resource_names\": [{names}\"a\"]");
    let order = std::sync::Mutex::new(Vec::new());
    let polls = async {
        let answer = poller.poll("/v3/discovery:clusters", &body).await;
        assert_eq!(answer.status, 400);
        order.lock().unwrap().push("poll");
    };
    let checks = async {
        let held = || relay.shared.budget.bytes();
        until(|| held() >= body.len(), held).await;
        is_checked(&client).await;
        order.lock().unwrap().push("check");
    };
    tokio::join!(polls, checks);
    assert_eq!(*order.lock().unwrap(), ["check", "poll"]);
}

/// A request of many names is processed in slices, and other clients have turns in between. Its meaning does not change.
#[tokio::test]
async fn requests_of_many_names() {
    const NAMES: usize = 20_000;
    let names: Vec<String> = (0..NAMES).map(|n| format!("{}-{n}", n * 7919 % NAMES)).collect();
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let relay = Relay::start();
        relay.put(EDS, &["first", names[0].as_str(), names[NAMES - 1].as_str()], "body");
        let wanted = || relay.view().summary().wanted;
        let mut greedy = relay.connect().await.subscriber(dialect, EDS).await;
        let mut modest = Subscriber::new(stream(&relay).await, Dialect::Sotw, EDS);
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        greedy.subscribe(&all);
        until(|| wanted() > 0, || "nothing is wanted").await;
        modest.subscribe(&["first"]);
        assert_eq!(modest.take().await.bodies, ["body"]);
        assert!(wanted() < NAMES, "all names were processed in one turn");
        // One answer for the whole request, and not one for each slice.
        assert_eq!(greedy.take().await.bodies, ["body"; 2]);
        assert_eq!(wanted(), NAMES + 1);
        assert_eq!(relay.shared.budget.bytes(), 0);
        // Names that are already subscribed are not processed one by one; new ones are.
        greedy.subscribe(&["first"]);
        assert!(greedy.take().await.bodies.contains(&"body".to_owned()));
        greedy.unsubscribe(&all);
        until(|| wanted() == 1, || format!("{} are wanted", wanted())).await;
    }
}

fn stream(relay: &Relay) -> impl Future<Output = Call> {
    let address = relay.address.clone();
    async move { Client::connect(&address).await.ads(Dialect::Sotw).await }
}

/// The first bytes of a message of a mebibyte.
fn beginning(bytes: usize) -> Vec<u8> {
    [&[0, 0, 0x10, 0, 0][..], &vec![0; bytes]].concat()
}

/// All unfinished requests share one limit. A request smaller than those of others is still read: to make room, one of the streams
/// with the most bytes ends.
#[tokio::test]
async fn requests_without_an_end() {
    let relay = Relay::with(|plan| plan.settings.limits.request = 1 << 20);
    let bound = 4 << 20;
    let held = || relay.shared.budget.bytes();
    let mut greedy = Vec::new();
    for _ in 0..8 {
        let mut call = stream(&relay).await;
        call.send_bytes(beginning(1_000_000));
        greedy.push(call);
    }
    until(|| held() > bound - (1 << 20), held).await;

    relay.put(CDS, &["a"], "first");
    let mut modest = Subscriber::new(stream(&relay).await, Dialect::Sotw, CDS);
    let wanted = DiscoveryRequest {
        version_info: "x".repeat(400_000),
        ..wants_sotw(CDS, &[])
    };
    modest.call.send(&wanted);
    assert_eq!(modest.take().await.bodies, ["first"]);
    assert!(held() <= bound, "{}", held());
    let mut ended = 0;
    for call in &mut greedy {
        if let Ok(end) = tokio::time::timeout(std::time::Duration::from_millis(100), call.next_bytes()).await {
            says(&end.unwrap_err(), Code::Unavailable, "limits.request");
            ended += 1;
        }
    }
    // At least four of the eight had no room, or were ended to make room.
    assert!((4..8).contains(&ended), "{ended} have ended");
    assert!(relay.shared.budget.take_refused() >= ended);
    relay.put(CDS, &["a"], "second");
    assert_eq!(modest.take().await.bodies, ["second"]);
    drop(greedy);
    until(|| held() == 0, held).await;
}

/// Inflated bytes count like others. Of a long rejection message the beginning is kept, and the rejection counts.
#[tokio::test]
async fn compressed_rejections() {
    let relay = Relay::start();
    relay.put(EDS, &["a"], "first");
    let client = relay.connect().await;
    let gzip = [("grpc-encoding", "gzip")];
    let call = client.call_with(path(Dialect::Sotw), &gzip).await;
    let mut rejects = Subscriber::new(call, Dialect::Sotw, EDS);
    rejects.subscribe(&["a"]);
    assert_eq!(rejects.next().await.unwrap().bodies, ["first"]);
    let rejection = DiscoveryRequest {
        resource_names: vec!["a".to_owned()],
        response_nonce: rejects.nonce.clone(),
        ..rejection(15 << 20)
    };
    let packed = packed(&rejection.encode_to_vec());
    assert!(packed.len() < 50_000, "{}", packed.len());
    rejects.call.send_bytes(packed);
    let nacks = || relay.shared.metrics.of(&xds::TypeUrl::new(EDS)).nacks.get();
    until(|| nacks() == 1, || "no rejection").await;
    relay.put(EDS, &["a"], "second");
    assert_eq!(rejects.take().await.bodies, ["second"]);
    assert_eq!(relay.shared.budget.bytes(), 0);
}

/// A compressed message.
pub(crate) fn packed(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    let mut framed = message(&encoder.finish().unwrap()).to_vec();
    framed[0] = 1;
    framed
}

/// A few connections take as many names of a view as they can, and leave enough for others.
#[tokio::test]
async fn names_of_a_few_connections() {
    let relay = Relay::with(|plan| plan.names_per_view = 1000);
    relay.put(EDS, &["mine-0"], "body");
    let mut greedy = Vec::new();
    for connection in 0..5 {
        let mut subscriber = Subscriber::new(stream(&relay).await, Dialect::Sotw, EDS);
        let names: Vec<String> = (0..190).map(|n| format!("{connection}-{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        subscriber.subscribe(&names);
        if connection < 4 {
            let wanted = || relay.view().summary().wanted;
            until(|| wanted() == 190 * (connection + 1), wanted).await;
        } else {
            let words = "limits.names_per_view of 1000, and the 1";
            says(&subscriber.call.end().await, Code::ResourceExhausted, words);
        }
        greedy.push(subscriber);
    }
    let mut modest = Subscriber::new(stream(&relay).await, Dialect::Sotw, EDS);
    let names: Vec<String> = (0..100).map(|n| format!("mine-{n}")).collect();
    modest.subscribe(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(modest.take().await.bodies, ["body"]);
}
