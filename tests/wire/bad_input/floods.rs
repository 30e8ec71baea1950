// SPDX-License-Identifier: Apache-2.0
//! Clients that send too much: names, versions, unfinished requests.

use super::*;

/// How a call ended that is not answered, if it has.
async fn end_of(call: &mut Call) -> Option<Ended> {
    let ended = tokio::time::timeout(std::time::Duration::from_millis(100), call.next_bytes()).await;
    ended.ok().map(|ended| ended.expect_err("it is answered"))
}

/// What `limits.names_per_stream` is here, and more than that.
const MANY: usize = 2_000;
const TOO_MANY: usize = 2_100;
const LIMIT: &str = "limits.names_per_stream";
const MUCH: Code = Code::ResourceExhausted;

async fn limited() -> World {
    World::with(|plan| plan.protocol.limits.names_per_stream = MANY).await
}

#[tokio::test]
async fn too_many_names() {
    let mut world = limited().await;
    let names: Vec<String> = (0..TOO_MANY).map(|n| format!("n{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for dialect in BOTH {
        refused(&world, dialect, &encoded(dialect, EDS, &names), MUCH, LIMIT).await;
        // Empty names cost least on the wire and most in memory.
        let empty: Vec<u8> = [0x1a, 0].repeat(8 << 20);
        refused(&world, dialect, &empty[..16 << 20], MUCH, LIMIT).await;
    }
    // Many requests one after the other do not get around the limit.
    let mut call = world.call(Dialect::Delta).await;
    for part in names.chunks(1_500).take(2) {
        call.send(&wants(EDS, part));
    }
    says(&call.end().await, MUCH, LIMIT);
    drop(call);
    world.is_unharmed().await;
    assert_eq!(world.relay.view().demand().seats(), 2);
}

#[tokio::test]
async fn too_many_initial_versions() {
    let mut world = limited().await;
    let initial_resource_versions: BTreeMap<_, _> = (0..TOO_MANY).map(|n| (format!("n{n}"), String::new())).collect();
    let request = DeltaDiscoveryRequest {
        initial_resource_versions,
        ..wants(CDS, &["*"])
    };
    refused(&world, Dialect::Delta, &request.encode_to_vec(), MUCH, LIMIT).await;
    world.is_unharmed().await;
}

/// Unfinished requests: each is within `limits.request`; all of a connection together have a limit of their own.
#[tokio::test]
async fn many_unfinished_requests() {
    let mut world = World::with(|plan| plan.settings.limits.request = 1 << 20).await;
    let mut calls = Vec::new();
    for _ in 0..5 {
        let mut call = world.call(Dialect::Sotw).await;
        call.send_bytes(vec![0, 0, 0x10, 0, 0]);
        call.send_bytes(vec![0; (1 << 20) - 100]);
        calls.push(call);
    }
    let mut ends = Vec::new();
    while ends.is_empty() {
        for call in &mut calls {
            ends.extend(end_of(call).await);
        }
    }
    let [ended] = &ends[..] else {
        panic!("one of the five is refused: {ends:?}")
    };
    says(ended, MUCH, "limits.request");
    drop(calls);
    world.is_unharmed().await;
}
