// SPDX-License-Identifier: Apache-2.0
//! `distributary survey`: control planes that answer by different fields, what is said of each, and that a relay with the printed
//! `classes` tells its clients the same.

use std::path::PathBuf;
use std::sync::Arc;

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use distributary::proto::google::protobuf::value::Kind;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::get::{CDS, Outcome, answer, any, delta};
use crate::plane::{Call, Plane};
use crate::{PORTS, file, has, output, program, ran};

const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// A control plane that answers each node by a rule: the text decides the contents; without one it is silent.
struct Answering {
    address: String,
    asked: Arc<Mutex<Vec<Node>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Answering {
    async fn start(rule: impl Fn(&Node, usize) -> Option<String> + Send + Sync + 'static) -> Self {
        let mut plane = Plane::start().await;
        let address = plane.address.to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (nodes, rule) = (asked.clone(), Arc::new(rule));
        #[expect(clippy::disallowed_methods, reason = "a server runs beside its client")]
        let task = tokio::spawn(async move {
            let mut calls = tokio::task::JoinSet::new();
            while let Some(call) = plane.next_call().await {
                calls.spawn(serve(call, nodes.clone(), rule.clone()));
            }
        });
        Self { address, asked, task }
    }

    /// Runs the command with these clients.
    async fn survey(&self, clients: &[PathBuf], more: &[&str]) -> Outcome {
        let mut command = program(&[&["survey", &self.address], more, &["--from"]].concat());
        command.args(clients);
        answer(tokio::task::spawn_blocking(move || ran(&mut command))).await
    }

    /// The same in vain.
    async fn fails(&self, clients: &[PathBuf], more: &[&str], words: &str) -> String {
        let (code, out, notes) = self.survey(clients, more).await;
        assert_eq!((code, out.as_str()), (Some(1), ""), "{notes}");
        has(&notes, words);
        notes
    }

    fn ids(&self) -> Vec<String> {
        self.asked.lock().iter().map(|node| node.id.clone()).collect()
    }
}

/// Answers one stream.
async fn serve(mut call: Call, nodes: Arc<Mutex<Vec<Node>>>, rule: Arc<impl Fn(&Node, usize) -> Option<String>>) {
    let mut said = None;
    while let Some(request) = call.try_request::<DeltaDiscoveryRequest>().await {
        if let (None, Some(node)) = (&said, request.node) {
            let mut nodes = nodes.lock();
            nodes.push(node.clone());
            said = Some(rule(&node, nodes.len()));
        }
        if request.response_nonce.is_empty()
            && let Some(Some(text)) = &said
        {
            call.send(&response(&request.type_url, text));
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The text is in the endpoints, which a client finds through the cluster.
fn response(type_url: &str, text: &str) -> DeltaDiscoveryResponse {
    let source = "\"eds_cluster_config\": {\"eds_config\": {\"ads\": {}, \"resource_api_version\": \"V3\"}}";
    let cluster = format!("{{\"@type\": \"{CDS}\", \"name\": \"web\", \"type\": \"EDS\", {source}}}");
    let text = json!(text);
    let metadata = format!("\"metadata\": {{\"filter_metadata\": {{\"said\": {{\"text\": {text}}}}}}}");
    let endpoint = format!("{{\"endpoint\": {{\"address\": {{\"pipe\": {{\"path\": \"/x\"}}}}}}, {metadata}}}");
    let endpoints = format!(
        "{{\"@type\": \"{EDS}\", \"cluster_name\": \"web\", \"endpoints\": [{{\"lb_endpoints\": [{endpoint}]}}]}}"
    );
    let put = match type_url {
        CDS => vec![("web", any(&cluster))],
        EDS => vec![("web", any(&endpoints))],
        _ => Vec::new(),
    };
    delta(type_url, "1", &put, &[])
}

/// The bootstrap of a gRPC client, with 40 members of metadata of its own. Its own servers must not be asked.
fn client(name: &str, cluster: &str, members: Value) -> PathBuf {
    let own = (0..40).map(|at| (format!("OWN_{at:02}"), json!(format!("hush {name} {at}"))));
    let mut metadata: Map<String, Value> = own.collect();
    metadata.extend(members.as_object().cloned().unwrap_or_default());
    let node = json!({"id": name, "cluster": cluster, "metadata": metadata, "locality": {"region": "r", "zone": name}});
    let servers = json!([{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}]);
    let whole = json!({"xds_servers": servers, "node": node});
    file(&format!("survey-{name}.json"), &whole.to_string())
}

/// Two clients whose names begin so.
fn two(of: &str) -> [PathBuf; 2] {
    [
        client(&format!("{of}-a"), "web", json!({"TEAM": "red", "TIER": 1})),
        client(&format!("{of}-b"), "api", json!({"TEAM": "blue", "TIER": 2})),
    ]
}

fn member(node: &Node, key: &str) -> Option<String> {
    let kind = node.metadata.as_ref()?.fields.get(key)?.kind.as_ref()?;
    match kind {
        Kind::NumberValue(number) => Some(format!("number {number}")),
        Kind::StringValue(text) => Some(text.clone()),
        Kind::NullValue(_) | Kind::BoolValue(_) | Kind::StructValue(_) | Kind::ListValue(_) => None,
    }
}

/// What was printed besides comments.
fn block(out: &str) -> String {
    out.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect()
}

type Rule = fn(&Node, usize) -> Option<String>;

/// Rules, what is printed for each, how many views that makes, and how many questions it takes at most.
#[rustfmt::skip]
const RULES: [(&str, Rule, &str, usize, usize); 8] = [
    ("nothing", |_, _| Some(String::new()), "classes: []\n", 0, 8),
    ("cluster", |node, _| Some(node.cluster.clone()), "classes:\n  - { key: [cluster] }\n", 2, 20),
    (
        "zone",
        // Any part of a locality makes one, but only the zone has to be there.
        |node, _| Some(node.locality.as_ref().map_or("none", |place| &place.zone).to_owned()),
        "classes:\n  - { key: [locality.zone] }\n",
        2,
        26,
    ),
    ("member", |node, _| member(node, "TEAM").or(Some(String::new())), "classes:\n  - { key: [metadata.TEAM] }\n", 2,
        20),
    // It matters that it is a number.
    ("number", |node, _| Some(member(node, "TIER").unwrap_or_default().replace("number 1", "one")),
        "classes:\n  - { key: [metadata.TIER], node: { metadata: [TIER] } }\n", 2, 20),
    ("both", |node, _| Some((node.cluster == "api" && member(node, "TEAM").as_deref() == Some("blue")).to_string()),
        "classes:\n  - { key: [cluster, metadata.TEAM] }\n", 2, 32),
    ("any", |node, _| (!node.cluster.is_empty()).then(String::new), "classes:\n  - { node: { cluster: web } }\n", 1,
        20),
    ("id", |node, _| (!node.id.starts_with("survey-")).then(|| node.id.clone()),
        "classes:\n  - { key: [id], node: client }\n", 2, 5),
];

/// What is found out where some fields decide. The printed block is valid, and behind a relay with it each client is told what the
/// control plane tells it.
#[tokio::test(flavor = "multi_thread")]
async fn what_decides() {
    for (name, rule, expected, views, most) in RULES {
        let plane = Answering::start(rule).await;
        let clients = two(name);
        // Where it is silent, that is waited for.
        let patience = if matches!(name, "any" | "id") { "3s" } else { "20s" };
        let (code, out, notes) = plane.survey(&clients, &["--timeout", patience]).await;
        assert_eq!(code, Some(0), "{name}: {notes}");
        assert_eq!(block(&out), expected, "{name}: {out}");
        if views > 0 {
            has(&out, &format!("# Views that these 2 clients make: {views}.\n"));
        }
        let asked = plane.ids();
        assert!(asked.len() <= most, "{name}: {} questions", asked.len());
        let lines: Vec<&str> = notes.lines().filter(|line| line.starts_with("question ")).collect();
        assert_eq!(lines.len(), asked.len(), "{notes}");
        let [one, other] = ["a", "b"].map(|which| format!("{name}-{which}"));
        let own = |id: &String| *id == one || *id == other;
        assert_eq!(asked.get(..3), Some(&[one.clone(), one.clone(), other.clone()][..]));
        assert!(asked.iter().all(|id| own(id) || id.starts_with("survey-")), "{asked:?}");
        // Three first and one last.
        assert_eq!(asked.iter().filter(|id| own(id)).count(), 4, "{asked:?}");
        assert!(!out.contains("hush") && !notes.contains("hush"), "{out}{notes}");
        behind_a_relay(name, &plane, &clients, &block(&out)).await;
    }
}

/// Asks a relay with these classes as each client, and compares what it says with what the control plane says itself.
async fn behind_a_relay(name: &str, plane: &Answering, clients: &[PathBuf], classes: &str) {
    let server = &plane.address;
    let text = format!("upstream: {{xds_servers: [{{server_uri: '{server}'}}]}}\n{PORTS}{classes}");
    let path = file(&format!("survey-{name}.relay.yaml"), &text);
    let (code, _, error) = output(&["validate", path.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{error}");
    let told = |server: String| {
        let clients = clients.to_vec();
        answer(tokio::task::spawn_blocking(move || {
            let told: Vec<String> = clients.iter().map(|path| told(path, &server)).collect();
            (None, told.join("\n"), String::new())
        }))
    };
    let (_, direct, _) = told(plane.address.clone()).await;
    let (_relay, _, listener) = crate::serve(&[path.to_str().unwrap()]);
    let (_, relayed, _) = told(listener).await;
    assert_eq!(relayed, direct, "{name}");
    assert!(direct.contains("\"text\""), "{direct}");
}

/// What a client with this bootstrap is told of its endpoints.
fn told(path: &PathBuf, server: &str) -> String {
    let whole: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let text = |key: &str| whole.pointer(key).unwrap().as_str().unwrap().to_owned();
    let place = format!("r/{}", text("/node/locality/zone"));
    let metadata = whole.pointer("/node/metadata").unwrap().to_string();
    let (id, cluster) = (text("/node/id"), text("/node/cluster"));
    let mut get = program(&["get", "eds", "web", "-o", "json", "--server", server, "--node-id", &id]);
    get.args([
        "--node-cluster",
        &cluster,
        "--locality",
        &place,
        "--node-metadata",
        &metadata,
    ]);
    let (code, out, error) = ran(&mut get);
    assert_eq!(code, Some(0), "{error}");
    out
}

/// Who answers the same question otherwise is found out at once, and who does so later at the end.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_told() {
    let clients = two("random");
    let plane = Answering::start(|_, count| Some(count.to_string())).await;
    let notes = plane.fails(&clients, &[], "").await;
    let words = "it cannot be told what the answer depends on: the same question as random-a was answered otherwise a second time (1 of eds)\n";
    assert!(notes.ends_with(words), "{notes}");
    assert_eq!(plane.ids().len(), 2);

    let plane = Answering::start(|node, count| Some(format!("{} {}", node.cluster, count > 6))).await;
    let words = "the answer is another one than at first (1 of eds)";
    plane.fails(&clients, &[], words).await;

    // Each of 40 fields counts: so many questions there are not.
    let all = |node: &Node, _| Some((0..40).filter_map(|at| member(node, &format!("OWN_{at:02}"))).collect());
    let plane = Answering::start(all).await;
    let words = "64 questions were not enough. So far it is known that the answer depends on: metadata.OWN_";
    let notes = plane.fails(&clients, &[], words).await;
    assert_eq!(plane.ids().len(), 64);
    assert!(!notes.contains("hush"), "{notes}");

    let plane = Answering::start(|node, _| node.id.ends_with("-a").then(String::new)).await;
    let notes = plane.fails(&clients, &["--timeout", "3s"], "as random-b of ").await;
    has(&notes, "raise --timeout");
}

/// Nobody but the clients is asked for if that is wished, and then only what could be is said.
#[tokio::test(flavor = "multi_thread")]
async fn own_ids_alone() {
    let clients = two("own");
    let plane = Answering::start(|node, _| Some(node.cluster.clone())).await;
    let (code, out, notes) = plane.survey(&clients, &["--own-ids-only"]).await;
    assert_eq!(code, Some(0), "{notes}");
    assert_eq!(plane.ids(), ["own-a", "own-a", "own-b"]);
    has(
        &out,
        "only mixtures tell which: id, cluster, locality.zone, metadata.OWN_00, ",
    );
    assert_eq!(block(&out), "classes:\n  - { key: [id], node: client }\n");
    // Of clusters alone, which are the same for all.
    let (code, out, _) = plane.survey(&clients, &["--type", "cds"]).await;
    assert_eq!((code, block(&out).as_str()), (Some(0), "classes: []\n"), "{out}");
}

/// What a bootstrap lacks is said with its line, and nobody is asked.
#[tokio::test(flavor = "multi_thread")]
async fn bootstraps_that_cannot_be_used() {
    let plane = Answering::start(|_, _| Some(String::new())).await;
    let good = client("good", "c", json!({}));
    #[rustfmt::skip]
    let rows = [
        ("{\n  \"node\": {\n", ": 2:11: not YAML"),
        ("{\"xds_servers\": []}\n", "line 1: it names no node"),
        ("static_resources: {}\nnode: {cluster: c}\n", "line 2: node.id is missing"),
        ("static_resources: {}\nnode:\n  id: '{{ .Id }}'\n", "line 3: the node is a template; fill it in first"),
        ("node:\n  id: {{ .Id }}\n", "if it is a template, fill it in first"),
        ("static_resources: {}\nnode: {id: a, cluster: [hush]}\n", "line 2: node"),
    ];
    for (text, words) in rows {
        let bad = file("survey-bad.yaml", text);
        let error = plane.fails(&[good.clone(), bad.clone()], &[], words).await;
        assert!(error.starts_with(&bad.display().to_string()), "{error}");
    }
    let (code, _, error) = plane.survey(&[good], &[]).await;
    assert!(code == Some(2) && error.contains("two clients or more"), "{error}");
    assert!(plane.ids().is_empty());
}
