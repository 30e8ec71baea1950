// SPDX-License-Identifier: Apache-2.0
//! Floods of clients leave no memory in use. The relay is a process of its own here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::proto::envoy::service::status::v3::ClientStatusRequest;
use distributary::wire::message;
use distributary::xds::Dialect;
use prost::Message as _;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use tonic::Code;

use crate::hostile::{rejection, versions};
use crate::neighbours::packed;
use crate::support::client::Client;
use crate::support::messages::Subscriber;
use crate::support::process::Process;
use crate::support::{Address, CDS, EDS, PATIENCE, now, path, raw, says, soon, until, wants};

fn request(names: Vec<String>) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        resource_names_subscribe: names,
        ..wants(EDS, &[])
    }
}

/// A file of resources, which are written as JSON. It is moved into place.
pub(crate) fn resources(name: &str, all: impl IntoIterator<Item = String>) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let all: Vec<String> = all.into_iter().collect();
    let new = path.with_extension("new");
    std::fs::write(&new, format!(r#"{{"resources": [{}]}}"#, all.join(","))).unwrap();
    std::fs::rename(new, &path).unwrap();
    path
}

/// A cluster as JSON.
pub(crate) fn cluster(name: &str, content: &str) -> String {
    format!(r#"{{"@type": "{CDS}", "name": "{name}", "altStatName": "{content}"}}"#)
}

/// As many streams as a connection may have, each with names of its own.
async fn streams(address: SocketAddr, round: usize) {
    let (mut frames, mut write) = raw::connect(address).await;
    // Until the relay has opened its window there is room for less than this.
    frames.next_of(raw::WINDOW_UPDATE).await;
    let open = |n: u32| {
        let names = (0..6).map(|name| format!("{round}-{n}-{name}-{}", "x".repeat(20)));
        let request = message(&request(names.collect()).encode_to_vec());
        let data = raw::frame(raw::DATA, 0, 2 * n + 1, &request);
        [raw::call(2 * n + 1, path(Dialect::Delta), &[]), data].concat()
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
    let client = Client::connect(address).await;
    let mut call = client.ads(Dialect::Delta).await;
    call.send(&request((0..1_000_000).map(|n| format!("n{n}")).collect()));
    assert_eq!(call.end().await.code, 8);
    let mut call = client.ads(Dialect::Delta).await;
    let names = (0..100_000).map(|n| format!("{round}-{n}-{}", "x".repeat(100)));
    call.send(&request(names.collect()));
    let mut unfinished = client.ads(Dialect::Delta).await;
    unfinished.send_bytes(vec![0, 0, 0xff, 0, 0]);
    unfinished.send_bytes(vec![0; 10 << 20]);
    assert!(call.is_silent().await && unfinished.is_silent().await);
}

/// By the default limits unfinished requests may take a sixth of this. The rest is for requests that are read just now, for
/// connection buffers, and for what the allocator has not given back yet.
const READING: usize = 6 * (64 << 20);

/// 100 messages without their last byte, 1.6 GiB from all clients together; and rejections of 15 MiB that are a thousand times
/// smaller on the wire.
#[tokio::test]
async fn what_is_read_has_a_bound() {
    let relay = Process::start();
    until(|| relay.is_empty(), || "a stream or connection is open").await;
    let base = relay.peak();
    let address = Address::Tcp(relay.clients);
    let packed = Bytes::from(packed(&rejection(15 << 20).encode_to_vec()));
    let unfinished = Bytes::from([&[0, 0, 0xff, 0, 0][..], &vec![0; 0xff_0000 - 1]].concat());
    let mut clients = Vec::new();
    for _ in 0..20 {
        let client = Client::connect(&address).await;
        let mut calls = Vec::new();
        for _ in 0..5 {
            let gzip = [("grpc-encoding", "gzip")];
            let mut call = client.call_with(path(Dialect::Sotw), &gzip).await;
            call.send_bytes(packed.clone());
            calls.push(call);
            let mut call = client.ads(Dialect::Sotw).await;
            call.send_bytes(unfinished.clone());
            calls.push(call);
        }
        clients.push((client, calls));
    }
    // A client with a small request is still served.
    let client = Client::connect(&address).await;
    let mut call = client.ads(Dialect::Sotw).await;
    call.send_bytes(vec![0, 0, 0, 0, 5, 1]);
    call.send_bytes(vec![1, 2, 3, 4]);
    assert_eq!(call.end().await.code, 3);
    drop((call, client, clients));
    until(|| relay.is_empty(), || "somebody stays").await;
    let grown = relay.peak() - base;
    assert!(grown < READING, "{} MiB at the most", grown >> 20);
}

/// How many bytes more than before the floods may stay in use: permanent state, threads, pools and the allocator's own. A leak in
/// any round of names or streams above would be larger than that.
const SLACK: usize = 16 << 20;

/// Memory that a flood took goes back to the system, by itself and within seconds.
#[tokio::test]
#[ignore = "other allocators keep it; `tests/hostile/run` plays it with jemalloc"]
async fn floods_leave_nothing_behind() {
    let relay = Process::start();
    until(|| relay.is_empty(), || "a stream or connection is open").await;
    let base = relay.resident();
    for round in 0..4 {
        streams(relay.clients, round).await;
        requests(relay.clients, round).await;
        until(|| relay.is_empty(), || "somebody stays").await;
    }
    let grown = || relay.resident().saturating_sub(base);
    until(|| grown() < SLACK, grown).await;
}

/// A name that nobody else has, and of which nothing exists, takes some 290 bytes with its text of 37 bytes, from the client's stream
/// to that of the control plane. What the allocator has not given back is part of this.
const OF_A_NAME: usize = 420;

#[tokio::test]
async fn names_that_nobody_else_has() {
    const NAMES: usize = 60_000;
    const IN_A_REQUEST: usize = 2000;
    let path = resources("nothing.json", []);
    let plane = Process::of("nothing", path.to_str().unwrap(), "");
    let relay = Process::of("names", &plane.clients.to_string(), "");
    let client = Client::connect(relay.clients).await;
    let mut follower = client.subscriber(Dialect::Delta, EDS).await;
    let mut base = 0;
    for nth in 0..=NAMES / IN_A_REQUEST {
        let names = (0..IN_A_REQUEST).map(|name| format!("a-name-that-nobody-else-has-{nth:04}-{name:04}"));
        let names: Vec<String> = names.collect();
        follower.subscribe(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let mut removed = 0;
        while removed < IN_A_REQUEST {
            removed += follower.take().await.removed.len();
        }
        if nth == 0 {
            base = relay.resident();
        }
    }
    let each = relay.resident().saturating_sub(base) / NAMES;
    println!("{each} bytes for each name");
    assert!(each < OF_A_NAME, "{each} bytes for each name");
}

/// Many clients that ask for the same resources by name and read nothing take little memory: the responses refer to the resources.
#[tokio::test]
async fn what_is_not_read_is_shared() {
    const CLIENTS: usize = 200;
    const NAMES: usize = 200;
    let filler = "x".repeat(1000);
    let resource =
        |n| format!(r#"{{"@type": "{EDS}", "clusterName": "n{n}", "namedEndpoints": {{"{filler}": {{}}}}}}"#);
    let path = resources("unread-resources.json", (0..NAMES).map(resource));
    let relay = Process::of("unread", path.to_str().unwrap(), "timers: {linger: 100ms}\n");
    let names: Vec<String> = (0..NAMES).map(|n| format!("n{n}")).collect();
    let mut connections = Vec::new();
    let mut base = 0;
    for n in 0..2 * CLIENTS {
        if n == CLIENTS {
            answered(&relay, n).await;
            base = relay.resident();
        }
        let (mut frames, mut write) = raw::connect(relay.clients).await;
        frames.next_of(raw::WINDOW_UPDATE).await;
        // Each asks for a few names fewer than the one before, so that few requests are equal.
        let names = names.iter().skip(n % 50).cloned().collect();
        let request = message(&request(names).encode_to_vec());
        let call = [
            raw::call(1, self::path(Dialect::Delta), &[]),
            raw::frame(raw::DATA, 0, 1, &request),
        ];
        write.write_all(&call.concat()).await.unwrap();
        connections.push((frames, write));
    }
    answered(&relay, 2 * CLIENTS).await;
    // The allocator may give back meanwhile what it kept.
    let each = relay.resident().saturating_sub(base) / CLIENTS;
    assert!(each < 100_000, "{each} bytes a client, and {} unread", NAMES * 1000);
}

/// Answers that are sent as a whole may take 48 MiB, and another one of at most 32 MiB may be on its way. The rest is for the resources,
/// and for what the allocator keeps of reading them.
const ANSWERS: usize = (48 + 32 + 80) << 20;
const FETCH: &str = "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus";

/// A file of 12 MiB of resources.
fn large(name: &str) -> PathBuf {
    resources(name, (0..3000).map(|n| cluster(&format!("n{n}"), &"x".repeat(4096))))
}

/// Clients that a rule allows to ask read nothing of their answers, on a listener and on the admin address. Others are told so, and
/// are answered once these have left.
#[tokio::test]
async fn questions_have_a_budget() {
    let rules = "rules: [{name: all}, {name: operators, dialects: csds}]\n\
                 limits: {upstream_message: 64MiB}\ntimers: {unanswered: 1m}\n";
    let relay = Process::of("questions", large("questions.json").to_str().unwrap(), rules);
    let client = Client::connect(relay.clients).await;
    let call = client.ads(Dialect::Delta).await;
    let mut follower = Subscriber::new(call, Dialect::Delta, CDS);
    follower.subscribe(&["*"]);
    until_all(&mut follower, 3000).await;
    let ask = async |client: &Client| {
        let mut call = client.unary(FETCH, &ClientStatusRequest::default()).await;
        call.next_bytes().await.map(|answer| answer.len())
    };
    assert!(ask(&client).await.unwrap() > 12_000_000);
    let base = relay.resident();
    let mut unread = Vec::new();
    for n in 0..16 {
        let address = Address::Tcp([relay.clients, relay.admin][n % 2]);
        let nothing = h2::client::Builder::new().initial_window_size(0).clone();
        let (reads_nothing, _) = Client::with(&address, &nothing).await;
        let call = reads_nothing.unary(FETCH, &ClientStatusRequest::default()).await;
        unread.push((reads_nothing, call));
    }
    let (begun, mut most) = (now(), 0);
    let refused = loop {
        let refused = ask(&client).await.err();
        most = most.max(relay.resident());
        match refused {
            Some(ended) => break ended,
            None => assert!(begun.elapsed() < PATIENCE, "{} MiB more", most >> 20),
        }
    };
    println!(
        "{} MiB before 16 answers of 12 MiB, {} MiB with them",
        base >> 20,
        most >> 20
    );
    let words = [
        "answers that nobody has read yet take all of the 48 MiB",
        "other questions of this kind",
    ];
    let told = words.iter().any(|words| refused.message.contains(words));
    assert!([8, 14].contains(&refused.code) && told, "{refused:?}");
    assert!(most < ANSWERS, "{} MiB", most >> 20);
    // What is sent while it is written is answered all the same.
    let metrics = relay.metrics();
    assert!(metrics.contains("distributary_connections"), "{metrics}");
    drop(unread);
    let answered = async {
        while ask(&client).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    soon("an answer", answered).await;
}

/// Takes responses until there were so many resources.
async fn until_all(follower: &mut Subscriber, resources: usize) {
    let mut taken = 0;
    while taken < resources {
        taken += follower.next().await.unwrap().bodies.len();
        follower.ack();
    }
}

/// B-34: ten streams that bring very many versions again and again, and acknowledge nothing, keep no newcomer out: those of one
/// connection, and of ten beside a smaller limit.
#[tokio::test]
#[ignore = "other allocators give memory back in other ways; `tests/hostile/run` plays it with jemalloc"]
async fn newcomers_beside_very_many_versions() {
    for (mebibytes, connections) in [(256, 1), (200, 10)] {
        let (newcomers, peak) = beside_versions(mebibytes << 20, connections).await;
        println!(
            "{newcomers} newcomers beside versions on {connections} connections; {} MiB",
            peak >> 20
        );
        assert!(peak < mebibytes << 20, "{} MiB of {mebibytes}", peak >> 20);
    }
}

/// Returns how many newcomers were served, and the most memory that the relay took.
async fn beside_versions(memory: usize, connections: usize) -> (usize, usize) {
    let relay = Process::of("newcomers", "127.0.0.1:1", &format!("limits: {{memory: {memory}}}\n"));
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(Arc::new(Client::connect(relay.clients).await));
    }
    let mut streams = JoinSet::new();
    for client in clients.iter().cycle().take(10) {
        let client = client.clone();
        streams.spawn(async move {
            loop {
                let mut call = client.ads(Dialect::Delta).await;
                call.send_bytes(versions(190_000));
                while call.next_bytes().await.is_ok() {}
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
    }
    let (begun, mut newcomers) = (now(), 0);
    while begun.elapsed() < Duration::from_secs(20) {
        assert!(is_served(&relay).await, "{newcomers}: {}", relay.metrics());
        newcomers += 1;
    }
    (newcomers, relay.peak())
}

/// The versions of clients do not end a process with a limit of its own (RLIMIT_DATA) either, nor do they keep others out. The same in a
/// cgroup.
#[tokio::test]
#[ignore = "other allocators reserve in other ways; `tests/hostile/run` plays it with jemalloc"]
async fn versions_within_the_limits_of_the_process() {
    let of_data = |mebibytes| format!("ulimit -d {}", mebibytes << 10);
    let groups = [512].map(|mebibytes| Some((in_a_group(mebibytes << 20)?, mebibytes)));
    let limits = [256, 512].map(|mebibytes| Some((of_data(mebibytes), mebibytes)));
    for (limit, mebibytes) in limits.into_iter().chain(groups).flatten() {
        let limit = format!("export TOKIO_WORKER_THREADS=2 _RJEM_MALLOC_CONF=narenas:8,retain:false; {limit}");
        let upstream = "xds_servers: [{server_uri: '127.0.0.1:1'}]";
        let relay = Process::under(&limit, "brought", upstream, &[""], "timers: {linger: 100ms}\n");
        let (begun, mut longest) = (now(), Duration::ZERO);
        let mut calls = Vec::new();
        while begun.elapsed() < Duration::from_secs(15) {
            if calls.len() < 20 {
                let client = Client::connect(relay.clients).await;
                let mut call = client.ads(Dialect::Delta).await;
                call.send_bytes(versions(190_000));
                calls.push((client, call));
            }
            let asked = now();
            while !is_served(&relay).await {
                assert!(asked.elapsed() < PATIENCE, "nobody is served: {}", relay.metrics());
            }
            longest = longest.max(asked.elapsed());
        }
        let peak = relay.peak() >> 20;
        println!("{limit}: {peak} MiB, an arrival up to {longest:.1?}");
        assert!(peak < mebibytes, "{peak} MiB: {limit}");
    }
}

/// Returns what makes a process see itself in a cgroup with so much memory: the kernel does not enforce that, but the relay reads it. None
/// where nobody may mount anything.
#[expect(clippy::print_stdout, reason = "what was not tried is printed for people")]
fn in_a_group(bytes: usize) -> Option<String> {
    let may = |options: &&str| {
        let mounts = ["mount", "-t", "tmpfs", "none", "/sys/fs/cgroup"];
        let tried = std::process::Command::new("unshare").arg(options).args(mounts).output();
        tried.is_ok_and(|tried| tried.status.success())
    };
    let Some(options) = ["-m", "-rm"].into_iter().find(may) else {
        println!("NOT TRIED in a cgroup: this system allows no mounts (`unshare -m`)");
        return None;
    };
    let group = "/sys/fs/cgroup";
    Some(format!(
        "exec unshare {options} sh -c 'mount -t tmpfs none {group} && mkdir {group}/memory && echo {bytes} | \
         tee {group}/memory.max > {group}/memory/memory.limit_in_bytes && exec \"$0\" \"$@\"' \"$0\" \"$@\""
    ))
}

/// Under a limit of the process itself (RLIMIT_DATA) the relay refuses what it has no memory for, and does not end. If the
/// allocator gives back what it does not need, there is room for others when those who took too much have left.
#[tokio::test]
#[ignore = "other allocators reserve in other ways; `tests/hostile/run` plays it with jemalloc"]
async fn limits_of_the_process_are_kept() {
    const LIMIT: &str = "ulimit -d 204800; export TOKIO_WORKER_THREADS=2 _RJEM_MALLOC_CONF=narenas:8";
    let gives_back = format!("{LIMIT},retain:false");
    for limit in [LIMIT, &gives_back] {
        let upstream = "xds_servers: [{server_uri: '127.0.0.1:1'}]";
        let relay = Process::under(limit, "limited", upstream, &[""], "timers: {linger: 100ms}\n");
        let mut calls = Vec::new();
        for round in 0..12 {
            let client = Client::connect(relay.clients).await;
            let mut call = client.ads(Dialect::Delta).await;
            let names = (0..100_000).map(|n| format!("{round}-name-of-cluster-{n}"));
            call.send(&request(names.collect()));
            calls.push((client, call));
        }
        let refused = |line: &str| line.starts_with("distributary_refused_total{limit=\"") && !line.ends_with(" 0");
        until(|| relay.metrics().lines().any(refused), || relay.metrics()).await;
        drop(calls);
        until(|| relay.is_empty(), || format!("{limit}: somebody stays")).await;
        if limit == gives_back {
            let active = "overload_active{action=\"reject_connections\"} 1";
            let begun = now();
            while relay.metrics().contains(active) || !is_served(&relay).await {
                assert!(begun.elapsed() < PATIENCE, "nobody is served: {}", relay.metrics());
            }
        }
    }
}

/// A version that a client brings, of a name that nobody else has, takes some 150 bytes with that name of 40 bytes. What the allocator
/// has not given back is part of this.
const OF_A_VERSION: usize = 240;

#[tokio::test]
async fn a_version_takes_little() {
    const VERSIONS: usize = 190_000;
    // A busy machine reads it for longer than a stream goes on that nobody answers.
    let relay = Process::of("held", "127.0.0.1:1", "timers: {unanswered: 10m}\n");
    let client = Client::connect(relay.clients).await;
    assert!(is_served(&relay).await);
    let base = relay.resident();
    let mut call = client.ads(Dialect::Delta).await;
    call.send_bytes(versions(190_000));
    let counted = format!("distributary_subscriptions {VERSIONS}");
    until(|| relay.metrics().contains(&counted), || relay.metrics()).await;
    // What was read goes back to the system meanwhile.
    let each = || relay.resident().saturating_sub(base) / VERSIONS;
    let mut least = usize::MAX;
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        least = least.min(each());
    }
    println!("{least} bytes for each version");
    assert!(least < OF_A_VERSION, "{least} bytes for each version");
}

/// B-34: versions that clients bring count as names do, and streams with them that acknowledge nothing end first.
#[tokio::test]
async fn versions_that_clients_bring() {
    const MEMORY: usize = 256 << 20;
    let brings = async |client: &Client, count| {
        let mut call = client.ads(Dialect::Delta).await;
        call.send_bytes(versions(count));
        call
    };
    let relay = Process::of("versions", "127.0.0.1:1", "limits: {subscriptions: 5000}\n");
    let client = Client::connect(relay.clients).await;
    let mut few = brings(&client, 3000).await;
    assert!(few.is_silent().await);
    let ended = brings(&client, 3000).await.end().await;
    says(&ended, Code::Unavailable, "limits.subscriptions");
    drop(few);
    let free = |line: &str| {
        line.starts_with("distributary_overload_pressure{resource=\"subscriptions\"") && line.ends_with(" 0")
    };
    until(|| relay.metrics().lines().any(free), || relay.metrics()).await;
    let mut again = brings(&client, 3000).await;
    assert!(again.is_silent().await);

    let relay = Process::of("brought", "127.0.0.1:1", &format!("limits: {{memory: {MEMORY}}}\n"));
    let mut calls = Vec::new();
    for _ in 0..10 {
        let client = Client::connect(relay.clients).await;
        let call = brings(&client, 190_000).await;
        calls.push((client, call));
    }
    // What comes at the same time may not even fit into the memory for requests.
    let refused = |line: &str| {
        let limits = ["memory", "request"].map(|limit| format!("distributary_refused_total{{limit=\"{limit}\"}}"));
        limits.iter().any(|limit| line.starts_with(limit)) && !line.ends_with(" 0")
    };
    until(|| relay.metrics().lines().any(refused), || relay.metrics()).await;
    println!("{} MiB at the most", relay.peak() >> 20);
    assert!(relay.peak() < MEMORY, "{} MiB", relay.peak() >> 20);
    assert!(is_served(&relay).await);
}

/// Whether a client that asks for one name is not refused, neither its connection nor its stream.
#[expect(clippy::disallowed_methods, reason = "a task of its own ends with its panic")]
async fn is_served(relay: &Process) -> bool {
    let address = Address::Tcp(relay.clients);
    let asks = tokio::spawn(async move {
        let client = Client::connect(&address).await;
        let mut call = client.ads(Dialect::Delta).await;
        call.send(&request(vec!["a".to_owned()]));
        call.is_silent().await
    });
    // A client whose connection is refused panics.
    asks.await.unwrap_or(false)
}

async fn answered(relay: &Process, responses: usize) {
    until(|| relay.responses() >= responses, || relay.responses()).await;
}
