// SPDX-License-Identifier: Apache-2.0
//! Clients that read some types from one control plane and some from another, on one stream.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::Path;

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;

use crate::messages::{of_node, resources, wants};
use crate::plane::{Call, Plane};
use crate::stage::{CDS, Client, Delta, EDS, Relay, clusters, directory, eventually, node, replace, until};

pub(crate) const BASE: &str =
    "listeners: [{address: '127.0.0.1:0'}]\nadmin: {address: '127.0.0.1:0'}\nnode: {id: relay}\n";
const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

/// A list of servers.
pub(crate) fn servers(all: &[&dyn Display]) -> String {
    let entries: Vec<String> = all.iter().map(|one| format!("{{server_uri: '{one}'}}")).collect();
    format!("xds_servers: [{}]", entries.join(", "))
}

/// The configuration of a story of the manual.
pub(crate) fn story_of(title: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/sources.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, story) = page.split_once(&format!("\n## {title}\n")).unwrap();
    let (_, text) = story.split_once("```yaml\n").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    text.to_owned()
}

/// A configuration with such a story, with what a test has in place of what stands there.
fn story(title: &str, here: &[(&str, &dyn Display)]) -> String {
    let text = story_of(title);
    here.iter().fold(format!("{BASE}{text}"), |text, (there, here)| {
        assert!(text.contains(there), "{there} is not in {text}");
        text.replace(there, &here.to_string())
    })
}

/// A configuration whose clusters come from one server, and whose endpoints from a source.
fn apart(clusters: SocketAddr, endpoints: &str) -> String {
    format!(
        "{BASE}upstream: {{{}}}\nsources: [{{name: endpoints, types: [eds], {endpoints}}}]\n",
        servers(&[&clusters])
    )
}

/// The next call, and its first request, which is for this type.
async fn asked(plane: &mut Plane, type_url: &str) -> (Call, DeltaDiscoveryRequest) {
    let mut call = plane.call().await;
    let request = call.delta().await;
    assert_eq!(request.type_url, type_url);
    (call, request)
}

/// The next response that is not empty: its type, what it has, and what it removes.
pub(crate) async fn next(delta: &mut Delta) -> (String, Vec<(String, String)>, Vec<String>) {
    loop {
        let response = delta.whole().await;
        let sent = response.resources.iter().map(|one| {
            let body = one.resource.as_ref().unwrap();
            let content = body.value.last().copied().map(char::from).unwrap();
            (one.name.clone(), content.to_string())
        });
        let sent: Vec<_> = sent.collect();
        if !(sent.is_empty() && response.removed_resources.is_empty()) {
            return (response.type_url, sent, response.removed_resources);
        }
    }
}

pub(crate) fn sent(
    type_url: &str,
    all: &[(&str, &str)],
    removed: &[&str],
) -> (String, Vec<(String, String)>, Vec<String>) {
    let all = all
        .iter()
        .map(|(name, content)| ((*name).to_owned(), (*content).to_owned()));
    let removed = removed.iter().map(|name| (*name).to_owned());
    (type_url.to_owned(), all.collect(), removed.collect())
}

/// A client that holds the cluster `a` from one control plane and its endpoints from the other.
async fn served(relay: &Relay, a: &mut Plane, b: &mut Plane) -> (Client, Delta, Call, Call) {
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&wants(CDS, &[])).await;
    let (mut of_clusters, _) = asked(a, CDS).await;
    of_clusters.send(&clusters("n1", &[("a", "1")], &[]));
    assert_eq!(next(&mut delta).await, sent(CDS, &[("a", "1")], &[]));
    delta.says(&wants(EDS, &["a"]));
    let (mut of_endpoints, request) = asked(b, EDS).await;
    assert_eq!(request.resource_names_subscribe, ["a"]);
    of_endpoints.send(&resources(EDS, "n1", &[("a", "1")], &[]));
    assert_eq!(next(&mut delta).await, sent(EDS, &[("a", "1")], &[]));
    (client, delta, of_clusters, of_endpoints)
}

/// F-18: on one stream of a client, clusters come from one control plane and endpoints from another. Neither is asked for the type of the
/// other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_control_planes_on_one_stream() {
    let (mut a, mut b) = (Plane::start().await, Plane::start().await);
    let relay = Relay::run("sources-two", &apart(a.address, &servers(&[&b.address])));
    let (_client, mut delta, mut of_clusters, mut of_endpoints) = served(&relay, &mut a, &mut b).await;
    assert!(a.has_call().is_none() && b.has_call().is_none(), "one stream to each");

    of_endpoints.send(&resources(EDS, "n2", &[("a", "2")], &[]));
    assert_eq!(next(&mut delta).await, sent(EDS, &[("a", "2")], &[]));
    of_clusters.send(&clusters("n2", &[("b", "1")], &[]));
    assert_eq!(next(&mut delta).await, sent(CDS, &[("b", "1")], &[]));

    // What a control plane says of a type that it is not asked for counts for nothing.
    of_clusters.send(&resources(EDS, "n3", &[("a", "9")], &[]));
    assert!(delta.is_silent().await);
    let shown = relay.admin("/clusters");
    for line in [
        format!("#old::{}::state::", a.address),
        format!("#endpoints::{}::state::", b.address),
        format!("#endpoints::{}::sessions::1", b.address),
    ] {
        assert!(shown.contains(&line), "{line} is not in {shown}");
    }

    let shown = relay.admin("/clients");
    for (word, server) in [("cds:", a.address), ("eds:", b.address)] {
        let (_, rest) = shown.split_once(word).unwrap();
        let read = rest.split([',', ' ']).next().unwrap();
        assert!(read.ends_with(&format!("@{server}")), "{word} {read} in {shown}");
    }
    let (_, shown) = relay.command(&["status", "--servers"]);
    for (name, server) in [("#old", a.address), ("#endpoints", b.address)] {
        let of_server = |line: &&str| line.contains(&server.to_string()) && line.contains("answering");
        let row = shown.lines().find(of_server);
        assert!(row.is_some_and(|row| row.contains(name)), "{shown}");
    }
    let (_, shown) = relay.command(&["status", "--clients", "-o", "wide"]);
    let mut read = [format!("cds {}", a.address), format!("eds {}", b.address)];
    read.sort_by_key(|one| one[4..].to_owned());
    assert!(shown.contains(&read.join("; ")), "{shown}");
}

/// F-19: what becomes of one control plane concerns the types of the other by nothing, and no stream ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_dies() {
    let (mut a, mut b) = (Plane::start().await, Plane::start().await);
    let relay = Relay::run("sources-dead", &apart(a.address, &servers(&[&b.address])));
    let (client, mut delta, mut of_clusters, of_endpoints) = served(&relay, &mut a, &mut b).await;
    let address = b.address;
    drop((b, of_endpoints));
    relay.line("cannot");
    of_clusters.send(&clusters("n2", &[("a", "2")], &[]));
    assert_eq!(next(&mut delta).await, sent(CDS, &[("a", "2")], &[]));

    // A gRPC client that waits for nothing of it is served as ever.
    let mut grpc = wants(CDS, &[]);
    grpc.node = Some(Node {
        user_agent_name: "gRPC Go".to_owned(),
        ..node()
    });
    let mut other: Delta = client.open(&grpc).await;
    assert_eq!(next(&mut other).await, sent(CDS, &[("a", "2")], &[]));
    assert!(delta.is_silent().await && other.is_silent().await);

    // It comes back, and has something new.
    let mut b = Plane::again(address).await;
    let (mut of_endpoints, _) = asked(&mut b, EDS).await;
    of_endpoints.send(&resources(EDS, "n1", &[("a", "2")], &[]));
    assert_eq!(next(&mut delta).await, sent(EDS, &[("a", "2")], &[]));
}

/// F-19: a source has servers by priority, and falls back by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_from_a_registry() {
    let (mut a, mut b) = (Plane::start().await, Plane::start().await);
    let nowhere = Plane::start().await.address;
    let places: [(&str, &dyn Display); 3] = [
        ("control-plane.example.com:18000", &a.address),
        ("registry-a.example.com:18000", &nowhere),
        ("registry-b.example.com:18000", &b.address),
    ];
    let relay = Relay::run("sources-registry", &story("Endpoints from a registry", &places));
    let (_client, mut delta, mut of_clusters, mut of_endpoints) = served(&relay, &mut a, &mut b).await;
    of_endpoints.send(&resources(EDS, "n2", &[("a", "2")], &[]));
    assert_eq!(next(&mut delta).await, sent(EDS, &[("a", "2")], &[]));
    of_clusters.send(&clusters("n2", &[("b", "1")], &[]));
    assert_eq!(next(&mut delta).await, sent(CDS, &[("b", "1")], &[]));
}

fn secrets(dir: &Path, content: &str) {
    let secret = format!("generic_secret: {{secret: {{inline_string: '{content}'}}}}");
    let text = format!("- {{'@type': '{SDS}', name: edge/cert, {secret}}}\n");
    replace(&dir.join("secrets.yaml"), &text);
}

/// Secrets from a folder, beside a control plane for all else, for those whom the rules allow them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_from_files() {
    let dir = directory("sources-secrets");
    secrets(&dir, "1");
    let mut a = Plane::start().await;
    let places: [(&str, &dyn Display); 2] = [
        ("control-plane.example.com:18000", &a.address),
        ("/etc/distributary/secrets", &dir.display()),
    ];
    let relay = Relay::run("sources-secrets", &story("Secrets from files", &places));
    let client = Client::connect(relay.address).await;
    let first = of_node("edge-1", "", wants(CDS, &[]));
    let mut delta: Delta = client.open(&first).await;
    let (mut call, _) = asked(&mut a, CDS).await;
    call.send(&clusters("n1", &[("a", "1")], &[]));
    assert_eq!(next(&mut delta).await, sent(CDS, &[("a", "1")], &[]));
    delta.says(&wants(SDS, &["edge/cert"]));
    assert_eq!(next(&mut delta).await.1[0].0, "edge/cert");
    secrets(&dir, "2");
    let (type_url, found, _) = next(&mut delta).await;
    assert_eq!((type_url.as_str(), found[0].0.as_str()), (SDS, "edge/cert"));

    let mut other: Delta = client.open(&of_node("other", "", wants(CDS, &[]))).await;
    assert_eq!(next(&mut other).await, sent(CDS, &[("a", "1")], &[]));
    other.says(&wants(SDS, &["edge/cert"]));
    assert_eq!(next(&mut other).await, sent(SDS, &[], &["edge/cert"]));
    assert!(relay.admin("/clusters").contains("#sds::"));
    assert!(a.has_call().is_none());
}

/// G-21: a type moves to a source, to another one, and back. Each time its clients are sent what differs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_type_moves() {
    let (mut a, mut b, mut c) = (Plane::start().await, Plane::start().await, Plane::start().await);
    let upstream = format!("{BASE}upstream: {{{}}}\n", servers(&[&a.address]));
    let relay = Relay::run("sources-moves", &upstream);
    let reload = |source: Option<(&str, SocketAddr)>| {
        let source = source
            .map(|(name, address)| format!("sources: [{{name: {name}, types: [eds], {}}}]\n", servers(&[&address])));
        relay.reload(&format!("{upstream}{}", source.unwrap_or_default()));
    };
    let client = Client::connect(relay.address).await;
    let mut delta: Delta = client.open(&wants(CDS, &[])).await;
    let (mut of_a, _) = asked(&mut a, CDS).await;
    of_a.send(&clusters("n1", &[("x", "1"), ("y", "1")], &[]));
    next(&mut delta).await;
    delta.says(&wants(EDS, &["x", "y"]));
    while of_a.delta().await.type_url != EDS {}
    of_a.send(&resources(EDS, "n1", &[("x", "1"), ("y", "1")], &[]));
    assert_eq!(next(&mut delta).await, sent(EDS, &[("x", "1"), ("y", "1")], &[]));

    reload(Some(("one", b.address)));
    let (mut of_b, request) = asked(&mut b, EDS).await;
    assert_eq!(request.resource_names_subscribe, ["x", "y"]);
    // Until the source has answered, the client is served as before.
    of_a.send(&resources(EDS, "n2", &[("x", "3")], &[]));
    assert_eq!(next(&mut delta).await, sent(EDS, &[("x", "3")], &[]));
    of_b.send(&resources(EDS, "n1", &[("x", "3"), ("y", "2")], &[]));
    assert_eq!(next(&mut delta).await, sent(EDS, &[("y", "2")], &[]));

    // The earlier owner has nothing more to say of it.
    of_a.send(&resources(EDS, "n3", &[("x", "4"), ("y", "4")], &[]));
    assert!(delta.is_silent().await);

    reload(Some(("two", c.address)));
    let (mut of_c, request) = asked(&mut c, EDS).await;
    assert_eq!(request.resource_names_subscribe, ["x", "y"]);
    of_c.send(&resources(EDS, "n1", &[("x", "5"), ("y", "2")], &[]));
    assert_eq!(next(&mut delta).await, sent(EDS, &[("x", "5")], &[]));
    until("the first source is gone", || {
        !relay.admin("/clusters").contains("#one::")
    })
    .await;

    // The first owner's word of before is known still.
    reload(None);
    assert_eq!(next(&mut delta).await, sent(EDS, &[("x", "4"), ("y", "4")], &[]));
    of_c.send(&resources(EDS, "n2", &[("x", "7")], &[]));
    of_a.send(&clusters("n5", &[("z", "1")], &[]));
    assert_eq!(next(&mut delta).await, sent(CDS, &[("z", "1")], &[]));
    assert!(delta.is_silent().await);
}

/// F-20: gateways with views of their own at one control plane read one view of a shared source, which sees the relay's node, with what is
/// written for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listeners_from_a_gateway_controller() {
    let (mut a, mut b) = (Plane::start().await, Plane::start().await);
    let places: [(&str, &dyn Display); 2] = [
        ("envoy-gateway.example.com:18000", &a.address),
        ("registry-a.example.com:18000", &b.address),
    ];
    let title = "Listeners from Envoy Gateway or istiod, endpoints of your own";
    let relay = Relay::run("sources-gateway", &story(title, &places));
    let client = Client::connect(relay.address).await;
    let mut streams = Vec::new();
    let mut calls = BTreeMap::new();
    for gateway in ["one", "two"] {
        let mut delta: Delta = client.open(&of_node(gateway, "gateways", wants(CDS, &[]))).await;
        let (mut call, request) = asked(&mut a, CDS).await;
        let seen = request.node.unwrap();
        assert_eq!((seen.id.as_str(), seen.cluster.as_str()), (gateway, "gateways"));
        call.send(&clusters("n1", &[(gateway, "1")], &[]));
        assert_eq!(next(&mut delta).await, sent(CDS, &[(gateway, "1")], &[]));
        delta.says(&wants(EDS, &["a"]));
        streams.push(delta);
        calls.insert(gateway, call);
    }
    let (mut call, request) = asked(&mut b, EDS).await;
    let seen = request.node.unwrap();
    assert_eq!((seen.id.as_str(), seen.cluster.as_str()), ("eds-reader", "edge"));
    call.send(&resources(EDS, "n1", &[("a", "1")], &[]));
    for delta in &mut streams {
        assert_eq!(next(delta).await, sent(EDS, &[("a", "1")], &[]));
    }
    assert!(b.has_call().is_none(), "one view for all gateways");

    // Each type of a client says which server it is read from.
    let shown = relay.admin("/clients?format=json");
    for server in [a.address, b.address] {
        let line = format!("\"server\":\"{server}\"");
        assert_eq!(shown.matches(&line).count(), 2, "{shown}");
    }
}

/// K-36: the relay is ready once a server was reached for each source, too; what is lost later changes nothing of that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_is_ready_with_all_sources() {
    let (a, mut b) = (Plane::start().await, Plane::start().await);
    let address = b.address;
    drop(b);
    let relay = Relay::run("sources-ready", &apart(a.address, &servers(&[&address])));
    let refused = format!("{address}: ");
    let starting = |answer: &String| answer.starts_with("HTTP/1.1 503 ") && answer.contains(&refused);
    eventually("it says for which server it waits", || {
        Some(relay.admin("/ready")).filter(|answer| starting(answer))
    })
    .await;
    b = Plane::again(address).await;
    let ready = || relay.admin("/ready").starts_with("HTTP/1.1 200 ");
    until("it is ready", ready).await;
    drop((a, b));
    relay.line("ready: clients can be served");
    assert!(ready());
}

/// K-36: in the place of its server, the snapshot of a source is enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_is_ready_by_the_snapshot_of_a_source() {
    let dir = directory("sources-saved");
    let (mut a, mut b) = (Plane::start().await, Plane::start().await);
    let snapshot = format!("snapshot: {{dir: '{}', interval: 50ms}}\n", dir.display());
    let text = format!("{}{snapshot}", apart(a.address, &servers(&[&b.address])));
    let relay = Relay::run("sources-saved", &text);
    let all = served(&relay, &mut a, &mut b).await;
    let saved = || {
        let files = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
        files
            .filter(|path| path.extension().is_some_and(|of| of == "snapshot"))
            .count()
    };
    until("a snapshot of each", || saved() == 2).await;
    drop((relay, all, b));
    let relay = Relay::run("sources-saved-again", &text);
    let ready = || relay.admin("/ready").starts_with("HTTP/1.1 200 ");
    until("it is ready", ready).await;
}

/// F-18: what a client is expected to ask for next is foreseen at its owner, and nowhere else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_foreseen_has_an_owner() {
    const LDS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
    let (mut a, mut b) = (Plane::start().await, Plane::start().await);
    let source = format!("sources: [{{types: [lds], {}}}]\n", servers(&[&b.address]));
    let text = format!("{BASE}upstream: {{{}}}\n{source}", servers(&[&a.address]));
    let relay = Relay::run("sources-foreseen", &text);
    let client = Client::connect(relay.address).await;
    let mut envoy = wants(CDS, &[]);
    envoy.node = Some(Node {
        user_agent_name: "envoy".to_owned(),
        ..node()
    });
    let mut delta: Delta = client.open(&envoy).await;
    let (mut of_clusters, _) = asked(&mut a, CDS).await;
    of_clusters.send(&clusters("n1", &[("a", "1")], &[]));
    assert_eq!(next(&mut delta).await, sent(CDS, &[("a", "1")], &[]));
    delta.says(&wants(LDS, &[]));
    let (mut of_listeners, _) = asked(&mut b, LDS).await;
    of_listeners.send(&resources(LDS, "n1", &[("l", "1")], &[]));
    assert_eq!(next(&mut delta).await, sent(LDS, &[("l", "1")], &[]));
    of_clusters.send(&clusters("n2", &[("a", "2")], &[]));
    assert_eq!(next(&mut delta).await, sent(CDS, &[("a", "2")], &[]));
    // All that the first control plane was asked: the acknowledgements of clusters.
    for _ in 0..2 {
        assert_eq!(of_clusters.delta().await.type_url, CDS);
    }
    assert!(a.has_call().is_none());
}
