// SPDX-License-Identifier: Apache-2.0
//! What a neighbour gives fits into the memory that is left, or is refused.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use distributary::snapshot::SnapshotIdentity;
use distributary::xds::{Changes, Cut, Phase, Resource, ResourceParts, TypeUrl, Update};

use crate::neighbours::{body, client, given, neighbour, sends};
use crate::plane::Plane;
use crate::stage::{CDS, Relay, asking, now};

/// A relay under a limit of the shell, with a limit of its own, that asks these neighbours.
fn relay(name: &str, limit: &str, memory: &str, upstream: SocketAddr, from: SocketAddr) -> Relay {
    let more = format!("snapshot: {{from: 'http://{from}'}}\nlimits: {{memory: {memory}}}\n");
    let command = ["sh", "-c", &format!("{limit}; exec \"$0\" \"$@\"")].map(str::to_owned);
    Relay::execute(&command, &format!("fitting-{name}"), &asking(upstream, &more), "json")
}

/// The most memory that the relay ever had for itself, in MiB: all but the pages of its program.
fn peak(relay: &Relay) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", relay.process())).unwrap();
    let [most, files] = ["VmHWM:", "RssFile:"].map(|key| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
    });
    (most - files) >> 10
}

/// A snapshot of that server, for all clients, with so many clusters of so many bytes.
fn snapshot(server: SocketAddr, clusters: usize, bytes: usize) -> Vec<u8> {
    let type_url = TypeUrl::new(CDS);
    let body = vec![7; bytes];
    let put = |at: usize| {
        let parts = ResourceParts {
            type_url: &type_url,
            name: format!("c{at}").as_str().into(),
            aliases: Vec::new(),
            passed_on: &[],
            body: &body,
            endpoints: None,
            received: now(),
        };
        Update::Put(Arc::new(Resource::new(parts, 0)), None)
    };
    let changes = Changes {
        type_url: type_url.clone(),
        wildcard: true,
        updates: (0..clusters).map(put).collect(),
        complete: Some(true),
        answered: None,
        phase: Phase::Steady,
    };
    let of = SnapshotIdentity {
        server: server.to_string(),
        class: "-".to_owned(),
    };
    given(&of, &Cut::default().with(&changes).0)
}

/// 15 MB of honest content in a process that may have 64 MiB: it is taken as it comes, and never twice. A relay waits five seconds for its
/// neighbours; a busy machine may need more than one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_fits_into_a_small_process() {
    let plane = Plane::start().await;
    let from = body(snapshot(plane.address, 150, 100_000));
    let limit = "export TOKIO_WORKER_THREADS=2; ulimit -d 65536";
    let mut starts = (0..8).map(|_| relay("small", limit, "auto", plane.address, from));
    let relay = starts.find(|relay| relay.line("neighbour").contains("has given its snapshots"));
    let relay = relay.unwrap();
    let mut stream = client(&relay).await;
    let mut served = 0;
    while served < 150 {
        served += stream.next().await.versions.len();
    }
}

/// Whatever does not fit into `limits.memory` is refused before it is read, and whatever is no snapshot with its first bytes; then
/// clients are served what the control plane says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_fit_is_refused() {
    let zeros = |announced: u64, begins: &'static [u8]| {
        neighbour(move |stream| {
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", 500 << 20)?;
            stream.write_all(&announced.to_le_bytes())?;
            stream.write_all(begins)?;
            (0..500).try_for_each(|_| stream.write_all(&vec![0; 1 << 20]))
        })
    };
    let mut plane = Plane::start().await;
    // It says one byte, and goes on.
    let mut lies = snapshot(plane.address, 80, 1 << 20);
    lies[..8].copy_from_slice(&1_u64.to_le_bytes());
    // What is announced fits, but small resources take more memory than bytes.
    let many = snapshot(plane.address, 120_000, 40);
    for (name, from, says) in [
        (
            "more",
            zeros(300 << 20, b"xdssnap\n"),
            "it announces a snapshot of 300 MiB, and there is memory for ",
        ),
        ("zeros", zeros(20 << 20, b""), "it sends something else than snapshots"),
        ("nothing", zeros(0, b""), "it sends something else than snapshots"),
        ("lies", body(lies), "it sends something else than snapshots"),
        ("many", body(many), "memory is short: "),
    ] {
        let relay = relay(name, "true", "40MiB", plane.address, from);
        let line = relay.line("a neighbour gives no snapshots; the control plane is asked");
        assert!(line.contains(says), "{name}: {line}");
        let mut stream = client(&relay).await;
        let call = sends(&mut plane).await;
        assert_eq!(stream.next().await.versions.len(), 10, "{name}");
        assert!(peak(&relay) < 40, "{name}: {} MiB", peak(&relay));
        drop(call);
    }
}
