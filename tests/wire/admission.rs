//! Limits on connections and streams: who is beyond them is told so, and nobody else feels it.

use distributary::xds::Dialect;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tonic::Code;

use crate::support::client::{Call, Client};
use crate::support::messages::Subscriber;
use crate::support::{ADS, CDS, PATIENCE, Plan, Relay, until};

fn relay(plan: impl FnOnce(&mut Plan)) -> Relay {
    let relay = Relay::with(plan);
    relay.put(CDS, &["a"], "1");
    relay
}

async fn call(client: &Client) -> Call {
    client.call(&format!("/{ADS}/DeltaAggregatedResources")).await
}

async fn served(client: &Client) -> Subscriber {
    let mut subscriber = Subscriber::new(call(client).await, Dialect::Delta, CDS);
    subscriber.subscribe(&["*"]);
    subscriber.take().await;
    subscriber
}

async fn is_closed(relay: &Relay) {
    let mut socket = TcpStream::connect(relay.port()).await.unwrap();
    let mut byte = [0];
    let read = tokio::time::timeout(PATIENCE, socket.read(&mut byte)).await;
    assert!(matches!(read.unwrap(), Ok(0) | Err(_)), "the connection is open");
}

fn counted(relay: &Relay, limit: &str, times: u32) {
    let shown = relay.shared.metrics.encode().unwrap();
    let line = format!("distributary_refused_total{{limit=\"{limit}\"}} {times}");
    assert!(shown.contains(&line), "no {line}");
}

/// `limits.connections`, `limits.connections_per_identity`: what is beyond is closed at once, until one of the others has ended.
#[tokio::test]
async fn too_many_connections() {
    for key in ["connections", "connections_per_identity"] {
        let relay = relay(|plan| match key {
            "connections" => plan.admission.connections = 2,
            _ => plan.admission.connections_per_identity = 2,
        });
        let (one, other) = (relay.connect().await, relay.connect().await);
        let first = served(&one).await;
        let second = served(&other).await;
        is_closed(&relay).await;
        counted(&relay, key, 1);
        drop((second, other));
        until(|| relay.open().1 == 1, || "it is still open".to_owned()).await;
        served(&relay.connect().await).await;
        drop(first);
    }
}

/// `limits.streams`, `limits.new_streams_per_second`: a client that could be served by another relay is told so before any
/// response. `limits.streams_per_identity`: it has too many itself.
#[tokio::test]
async fn too_many_streams() {
    for (key, code) in [
        ("streams", Code::Unavailable),
        ("new_streams_per_second", Code::Unavailable),
        ("streams_per_identity", Code::ResourceExhausted),
    ] {
        let relay = relay(|plan| match key {
            "streams" => plan.admission.streams = 2,
            "new_streams_per_second" => plan.admission.new_streams_per_second = 2,
            _ => plan.admission.streams_per_identity = 2,
        });
        let client = relay.connect().await;
        let streams = [served(&client).await, served(&client).await];
        let mut refused = call(&client).await;
        let pushback = refused.head.headers().get("grpc-retry-pushback-ms").cloned();
        assert_eq!(pushback.is_some(), code == Code::Unavailable, "{key}");
        let ended = refused.end().await;
        assert_eq!(ended.code, code as i32, "{key}: {}", ended.message);
        assert!(
            ended.message.contains(&format!("`limits.{key}` = 2")),
            "{}",
            ended.message
        );
        counted(&relay, key, 1);
        if key != "new_streams_per_second" {
            drop(streams);
            until(|| relay.open().0 == 0, || "they are still open".to_owned()).await;
            served(&client).await;
        }
    }
}
