//! Floods of clients leave no memory in use. The relay is a process of its own here.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use distributary::proto::google::rpc::Status;
use distributary::wire::message;
use prost::Message as _;
use tokio::io::AsyncWriteExt as _;

use crate::neighbours::packed;
use crate::support::client::Client;
use crate::support::messages::node;
use crate::support::{ADS, Address, EDS, PATIENCE, raw, until};

/// The program with its default limits and no control plane, as a process; dropping it ends it.
struct Process {
    child: Child,
    clients: SocketAddr,
    admin: SocketAddr,
}

impl Process {
    fn start() -> Self {
        let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("memory.yaml");
        let text = "upstream: {xds_servers: [{server_uri: '127.0.0.1:1'}]}\nadmin: {address: '127.0.0.1:0'}\n\
                    listeners: [{address: '127.0.0.1:0'}]\ntimers: {linger: 100ms}\n";
        std::fs::write(&path, text).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_distributary"))
            .args(["serve", "--log-level", "info", "--config"])
            .arg(&path)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut address = |words: &str| {
            let line = log.find(|line| line.contains(words)).unwrap();
            let at = line.find("127.0.0.1:").unwrap();
            let end = |c: char| !c.is_ascii_digit() && c != '.' && c != ':';
            line[at..].split(end).next().unwrap().parse().unwrap()
        };
        let (admin, clients) = (address("admin address"), address("listening for clients"));
        std::thread::spawn(move || log.for_each(drop));
        Self { child, clients, admin }
    }

    /// Bytes of memory that the process has for itself.
    fn resident(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    /// Whether no stream and no connection is open.
    fn is_empty(&self) -> bool {
        let mut socket = TcpStream::connect(self.admin).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            socket,
            "GET /metrics HTTP/1.1\r\nhost: relay\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let open =
            |line: &&str| line.starts_with("distributary_streams{") || line.starts_with("distributary_connections ");
        let counts: Vec<&str> = text.lines().filter(open).collect();
        assert!(counts.len() >= 2, "{text}");
        counts.iter().all(|line| line.ends_with(" 0"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn path() -> String {
    format!("/{ADS}/DeltaAggregatedResources")
}

fn request(names: Vec<String>) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(node()),
        type_url: EDS.to_owned(),
        resource_names_subscribe: names,
        ..Default::default()
    }
}

/// As many streams as a connection may have, each with names of its own.
async fn streams(address: SocketAddr, round: usize) {
    let (mut frames, mut write) = raw::connect(address).await;
    // Until the relay has opened its window there is room for less than this.
    frames.next_of(raw::WINDOW_UPDATE).await;
    let open = |n: u32| {
        let names = (0..6)
            .map(|name| format!("{round}-{n}-{name}-{}", "x".repeat(20)))
            .collect();
        let request = message(&request(names).encode_to_vec());
        [
            raw::call(2 * n + 1, &path(), &[]),
            raw::frame(raw::DATA, 0, 2 * n + 1, &request),
        ]
        .concat()
    };
    let calls: Vec<u8> = (0..4096).flat_map(open).collect();
    let read = async {
        for _ in 0..4096 {
            frames.next_of(raw::HEADERS).await;
        }
    };
    tokio::join!(read, async { write.write_all(&calls).await.unwrap() });
}

/// A large request, whole or not, and one that asks for too much.
async fn requests(address: SocketAddr, round: usize) {
    let client = Client::connect(&Address::Tcp(address)).await;
    let mut call = client.call(&path()).await;
    call.send(&request((0..1_000_000).map(|n| format!("n{n}")).collect()));
    assert_eq!(call.end().await.code, 8);
    let mut call = client.call(&path()).await;
    call.send(&request(
        (0..100_000)
            .map(|n| format!("{round}-{n}-{}", "x".repeat(100)))
            .collect(),
    ));
    let mut unfinished = client.call(&path()).await;
    unfinished.send_bytes(vec![0, 0, 0xff, 0, 0]);
    unfinished.send_bytes(vec![0; 10 << 20]);
    assert!(call.is_silent().await && unfinished.is_silent().await);
}

/// The peak memory of the process.
fn most(relay: &Process) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", relay.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// By the default limits unfinished requests may take a sixth of this. The rest is for requests that are read just now, for
/// connection buffers, and for what the allocator has not given back yet.
const READING: usize = 6 * (64 << 20);

/// 100 messages without their last byte, 1.6 GiB from all clients together; and rejections of 15 MiB that are a thousand times
/// smaller on the wire.
#[tokio::test]
async fn what_is_read_has_a_bound() {
    let relay = Process::start();
    until(|| relay.is_empty(), || "a stream or connection is open".to_owned()).await;
    let base = most(&relay);
    let address = Address::Tcp(relay.clients);
    let rejection = DiscoveryRequest {
        node: Some(node()),
        type_url: EDS.to_owned(),
        error_detail: Some(Status {
            code: 3,
            message: "no ".repeat(5 << 20),
            details: Vec::new(),
        }),
        ..Default::default()
    };
    let packed = Bytes::from(packed(&rejection.encode_to_vec()));
    let unfinished = Bytes::from([&[0, 0, 0xff, 0, 0][..], &vec![0; 0xff_0000 - 1]].concat());
    let path = format!("/{ADS}/StreamAggregatedResources");
    let mut clients = Vec::new();
    for _ in 0..20 {
        let client = Client::connect(&address).await;
        let mut calls = Vec::new();
        for _ in 0..5 {
            let mut call = client.call_with(&path, &[("grpc-encoding", "gzip")]).await;
            call.send_bytes(packed.clone());
            calls.push(call);
            let mut call = client.call(&path).await;
            call.send_bytes(unfinished.clone());
            calls.push(call);
        }
        clients.push((client, calls));
    }
    // A client with a small request is still served.
    let client = Client::connect(&address).await;
    let mut call = client.call(&path).await;
    call.send_bytes(vec![0, 0, 0, 0, 5, 1]);
    call.send_bytes(vec![1, 2, 3, 4]);
    assert_eq!(call.end().await.code, 3);
    drop((call, client, clients));
    until(|| relay.is_empty(), || "somebody stays".to_owned()).await;
    let grown = most(&relay) - base;
    assert!(grown < READING, "{} MiB at the most", grown >> 20);
}

/// How many bytes more than before the floods may stay in use: permanent state, threads, pools and the allocator's own. A leak in
/// any round of names or streams above would be larger than that.
const SLACK: usize = 16 << 20;

/// Memory that a flood took goes back to the system, by itself and within seconds.
#[tokio::test]
#[cfg_attr(not(feature = "jemalloc"), ignore = "other allocators keep it; --features jemalloc")]
async fn floods_leave_nothing_behind() {
    let relay = Process::start();
    until(|| relay.is_empty(), || "a stream or connection is open".to_owned()).await;
    let base = relay.resident();
    for round in 0..4 {
        streams(relay.clients, round).await;
        requests(relay.clients, round).await;
        until(|| relay.is_empty(), || "somebody stays".to_owned()).await;
    }
    let grown = || relay.resident().saturating_sub(base);
    until(
        || grown() < SLACK,
        || format!("{} KiB more than {}", grown() >> 10, base >> 10),
    )
    .await;
}
