// SPDX-License-Identifier: Apache-2.0
//! A relay that reads its configuration again while clients are connected: their streams go on, and they are sent what differs.

use std::path::{Path, PathBuf};

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use tonic::Code;

use crate::messages::wants;
use crate::plane::Plane;
use crate::stage::{CDS, Client, Delta, Got, Relay, clusters, directory, eventually, node, replace};

/// A relay whose control planes are files, and which reads its configuration again.
struct Stage {
    relay: Relay,
    dir: PathBuf,
}

const BASE: &str = "listeners: [{address: '127.0.0.1:0'}]\nadmin: {address: '127.0.0.1:0'}\n";
const ONE: &str = "xdstp://x/envoy.config.cluster.v3.Cluster/one";

/// Clusters with these contents, as a file.
fn written(dir: &Path, name: &str, clusters: &[(&str, &str)]) {
    let entry = |(name, content): &(&str, &str)| {
        format!("- {{'@type': '{CDS}', name: '{name}', alt_stat_name: '{content}'}}\n")
    };
    let text: String = clusters.iter().map(entry).collect();
    replace(&dir.join(format!("{name}.yaml")), &text);
}

impl Stage {
    /// Starts a relay with these files, and with the first of them as its only server.
    fn start(name: &str, files: &[(&str, &[(&str, &str)])]) -> Self {
        let dir = directory(&format!("reloaded-{name}"));
        for (file, clusters) in files {
            written(&dir, file, clusters);
        }
        let first = files.first().map(|(file, _)| *file);
        let first = servers(&dir, first.as_slice());
        let relay = Relay::run(&format!("reloaded-{name}"), &format!("{BASE}upstream: {{{first}}}\n"));
        Self { relay, dir }
    }

    /// Puts a configuration with these lines into effect; returns what has changed.
    fn reload(&self, lines: &str) -> String {
        self.relay.reload(&format!("{BASE}{lines}\n"))
    }

    /// The same for the first time, with a change of this key that is told so.
    fn changes(&self, lines: &str, key: &str, told: &str) {
        let answer = self.reload(lines);
        // It may have read the file before it was told to.
        let by_itself = answer.contains("nothing has changed");
        let read = self.relay.line("configuration read again");
        assert!(read.contains(key), "{read}");
        assert!(by_itself || answer.contains(told), "{answer}");
    }

    /// The same with these servers, by priority.
    fn serve(&self, files: &[&str]) {
        self.reload(&format!("upstream: {{{}}}", servers(&self.dir, files)));
    }

    async fn client(&self) -> (Client, Delta) {
        let client = Client::connect(self.relay.address).await;
        let delta = client.open(&asks(&[])).await;
        (client, delta)
    }

    /// Waits until `/clusters` has this text, or until it does not.
    async fn shows(&self, text: &str, shown: bool) {
        let look = || (self.relay.admin("/clusters").contains(text) == shown).then_some(());
        eventually(&format!("`{text}` in /clusters: {shown}"), look).await;
    }
}

fn servers(dir: &Path, files: &[&str]) -> String {
    let uri = |file: &&str| format!("{{server_uri: 'file://{}/{file}.yaml'}}", dir.display());
    let servers: Vec<String> = files.iter().map(uri).collect();
    format!("xds_servers: [{}]", servers.join(", "))
}

/// A request for these names, or for everything.
fn asks(names: &[&str]) -> DeltaDiscoveryRequest {
    wants(CDS, names)
}

fn names(got: &Got) -> Vec<&str> {
    got.versions.keys().map(String::as_str).collect()
}

/// C-26: what goes comes in a response of its own.
async fn differs(delta: &mut Delta, sent: &[&str], removed: &str) {
    let got = delta.next().await;
    assert_eq!((names(&got), got.removed.len()), (sent.to_vec(), 0));
    let got = delta.next().await;
    assert_eq!((names(&got), &got.removed[..]), (vec![], &[removed.to_owned()][..]));
}

/// G-21: whatever becomes of the servers, a client is sent what differs, and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_come_and_go() {
    let stage = Stage::start(
        "servers",
        &[
            ("a", &[("same", "1"), ("other", "1"), ("gone", "1")]),
            ("b", &[("same", "1"), ("other", "2"), ("new", "1")]),
        ],
    );
    let (_client, mut delta) = stage.client().await;
    assert_eq!(names(&delta.next().await), ["gone", "other", "same"]);
    stage.serve(&["a", "b"]);
    assert!(delta.is_silent().await, "a fallback server concerns nobody");
    stage.shows("/b.yaml::priority::1", true).await;

    stage.serve(&["b"]);
    differs(&mut delta, &["new", "other"], "gone").await;
    stage.shows("/a.yaml::", false).await;

    // One of higher priority.
    stage.serve(&["a", "b"]);
    differs(&mut delta, &["gone", "other"], "new").await;
    written(&stage.dir, "a", &[("same", "1"), ("other", "3"), ("gone", "1")]);
    // The session listens to the server that it reads.
    assert_eq!(names(&delta.next().await), ["other"]);

    // The order turns.
    stage.serve(&["b", "a"]);
    differs(&mut delta, &["new", "other"], "gone").await;
    assert!(delta.is_silent().await);
}

/// An authority gets servers of its own, loses them, and gets them again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorities_come_and_go() {
    let stage = Stage::start(
        "authorities",
        &[("top", &[(ONE, "top"), ("plain", "1")]), ("own", &[(ONE, "own")])],
    );
    let client = Client::connect(stage.relay.address).await;
    let mut delta: Delta = client.open(&asks(&[ONE, "plain"])).await;
    assert_eq!(names(&delta.next().await), ["plain", ONE]);
    let (top, own) = (servers(&stage.dir, &["top"]), servers(&stage.dir, &["own"]));
    let with = format!("upstream: {{{top}, authorities: {{x: {{{own}}}}}}}");
    let without = format!("upstream: {{{top}}}");
    let mut versions = Vec::new();
    for lines in [&with, &without, &with] {
        stage.reload(lines);
        let got = delta.next().await;
        assert_eq!(names(&got), [ONE]);
        versions.push(got.versions);
        let mut other: Delta = client.open(&asks(&[ONE])).await;
        assert_eq!(Some(&other.next().await.versions), versions.last());
        // A session that reads two views is one client.
        eventually("both clients, once each", || {
            let answer = stage.relay.admin(&format!("/resources/{ONE}"));
            let both = answer.matches("\"count\": 2").count() == 1 && answer.matches("\"count\"").count() == 1;
            (both && stage.relay.admin("/clients?format=json").matches("\"stream\"").count() == 2).then_some(())
        })
        .await;
    }
    assert!(matches!(&versions[..], [with, without, again] if with != without && with == again));
    assert!(delta.is_silent().await);
}

/// K-02: new streams are divided by the new rules, and open ones stay where they are. A rule that stays keeps its view, at another
/// place too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn classes_come_and_go() {
    let mut plane = Plane::start().await;
    let upstream = format!(
        "node: {{id: relay}}\nupstream: {{xds_servers: [{{server_uri: '{}'}}]}}\n",
        plane.address
    );
    let relay = Relay::run("reloaded-classes", &format!("{BASE}{upstream}"));
    let dir = directory("reloaded-classes");
    let stage = Stage { relay, dir };
    let client = Client::connect(stage.relay.address).await;
    let of_edge = DeltaDiscoveryRequest {
        node: Some(Node {
            cluster: "edge".to_owned(),
            ..node()
        }),
        ..asks(&[])
    };

    let mut first: Delta = client.open(&of_edge).await;
    let mut shared = plane.call().await;
    assert_eq!(shared.delta().await.node.unwrap().id, "relay");
    shared.send(&clusters("n1", &[("a", "1")], &[]));
    assert_eq!(names(&first.next().await), ["a"]);

    let keyed = "- {key: [cluster]}\n";
    let told = "classes: changed (for new connections and streams)";
    stage.changes(&format!("{upstream}classes:\n{keyed}"), "classes", told);
    let mut second: Delta = client.open(&of_edge).await;
    let mut own = plane.call().await;
    assert_eq!(own.delta().await.node.unwrap().id, "relay/cluster=edge");
    own.send(&clusters("n1", &[("b", "1")], &[]));
    assert_eq!(names(&second.next().await), ["b"]);

    // The rule stands at another place, and is the same.
    stage.reload(&format!("{upstream}classes:\n- {{match: {{cluster: core}}}}\n{keyed}"));
    let mut third: Delta = client.open(&of_edge).await;
    assert_eq!(names(&third.next().await), ["b"]);

    // It is gone: its clients keep their view, and new ones share that of all.
    stage.reload(&upstream);
    let mut fourth: Delta = client.open(&of_edge).await;
    assert_eq!(names(&fourth.next().await), ["a"]);
    own.send(&clusters("n2", &[("b", "2")], &[]));
    shared.send(&clusters("n2", &[("a", "2")], &[]));
    for (delta, name) in [
        (&mut first, "a"),
        (&mut second, "b"),
        (&mut third, "b"),
        (&mut fourth, "a"),
    ] {
        assert_eq!(names(&delta.next().await), [name]);
    }
    assert!(plane.has_call().is_none());
}

/// What concerns control planes counts from the next stream to them on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_of_the_next_stream() {
    let mut plane = Plane::start().await;
    let upstream = format!("upstream: {{xds_servers: [{{server_uri: '{}'}}]}}\n", plane.address);
    let relay = Relay::run(
        "reloaded-timers",
        &format!("{BASE}{upstream}timers: {{does_not_exist: 1h}}\n"),
    );
    let dir = directory("reloaded-timers");
    let stage = Stage { relay, dir };
    let client = Client::connect(stage.relay.address).await;
    let mut delta: Delta = client.open(&asks(&["a", "b"])).await;
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&clusters("n1", &[("a", "1")], &[]));
    assert_eq!(names(&delta.next().await), ["a"]);
    let lines = format!("{upstream}timers: {{does_not_exist: 200ms, reconnect_max: 7s}}");
    let told = "timers.does_not_exist: 1h -> 200ms (for new connections and streams)";
    stage.changes(&lines, "timers.does_not_exist", told);
    assert!(delta.is_silent().await);
    call.finish(Code::Unavailable, "restarting");
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&clusters("n1", &[("a", "1")], &[]));
    assert_eq!(delta.next().await.removed, ["b"]);
}

/// Ten thousand lines that are the same, and one that concerns nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_concerned_is_sent_nothing() {
    let stage = Stage::start("many", &[("a", &[("same", "1")])]);
    let upstream = format!("upstream: {{{}}}\n", servers(&stage.dir, &["a"]));
    let (_client, mut delta) = stage.client().await;
    assert_eq!(names(&delta.next().await), ["same"]);
    let types: String = (0..10_000)
        .map(|number| format!("- {{type_url: acme.Type{number}}}\n"))
        .collect();
    let used = || stage.relay.number("process_cpu_seconds_total ");
    let before = used();
    for connections in [1000, 2000] {
        let answer = stage.reload(&format!(
            "{upstream}limits: {{connections: {connections}}}\ntypes:\n{types}"
        ));
        assert!(answer.contains("types: changed (needs a restart)"), "{answer}");
    }
    let took = used() - before;
    assert!(took > 0.0 && took < 10.0, "{took} s of a processor");
    assert!(delta.is_silent().await);
    written(&stage.dir, "a", &[("same", "2")]);
    assert_eq!(names(&delta.next().await), ["same"]);
}
