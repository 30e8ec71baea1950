// SPDX-License-Identifier: Apache-2.0
//! A relay without a snapshot of its own begins with those of its neighbours, whatever else answers there.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use distributary::snapshot::{Choice, SnapshotIdentity, give};

use crate::plane::{Call, Plane};
use crate::stage::{Client, Delta, Relay, clusters, place, until};
use crate::{fresh, returning};

/// A relay that asks the relays at these admin addresses, and writes nothing to disk.
fn relay(name: &str, upstream: SocketAddr, from: &[SocketAddr]) -> Relay {
    let from: Vec<_> = from.iter().map(|address| format!("http://{address}")).collect();
    let from = format!("snapshot: {{from: [{}]}}\n", from.join(", "));
    Relay::asks(&format!("neighbours-{name}"), upstream, &from)
}

fn some() -> Vec<(String, String)> {
    (0..10).map(|at| (format!("c{at}"), "1".to_owned())).collect()
}

/// Sends ten clusters on the next call.
pub(crate) async fn sends(plane: &mut Plane) -> Call {
    let mut call = plane.call().await;
    call.delta().await;
    let all = some();
    let all: Vec<_> = all
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_str()))
        .collect();
    call.send(&clusters("n1", &all, &[]));
    call
}

pub(crate) async fn client(relay: &Relay) -> Delta {
    Client::connect(relay.address).await.open(&fresh()).await
}

async fn is_ready(relay: &Relay) {
    until("a relay that is ready", || {
        relay.admin("/ready").starts_with("HTTP/1.1 200 ")
    })
    .await;
}

/// Three relays are replaced one after the other while the control plane is away, without disks: no client waits. A judgement travels:
/// what the control plane seems to have forgotten stays with clients of the new relays, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_update_without_the_control_plane() {
    let mut plane = Plane::start().await;
    let above = plane.address;
    let mut relays = Vec::new();
    let (mut held, mut calls) = (BTreeMap::new(), Vec::new());
    for at in 0..3 {
        let relay = relay(&format!("old-{at}"), above, &[place()]);
        let mut stream = client(&relay).await;
        let call = sends(&mut plane).await;
        held = stream.next().await.versions;
        assert_eq!(held.len(), 10);
        // The control plane comes back, and knows but one of them.
        call.finish(tonic::Code::Unavailable, "restarting");
        let mut call = plane.call().await;
        call.delta().await;
        let most: Vec<_> = (1..10).map(|at| format!("c{at}")).collect();
        let most: Vec<_> = most.iter().map(String::as_str).collect();
        call.send(&clusters("n2", &[("c0", "1")], &most));
        until("a judgement", || relay.admin("/holds").contains("c9")).await;
        calls.push(call);
        relays.push((relay, stream));
    }
    drop((plane, calls));
    for at in 0..3 {
        let from: Vec<_> = relays.iter().map(|(relay, _)| relay.admin_address()).collect();
        let new = relay(&format!("new-{at}"), above, &from);
        is_ready(&new).await;
        let (mut old, _) = relays.remove(0);
        old.terminate();
        let mut stream = client(&new).await;
        assert_eq!(stream.next().await.versions, held, "relay {at}");
        let mut back: Delta = Client::connect(new.address).await.open(&returning(&held)).await;
        let got = back.first().await;
        assert_eq!((got.versions.len(), got.removed.len()), (0, 0), "nothing is resent");
        assert!(new.admin("/holds").contains("c9"), "{}", new.admin("/holds"));
        new.line("a view begins with its snapshot");
        relays.push((new, stream));
    }
    let received = "distributary_snapshots_total{result=\"received\"} 1\n";
    for (relay, _) in &relays {
        assert!(relay.admin("/metrics").contains(received));
    }
}

/// What something that is no good neighbour answers.
type Answers = Arc<dyn Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync>;

pub(crate) fn neighbour(answers: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answers: Answers = Arc::new(answers);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let answers = answers.clone();
            std::thread::spawn(move || {
                let mut request = [0; 1024];
                let _ = stream.read(&mut request);
                let _ = answers(&mut stream);
            });
        }
    });
    address
}

/// An answer with this body, and then the end.
pub(crate) fn body(bytes: Vec<u8>) -> SocketAddr {
    neighbour(move |stream| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", bytes.len())?;
        stream.write_all(&bytes)
    })
}

/// What this relay gives that knows this, behind its length.
pub(crate) fn given(of: &SnapshotIdentity, cut: &xds::Cut) -> Vec<u8> {
    let mut bytes = Vec::new();
    give(&mut bytes, of, cut, Choice::all(false)).unwrap();
    bytes
}

/// A neighbour that sends the head of a snapshot, and then a byte now and then.
fn trickling(head: Vec<u8>) -> (SocketAddr, &'static str) {
    let address = neighbour(move |stream| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")?;
        stream.write_all(&90_000_u64.to_le_bytes())?;
        stream.write_all(&head)?;
        loop {
            stream.write_all(&[1])?;
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    (address, "neighbours take too long")
}

/// A neighbour that lies, is older or newer, sends without end, too slowly or nothing, or starts itself: each is told, and the snapshot
/// of a good one is used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_good_neighbour_is_enough() {
    let mut plane = Plane::start().await;
    let above = plane.address;
    let good = relay("good", above, &[place()]);
    let mut stream = client(&good).await;
    let call = sends(&mut plane).await;
    let held = stream.next().await.versions;
    drop((plane, call));

    let of = SnapshotIdentity {
        server: format!("http://{above}"),
        class: "-".to_owned(),
    };
    let whole = given(&of, &xds::Cut::default());
    let changed = |at: usize, to: u8| {
        let mut bytes = whole.clone();
        bytes[at] = to;
        body(bytes)
    };
    let says = |head: &'static str| neighbour(move |stream| stream.write_all(head.as_bytes()));
    let forever = Duration::from_secs(60);
    #[rustfmt::skip]
    let neighbours = [
        (says("nonsense\r\n\r\n"), "the answer is not HTTP/1.1"),
        (says("HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\nno\n"), "it answers 404: no"),
        (says("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 9\r\n\r\nstarting\n"), "has no snapshot to give"),
        (changed(whole.len() - 1, !whole[whole.len() - 1]), "the checksum is wrong"),
        (changed(16, 1), "its format is 1, but this relay reads only format 2"),
        (changed(16, 3), "its format is 3, but this relay reads only format 2"),
        (body(whole[..20].to_vec()), "its answer ends within a snapshot"),
        (body([&u64::MAX.to_le_bytes(), &b"xdssnap\n"[..]].concat()),
            "it announces a snapshot of 17592186044415 MiB, and there is memory for "),
        (body(vec![0xa5; 100_000]), "it sends something else than snapshots"),
        (place(), "a neighbour gives no snapshots"),
        (neighbour(move |_| { std::thread::sleep(forever); Ok(()) }), "it did not begin to answer within 2s"),
        trickling(whole[8..20].to_vec()),
    ];
    let mut from: Vec<_> = neighbours.iter().map(|(address, _)| *address).collect();
    from.push(good.admin_address());
    let new = relay("new", above, &from);
    let mut stream = client(&new).await;
    assert_eq!(stream.next().await.versions, held);
    for (address, says) in neighbours {
        let line = new.line(says);
        let named = says == "neighbours take too long" || says.contains("gives no");
        assert!(named || line.contains(&address.to_string()), "{line}");
    }
}
