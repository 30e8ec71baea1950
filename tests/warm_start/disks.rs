// SPDX-License-Identifier: Apache-2.0
//! A disk that takes no more: the relay reports it, clients are still served, and the last good snapshot stays.

use std::path::Path;

use distributary::proto::envoy::config::cluster::v3::{Cluster, cluster::EdsClusterConfig};
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryResponse;
use prost::Message as _;

use crate::plane::Plane;
use crate::stage::{self, Client, Delta, Relay, clusters, directory, eventually, until};
use crate::{find, fresh};

/// A response with one cluster of some more than so many bytes.
fn large(nonce: &str, bytes: usize) -> DeltaDiscoveryResponse {
    let cluster = Cluster {
        name: "a".to_owned(),
        eds_cluster_config: Some(EdsClusterConfig {
            service_name: "x".repeat(bytes),
        }),
        ..Cluster::default()
    };
    let mut response = clusters(nonce, &[("a", nonce)], &[]);
    response.resources[0].resource.as_mut().unwrap().value = cluster.encode_to_vec().into();
    response
}

/// Returns the size of the largest resource in a directory's snapshot, if there is a complete snapshot.
fn largest(dir: &Path) -> Option<usize> {
    let found = distributary::snapshot::read(&find(dir)?, &Default::default(), stage::now()).unwrap();
    let slots = found.cut.slots();
    let states = slots.filter_map(|(_, slot)| slot.wildcard.clone());
    let sizes = states.map(|state| state.resources().map(|resource| resource.body().len()).max());
    sizes.max().flatten()
}

/// A limit of the file size: the system takes a part of the file and then no more, like a disk that fills up. There is room for small
/// snapshots and not for large ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_may_not_grow() {
    const WORDS: &str = "File too large";
    let dir = directory("limited");
    let mut plane = Plane::start().await;
    // The signal would end the relay; the test wants the error.
    let limits = ["sh", "-c", "trap '' XFSZ && ulimit -f 32 && exec \"$@\"", "sh"].map(str::to_owned);
    let relay = Relay::behind(&limits, plane.address, &dir);
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&fresh()).await;
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&large("1", 200));
    assert_eq!(delta.next().await.versions.len(), 1);
    let small = eventually("a snapshot", || largest(&dir)).await;
    assert!((200..300).contains(&small), "{small}");

    call.send(&large("2", 60_000));
    assert_eq!(delta.next().await.versions.len(), 1, "clients are served all the same");
    let line = relay.line("cannot write a snapshot; clients are still served");
    assert!(line.contains("cannot be written") && line.contains(WORDS), "{line}");
    let counted = || relay.number("distributary_snapshots_total{result=\"not_written\"} ") >= 3.0;
    until("failed writes, which are one line", counted).await;
    assert_eq!(relay.lines("cannot write a snapshot"), 1);
    // It is what is wrong with the relay for as long as it is, with the age of what a restart would begin with.
    let fault = || {
        let clusters = relay.admin("/clusters");
        clusters
            .lines()
            .find(|line| line.contains("a snapshot of "))
            .map(str::to_owned)
    };
    let told = "; the last one of it was written at 20";
    eventually("a fault", || {
        fault().filter(|fault| fault.contains(WORDS) && fault.contains(told))
    })
    .await;
    let (code, said) = relay.command(&["status"]);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(largest(&dir), Some(small), "the last good one is there, whole");
    eventually("the end of what is half-written", || {
        let mut files = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
        let half = files.any(|path| path.extension().is_some_and(|extension| extension == "tmp"));
        (!half).then_some(())
    })
    .await;

    // There is room again, and the next interval finds it.
    call.send(&large("3", 210));
    assert_eq!(delta.next().await.versions.len(), 1);
    let next = || largest(&dir).filter(|size| *size > small && *size < 500);
    eventually("the next snapshot", next).await;
    until("no fault", || fault().is_none()).await;
}
