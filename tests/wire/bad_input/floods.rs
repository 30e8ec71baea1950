// SPDX-License-Identifier: Apache-2.0
//! Clients that send too much: names, rejections, changes of what they ask for, views, unfinished requests.

use super::*;

/// How a call ended that is not answered, if it has.
async fn end_of(call: &mut Call) -> Option<Ended> {
    let ended = tokio::time::timeout(std::time::Duration::from_millis(100), call.next_bytes()).await;
    ended.ok().map(|ended| ended.expect_err("it is answered"))
}

/// More than the 200,000 of `limits.names_per_stream`.
const TOO_MANY: u32 = 210_000;

#[tokio::test]
async fn too_many_names() {
    let mut world = World::new().await;
    let names: Vec<String> = (0..TOO_MANY).map(|n| format!("n{n}")).collect();
    for dialect in BOTH {
        refused(
            &world,
            dialect,
            &encoded(dialect, EDS, names.clone()),
            8,
            "limits.names_per_stream",
        )
        .await;
        // Empty names cost least on the wire and most in memory.
        let empty: Vec<u8> = [0x1a, 0].repeat(8 << 20);
        refused(&world, dialect, &empty[..16 << 20], 8, "limits.names_per_stream").await;
    }
    // Many requests one after the other do not get around the limit.
    let mut call = world.call(Dialect::Delta).await;
    for part in names.chunks(150_000).take(2) {
        call.send(&delta_request(EDS, part.to_vec()));
    }
    let ended = call.end().await;
    assert!(
        ended.code == 8 && ended.message.contains("limits.names_per_stream"),
        "{ended:?}"
    );
    drop(call);
    world.is_unharmed().await;
    assert_eq!(world.relay.view().demand().seats(), 2);
}

#[tokio::test]
async fn too_many_initial_versions() {
    let mut world = World::new().await;
    let initial_resource_versions: BTreeMap<_, _> = (0..TOO_MANY).map(|n| (format!("n{n}"), String::new())).collect();
    let request = DeltaDiscoveryRequest {
        initial_resource_versions,
        ..delta_request(CDS, vec!["*".to_owned()])
    };
    refused(
        &world,
        Dialect::Delta,
        &request.encode_to_vec(),
        8,
        "limits.names_per_stream",
    )
    .await;
    world.is_unharmed().await;
}

/// `limits.views`, `limits.names_per_view`: values that clients invent are limited, and the error names the limit.
#[tokio::test]
async fn invented_clusters_and_names() {
    let mut world = World::with(by_cluster).await;
    let mut calls = Vec::new();
    for n in 0..20 {
        let invented = Node {
            cluster: format!("invented{n}"),
            ..node()
        };
        let mut call = world.call(Dialect::Sotw).await;
        call.send(&DiscoveryRequest {
            node: Some(invented),
            ..sotw_request(EDS, vec!["a".to_owned()])
        });
        calls.push(call);
    }
    // This connection gets a half of those that were left; the others are for other clients.
    let (mut open, mut at) = (calls, 0);
    while open.len() > 4 {
        at = (at + 1) % open.len();
        if let Some(ended) = end_of(&mut open[at]).await {
            assert!(
                ended.code == 8 && ended.message.contains("limits.views of 8"),
                "{ended:?}"
            );
            open.swap_remove(at);
        }
    }
    assert!(world.relay.shared.scopes.all().len() <= 5);
    drop(open);

    let mut call = world.call(Dialect::Delta).await;
    for part in 0..20 {
        let names = (0..100).map(|n| format!("{part}-{n}")).collect();
        call.send(&delta_request(EDS, names));
    }
    let ended = call.end().await;
    assert!(
        ended.code == 8 && ended.message.contains("limits.names_per_view of 1000"),
        "{ended:?}"
    );
    drop(call);
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
    assert!(ended.code == 8 && ended.message.contains("limits.request"), "{ended:?}");
    drop(calls);
    world.is_unharmed().await;
}
