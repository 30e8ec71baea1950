// SPDX-License-Identifier: Apache-2.0
//! A relay as a process that is killed and restarts while its control plane is away, or that is stopped for a while: what clients
//! get meanwhile, and once the control plane is back.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod amnesia;
mod canaries;
mod counted;
mod credentials;
mod disks;
mod explained;
mod fitting;
mod frozen;
mod health;
mod held;
mod identity;
mod lint;
mod logged;
mod marks;
mod neighbours;
mod rejected;
mod reloaded;
mod rings;
mod sources;
mod stage;
mod taken;
mod tiers;
mod traced;
mod words;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};

use peers::{folder, messages, plane, secured};
use plane::Plane;
use stage::{CDS, Client, Delta, Relay, Sotw, clusters, directory, eventually, has, until};

/// How many clients come back at once.
const CLIENTS: usize = 200;

/// The request of a new delta client.
fn fresh() -> DeltaDiscoveryRequest {
    messages::wants(CDS, &[])
}

/// The request of a delta client that holds these resources.
fn returning(held: &BTreeMap<String, String>) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        initial_resource_versions: held.clone(),
        ..fresh()
    }
}

fn state_of_the_world(version: &str) -> DiscoveryRequest {
    DiscoveryRequest {
        version_info: version.to_owned(),
        ..messages::wants_sotw(CDS, &[])
    }
}

/// A control plane sends `a=1 b=1`, a client takes it, the relay writes a snapshot and is killed. Returns what the client held,
/// by dialect.
async fn first_run(address: &mut Option<SocketAddr>, dir: &Path) -> (BTreeMap<String, String>, String) {
    let mut plane = Plane::start().await;
    *address = Some(plane.address);
    let relay = Relay::start(plane.address, dir);
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&fresh()).await;
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&clusters("n1", &[("a", "1"), ("b", "1")], &[]));
    let held = delta.next().await.versions;
    assert_eq!(held.len(), 2);
    let mut sotw: Sotw = client.open(&state_of_the_world("")).await;
    let version = sotw.next().await.version_info;
    let snapshot = eventually("a snapshot", || find(dir)).await;
    eventually("a whole snapshot", || {
        let found = distributary::snapshot::read(&snapshot, &Default::default(), stage::now()).unwrap();
        let whole = |slot: &xds::Slot| slot.wildcard.as_ref().is_some_and(|state| state.complete());
        found.cut.slots().any(|(_, slot)| whole(slot)).then_some(())
    })
    .await;
    relay.kill();
    (held, version)
}

fn find(dir: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(dir).ok()?.map(|entry| entry.unwrap().path());
    files
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "snapshot"))
}

/// G-19, K-09, K-16: without its control plane the relay serves what it knew. Clients that hold it are sent nothing, and keep
/// what they hold in addition. Once the control plane answers, the relay sends the difference and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_starts_without_its_control_plane() {
    let dir = directory("outage");
    let mut address = None;
    let (held, version) = first_run(&mut address, &dir).await;
    let address = address.unwrap();

    let relay = Relay::start(address, &dir);
    relay.line("clients can be served from snapshots");
    let ready = || relay.admin("/ready").starts_with("HTTP/1.1 200 ").then_some(());
    eventually("a snapshot counts as reached", ready).await;
    let client = Client::connect(relay.address).await;

    let mut new: Delta = client.open(&fresh()).await;
    let got = new.next().await;
    // Equal versions before and after.
    assert_eq!((got.versions, got.removed), (held.clone(), vec![]));
    let mut sotw: Sotw = client.open(&state_of_the_world("")).await;
    let got = sotw.next().await;
    assert_eq!((got.resources.len(), got.version_info.as_str()), (2, version.as_str()));

    // `z` came after the last snapshot: the relay does not know it, and so does not remove it from any client.
    let mut more = held.clone();
    more.insert("z".to_owned(), "0".repeat(32));
    let mut ahead: Delta = client.open(&returning(&more)).await;
    let mut ahead_sotw: Sotw = client.open(&state_of_the_world(&"1".repeat(32))).await;
    let mut back = Vec::new();
    for _ in 0..CLIENTS {
        let returned: Delta = client.open(&returning(&held)).await;
        back.push(returned);
    }
    for client in &mut back {
        let got = client.first().await;
        assert_eq!((got.versions.len(), got.removed.len()), (0, 0), "nothing is resent");
    }
    assert_eq!(ahead.first().await.removed, Vec::<String>::new());
    // A full state would take what it holds besides.
    assert!(ahead_sotw.is_silent().await);
    stale(&relay, 1).await;

    // The control plane is back, with a changed, b gone, c new.
    let mut plane = Plane::again(address).await;
    let mut call = plane.call().await;
    assert!(call.delta().await.initial_resource_versions.is_empty(), "a clean start");
    call.send(&clusters("n2", &[("a", "2"), ("c", "1")], &[]));
    back.push(new);
    are_told_the_difference(&mut back).await;
    // What it holds is decided by the control plane.
    assert!(ahead_sotw.next().await.resources.len() >= 2);
    let mut removed = Vec::new();
    while removed.len() < 2 {
        removed.extend(ahead.next().await.removed);
    }
    removed.sort_unstable();
    assert_eq!(removed, ["b", "z"]);
    stale(&relay, 0).await;
    drop(call);
}

/// Clients that hold `a=1 b=1` are sent that a has changed and c is new, and once it is certain, that b is gone.
async fn are_told_the_difference(clients: &mut [Delta]) {
    for client in &mut *clients {
        let mut got = client.next().await;
        while got.versions.len() < 2 {
            got.versions.extend(client.next().await.versions);
        }
        assert_eq!(got.versions.keys().collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(got.removed, Vec::<String>::new(), "b may yet come");
    }
    for client in &mut *clients {
        let got = client.next().await;
        assert_eq!((got.versions.len(), got.removed), (0, vec!["b".to_owned()]));
    }
}

/// Waits until this many types are served without the word of the only server.
async fn stale(relay: &Relay, types: usize) {
    let end = format!("\"}} {types}");
    let shown = |line: &str| line.starts_with("distributary_stale_serving{server=") && line.ends_with(&end);
    until("a gauge", || relay.admin("/metrics").lines().any(shown)).await;
}

/// Resources from files are not written to snapshots: the files are there at the next start anyway.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_not_written_down() {
    let dir = directory("files");
    let file = dir.join("clusters.yaml");
    std::fs::write(&file, format!("- '@type': {CDS}\n  name: a\n")).unwrap();
    let snapshots = format!("snapshot: {{dir: '{}'}}\n", dir.display());
    let mut relay = Relay::asks("files", file.display(), &snapshots);
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&fresh()).await;
    assert_eq!(delta.next().await.versions.len(), 1);
    drop((delta, client));
    // At its end a relay writes a snapshot of everything that has changed.
    relay.terminate();
    assert_eq!(find(&dir), None);
}

/// The relay refuses a torn snapshot and names it; it starts empty, and does not tell clients that resources are missing (G-20).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torn_snapshot_is_not_served() {
    let dir = directory("torn");
    let mut address = None;
    first_run(&mut address, &dir).await;
    let path = find(&dir).unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let relay = Relay::start(address.unwrap(), &dir);
    let line = relay.line("a snapshot is not used");
    has(&line, path.to_str().unwrap());
    has(&line, "byte ");
    assert!(relay.admin("/ready").starts_with("HTTP/1.1 503 "));
    relay.shows("snapshots_total{result=\"not_loaded\"} 1");
    let client = Client::connect(relay.address).await;
    let mut new: Delta = client.open(&fresh()).await;
    assert!(new.is_silent().await);
}

/// An orderly end writes what changed since the last snapshot, however long the interval is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orderly_end_writes() {
    let dir = directory("orderly");
    let mut plane = Plane::start().await;
    let mut relay = Relay::with(plane.address, &dir, Duration::from_secs(3600));
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&fresh()).await;
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&clusters("n1", &[("a", "1")], &[]));
    assert_eq!(delta.next().await.versions.len(), 1);
    assert!(find(&dir).is_none());
    drop(delta);
    relay.terminate();
    let found = distributary::snapshot::read(&find(&dir).unwrap(), &Default::default(), stage::now()).unwrap();
    let held: usize = found.cut.slots().map(|(_, slot)| slot.present()).sum();
    assert_eq!(held, 1);
}
