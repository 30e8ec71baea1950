// SPDX-License-Identifier: Apache-2.0
//! Full and read-only disks: the relay reports it, clients are still served, and the last good snapshot stays.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;

use crate::plane::{Call, Plane};
use crate::stage::{self, CDS, Client, Delta, Relay, clusters, directory, eventually};
use crate::{find, first_run, fresh};

/// A command that runs `script` in a shell and then the program.
fn before(script: &str) -> Vec<String> {
    let script = format!("{script} && exec \"$@\"");
    ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec()
}

/// The same in a mount namespace of its own, if the system allows that.
fn with_mounts(script: &str) -> Option<Vec<String>> {
    for options in ["-m", "-rm"] {
        let works = Command::new("unshare")
            .args([options, "mount", "-t", "tmpfs", "none", "/mnt"])
            .output();
        if works.is_ok_and(|done| done.status.success()) {
            let own = ["unshare", options].map(str::to_owned);
            return Some([own.to_vec(), before(script)].concat());
        }
    }
    // Not with eprintln, which the test harness captures: the reader is to see what was not tried.
    let words =
        "\nNOT TRIED: this system allows no mounts (`unshare -m`); `a_file_may_not_grow` has the same failure\n";
    std::io::stderr().write_all(words.as_bytes()).unwrap();
    None
}

/// A response with one cluster of this many bytes.
fn large(nonce: &str, bytes: usize) -> DeltaDiscoveryResponse {
    let length = u16::try_from(bytes).unwrap();
    let low = u8::try_from(length & 0x7f).unwrap() | 0x80;
    let (middle, high) = (
        u8::try_from(length >> 7 & 0x7f).unwrap() | 0x80,
        u8::try_from(length >> 14).unwrap(),
    );
    let body = [&b"\x0a\x01a\x7a"[..], &[low, middle, high], &vec![b'x'; bytes]].concat();
    DeltaDiscoveryResponse {
        type_url: CDS.to_owned(),
        nonce: nonce.to_owned(),
        resources: vec![Resource {
            name: "a".to_owned(),
            version: nonce.to_owned(),
            resource: Some(Any {
                type_url: CDS.to_owned(),
                value: Bytes::from(body),
            }),
            ..Resource::default()
        }],
        ..Default::default()
    }
}

/// Returns the size of the largest resource in a directory's snapshot, if there is a complete snapshot.
fn largest(dir: &Path) -> Option<usize> {
    let found = distributary::snapshot::read(&find(dir)?, &Default::default(), stage::now()).unwrap();
    let slots = found.cut.slots();
    let states = slots.filter_map(|(_, slot)| slot.wildcard.as_ref());
    let sizes = states.flat_map(|state| {
        state
            .resources()
            .map(|resource| resource.body().len())
            .collect::<Vec<_>>()
    });
    sizes.max()
}

/// Waits until failed writes of a snapshot are counted. They are one line.
async fn not_written(relay: &Relay) {
    let count = |line: &str| {
        let count = line.strip_prefix("distributary_snapshots_total{result=\"not_written\"} ")?;
        count.parse::<usize>().ok()
    };
    let counted = || {
        relay
            .admin("/metrics")
            .lines()
            .find_map(count)
            .filter(|count| *count >= 3)
    };
    eventually("a count", counted).await;
    assert_eq!(relay.lines("cannot write a snapshot"), 1);
}

/// A disk that has room for small snapshots and not for large ones. `dir` is the path of its files as this process sees it.
async fn fills_up(relay: &Relay, plane: &mut Plane, dir: &Path, words: &str) {
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&fresh()).await;
    let mut call: Call = plane.call().await;
    call.delta().await;
    call.send(&large("1", 200));
    assert_eq!(delta.next().await.versions.len(), 1);
    let small = eventually("a snapshot", || largest(dir)).await;
    assert!((200..300).contains(&small), "{small}");

    call.send(&large("2", 60_000));
    assert_eq!(delta.next().await.versions.len(), 1, "clients are served all the same");
    let line = relay.line("cannot write a snapshot; clients are still served");
    assert!(line.contains("cannot be written") && line.contains(words), "{line}");
    not_written(relay).await;
    // It is what is wrong with the relay for as long as it is, with the age of what a restart would begin with.
    eventually("a fault", || {
        let clusters = relay.admin("/clusters");
        let fault = clusters
            .lines()
            .find(|line| line.contains("a snapshot of "))?
            .to_owned();
        let told = fault.contains(words) && fault.contains("; the last one of it was written at 20");
        told.then_some(())
    })
    .await;
    let (code, said) = relay.command(&["status"]);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(largest(dir), Some(small), "the last good one is there, whole");
    eventually("the end of what is half-written", || {
        let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let mut halves = files.filter(|path| path.extension().is_some_and(|extension| extension == "tmp"));
        halves.next().is_none().then_some(())
    })
    .await;

    // There is room again, and the next interval finds it.
    call.send(&large("3", 210));
    assert_eq!(delta.next().await.versions.len(), 1);
    eventually("the next snapshot", || {
        largest(dir).filter(|len| *len > small && *len < 500)
    })
    .await;
    eventually("no fault", || {
        (!relay.admin("/clusters").contains("a snapshot of ")).then_some(())
    })
    .await;
}

/// A limit of the file size: the system takes a part of the file and then no more, like a disk that fills up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_may_not_grow() {
    let dir = directory("limited");
    let mut plane = Plane::start().await;
    // The signal would end the relay; the test wants the error.
    let relay = Relay::behind(&before("trap '' XFSZ && ulimit -f 32"), plane.address, &dir);
    fills_up(&relay, &mut plane, &dir, "File too large").await;
}

/// A disk that is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk() {
    let dir = directory("full");
    let mount = format!("mount -t tmpfs -o size=32k,mode=700 none '{}'", dir.display());
    let Some(own) = with_mounts(&mount) else { return };
    let mut plane = Plane::start().await;
    let relay = Relay::behind(&own, plane.address, &dir);
    let seen = PathBuf::from(format!("/proc/{}/root{}", relay.process(), dir.display()));
    fills_up(&relay, &mut plane, &seen, "No space left on device").await;
}

/// A read-only disk: its snapshot is served, and stays as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_can_only_be_read() {
    let dir = directory("read-only");
    let mut address = None;
    let (held, _) = first_run(&mut address, &dir).await;
    let path = dir.display();
    let mount = format!("mount --bind '{path}' '{path}' && mount -o remount,bind,ro '{path}'");
    let Some(own) = with_mounts(&mount) else { return };
    let before = std::fs::read(find(&dir).unwrap()).unwrap();
    let relay = Relay::behind(&own, address.unwrap(), &dir);
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&fresh()).await;
    assert_eq!(delta.next().await.versions, held);

    let mut plane = Plane::again(address.unwrap()).await;
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&clusters("n2", &[("a", "2"), ("b", "1")], &[]));
    assert_eq!(delta.next().await.versions.len(), 1);
    let line = relay.line("cannot write a snapshot; clients are still served");
    assert!(line.contains("Read-only file system"), "{line}");
    not_written(&relay).await;
    assert_eq!(std::fs::read(find(&dir).unwrap()).unwrap(), before);
}
