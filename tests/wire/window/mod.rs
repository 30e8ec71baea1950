// SPDX-License-Identifier: Apache-2.0
//! What operators see of clients on the admin address: who has what, what it waits for, and what it has rejected.

mod brought;
mod crowd;
mod csds;
mod dump;
mod events;
mod first;
mod hidden;
mod reflection;
mod snapshots;
mod standings;
mod stats;
mod syncz;
mod visitors;
mod waiting;

use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use distributary::admin::{
    Admin, Clusters, DrainOrder, Guard, History, Logging, NameCounts, Overview, Process, Shown, Snapshots,
};
use distributary::config::Address;
use distributary::proto::envoy::config::core::v3::{Node, node::UserAgentVersionType};
use distributary::xds::Dialect;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::rest::put;
use crate::support::client::Client;
use crate::support::messages::Subscriber;
use crate::support::{CDS, EDS, Relay, config, node_of};

/// The admin address of a relay.
struct Window(Admin);

/// What the admin address says of a process that is only a test.
fn process() -> Process {
    Process::new(config(""), None, Logging::new(|| "info".to_owned(), |_| Ok(())))
}

/// What the admin address of a relay shows, to whom this guard lets in.
pub(crate) fn shown(relay: &Relay, order: mpsc::Sender<DrainOrder>, guard: Guard) -> Shown {
    Shown {
        metrics: relay.shared.metrics.clone(),
        certificates: Arc::default(),
        overview: Overview::new(Clusters::default, NameCounts::default),
        status: relay.shared.status.clone(),
        health: relay.shared.health.clone(),
        order,
        reload: mpsc::channel(1).0,
        guard,
        process: process(),
        history: History::default(),
        snapshots: Snapshots::default(),
    }
}

impl Window {
    fn of(relay: &Relay) -> Self {
        Self::giving(relay, Snapshots::default())
    }

    /// With these snapshots for other relays.
    fn giving(relay: &Relay, snapshots: Snapshots) -> Self {
        let shown = Shown {
            snapshots,
            ..shown(relay, mpsc::channel(1).0, Guard::default())
        };
        Self(Admin::start(&Address::parse("127.0.0.1:0").unwrap(), None, None, shown).unwrap())
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.0.socket().unwrap()).await.unwrap();
        // In this version the end of the connection is the end of the answer.
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Asks again where the relay says so, as it answers a few questions of a kind at a time.
    async fn json(&self, path: &str) -> Value {
        let (mut status, mut text) = self.get(path).await;
        while text.contains("ask again in a few seconds") {
            tokio::time::sleep(Duration::from_millis(100)).await;
            (status, text) = self.get(path).await;
        }
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"))
    }

    /// Waits until the streams of a node stand so.
    async fn until(&self, node: &str, type_url: &str, status: &str) {
        let seen = async || self.listed(&format!("&node={node}")).await;
        let other = |one: &Value| one["types"][full(type_url)]["status"] != status;
        while seen().await.iter().any(other) {}
    }

    /// The streams that `/clients` lists for a query.
    async fn listed(&self, query: &str) -> Vec<Value> {
        let all = self.json(&format!("/clients?format=json{query}")).await;
        assert_eq!(all["unanswered"], 0, "{all}");
        all["clients"].as_array().unwrap().clone()
    }
}

/// Runs a command of the relay at these admin addresses while the relays go on. Returns its exit code and what it has written.
async fn command(arguments: &[&str], windows: &[&Window]) -> (Option<i32>, String, String) {
    let admin = windows.iter().map(|window| window.0.socket().unwrap().to_string());
    let admin: Vec<String> = admin.collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_distributary"));
    command.args(arguments).args(["--admin", &admin.join(",")]);
    let ran = tokio::task::spawn_blocking(move || command.output().unwrap());
    let Output { status, stdout, stderr } = ran.await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// A client that asks for these names and accepts what it is sent.
async fn served(relay: &Relay, dialect: Dialect, type_url: &str, id: &str, names: &[&str]) -> Subscriber {
    let mut one = client(relay, dialect, type_url, id).await;
    one.subscribe(names);
    one.take().await;
    one
}

async fn client(relay: &Relay, dialect: Dialect, type_url: &str, id: &str) -> Subscriber {
    client_of(&relay.connect().await, dialect, type_url, id).await
}

/// One more stream of a connection.
async fn client_of(connection: &Client, dialect: Dialect, type_url: &str, id: &str) -> Subscriber {
    let call = connection.ads(dialect).await;
    let node = Node {
        user_agent_name: "probe".to_owned(),
        user_agent_version_type: Some(UserAgentVersionType::UserAgentVersion("1.2".to_owned())),
        ..node_of(id, "edge")
    };
    Subscriber::of(call, dialect, type_url, node)
}

/// A rejection, from the moment it is sent until it is repaired, is seen in the list, in the stream and in its readiness.
#[tokio::test]
async fn a_client_from_nothing_to_a_rejection_and_back() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let relay = Relay::start();
        let window = Window::of(&relay);
        assert_eq!(window.listed("").await, Vec::<Value>::new());
        relay.put(EDS, &["a", "b"], "1");
        let mut edge = client(&relay, dialect, EDS, "edge-1").await;
        edge.subscribe(&["a", "b", "c"]);
        edge.next().await.unwrap();
        let status = async |path: &str| window.get(path).await;
        let seen = async || window.json("/clients/node=edge-1").await["streams"][0]["types"][full(EDS)].clone();
        let sent = seen().await;
        assert_eq!(json!([sent["status"], sent["ready"]]), json!(["STALE", false]));
        assert!(sent["unanswered_since"].is_string(), "{sent}");
        assert_eq!(standings(&sent), ["a sent", "b sent", "c unknown"], "{sent}");

        // What it does not name is tried first, and then what it names.
        for _ in 0..2 {
            edge.nack("a: no\u{1b}[31m such lb_policy");
            edge.next().await.unwrap();
        }
        edge.nack("a: no\u{1b}[31m such lb_policy");
        window.until("edge-1", EDS, "ERROR").await;
        let rejected = seen().await;
        let why = "a: no\u{1b}[31m such lb_policy";
        assert_eq!(rejected["rejections"], json!([why]), "{rejected}");
        assert_eq!(rejected["resources"][0]["rejection"], why, "{rejected}");
        assert_eq!(standings(&rejected), ["a rejected", "b rejected", "c unknown"]);
        let (code, text) = status("/clients/node=edge-1/ready").await;
        assert_eq!(code, 503);
        let words = ": eds: a is rejected, b is rejected, c is unknown\n";
        assert!(text.ends_with(words), "{text}");

        relay.put(EDS, &["a", "b", "c"], "2");
        edge.take().await;
        window.until("edge-1", EDS, "SYNCED").await;
        let repaired = seen().await;
        assert_eq!(repaired["rejections"], json!([]), "{repaired}");
        assert_eq!(standings(&repaired), ["a accepted", "b accepted", "c accepted"]);
        assert_eq!(status("/clients/node=edge-1/ready").await, (200, "READY\n".to_owned()));
        drop(edge);
        relay.settles_at(0).await;
        let gone = "no stream of `node=edge-1` is open here\n";
        assert_eq!(status("/clients/node=edge-1/ready").await, (404, gone.to_owned()));
    }
}

fn full(type_url: &str) -> &str {
    type_url.rsplit('/').next().unwrap()
}

fn standings(seen: &Value) -> Vec<String> {
    let all = seen["resources"].as_array().unwrap().iter();
    all.map(|one| format!("{} {}", one["name"].as_str().unwrap(), one["status"].as_str().unwrap()))
        .collect()
}

/// Every stream answers once, however many there are and however many ask at the same time; queries choose among them.
#[tokio::test]
async fn everybody_answers_once() {
    const CLIENTS: usize = 120;
    let relay = Relay::start();
    let window = Window::of(&relay);
    relay.put(CDS, &["c"], "1");
    relay.put(EDS, &["e"], "1");
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let (type_url, name) = if number % 3 == 0 { (CDS, "*") } else { (EDS, "e") };
        let dialect = if number % 2 == 0 { Dialect::Sotw } else { Dialect::Delta };
        clients.push(served(&relay, dialect, type_url, &format!("edge-{number}"), &[name]).await);
    }
    for all in join_all((0..8).map(|_| window.listed(""))).await {
        let mut nodes: Vec<&str> = all.iter().map(|one| one["node"]["id"].as_str().unwrap()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!((all.len(), nodes.len()), (CLIENTS, CLIENTS));
    }
    assert_eq!(window.listed("&type=cds").await.len(), CLIENTS / 3);
    assert_eq!(window.listed("&node=edge-11*").await.len(), 11);
    assert_eq!(window.listed("&node=edge-11*&type=eds").await.len(), 8);
    let (_, text) = window.get("/clients?node=edge-3").await;
    let line = text.lines().nth(1).unwrap();
    let has = [" delta ", " edge-3", "cds:SYNCED"].map(|word| line.contains(word));
    assert_eq!(has, [true; 3], "{text}");
    let number = line.split(' ').next().unwrap();
    let one = window.json(&format!("/clients/{number}")).await;
    assert_eq!(one["streams"][0]["node"]["id"], "edge-3");
    assert_eq!(one["streams"][0]["node"]["user_agent_version"], "1.2");
    assert_eq!(standings(&one["streams"][0]["types"][full(CDS)]), ["c accepted"]);
}

#[tokio::test]
async fn wrong_questions_say_what_is_right() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    for (path, code, word) in [
        ("/clients?nodes=a", 400, "write /clients, with any of"),
        ("/clients?format=xml", 400, "write /clients, with any of"),
        ("/clients?node=%7Ba", 400, "unmatched brace"),
        ("/clients?type=x", 400, "type: not a type; write lds"),
        ("/clients/edge-1", 400, "write /clients/NUMBER"),
        ("/clients/1.1", 404, "no stream of `1.1` is open here"),
        ("/clients/1.1/ready", 404, "no stream of `1.1` is open here"),
        ("/clients/1.1/steady", 404, "GET /help lists all paths"),
    ] {
        let (status, text) = window.get(path).await;
        assert_eq!(status, code, "{path}: {text}");
        assert!(text.contains(word), "{path}: {text}");
    }
}

/// Two that reject the same for one reason, one that rejects it for another, and one that takes it.
async fn four_clients(relay: &Relay, window: &Window) -> Vec<Subscriber> {
    let mut clients = Vec::new();
    for (id, why) in [
        ("edge-1", "bad a"),
        ("edge-2", "bad a"),
        ("edge-3", "worse"),
        ("edge-4", ""),
    ] {
        let dialect = if id == "edge-2" { Dialect::Sotw } else { Dialect::Delta };
        let mut one = client(relay, dialect, CDS, id).await;
        one.subscribe(&["*"]);
        one.next().await.unwrap();
        if why.is_empty() {
            one.ack();
        } else {
            one.nack(why);
        }
        let status = if why.is_empty() { "SYNCED" } else { "ERROR" };
        window.until(id, CDS, status).await;
        clients.push(one);
    }
    clients
}

/// Two clients reject the same for two reasons, and a third one takes it: `/nacks` and `/resources` agree about that.
#[tokio::test]
async fn who_rejects_what() {
    let relay = Relay::start();
    put(&relay, CDS, &["a"], 1);
    let window = Window::of(&relay);
    let mut clients = four_clients(&relay, &window).await;
    let nacks = window.json("/nacks").await;
    let told = |at: usize| {
        let one = &nacks["rejections"][at];
        json!([one["name"], one["rejection"], one["clients"], one["some"][0]["node"]])
    };
    assert_eq!(nacks["rejections"].as_array().unwrap().len(), 2, "{nacks}");
    assert_eq!(nacks["rejections"][0]["software"], json!({"probe 1.2": 2}), "{nacks}");
    assert_eq!(told(0), json!(["a", "bad a", 2, "edge-1"]));
    assert_eq!(told(1), json!(["a", "worse", 1, "edge-3"]));

    assert_eq!(nacks["rejections"][0]["accepted"], json!(null), "{nacks}");
    let named = window.json("/nacks?name=a").await;
    let counts = ["software", "accepted", "waiting"].map(|of| named["rejections"][1][of].clone());
    assert_eq!(json!(counts), json!([{"probe 1.2": 1}, {"probe 1.2": 1}, {}]));

    let since = nacks["rejections"][0]["since"].as_str().unwrap_or_default();
    let one = window.json("/resources/a?type=cds").await;
    assert!(one["contents"][0]["received"].as_str() <= Some(since), "{nacks}\n{one}");
    assert_eq!(one["contents"][0]["content"]["connect_timeout"], "1s", "{one}");
    assert_eq!(one["contents"][0]["version"], nacks["rejections"][0]["version"]);
    let counts = ["accepted", "rejected"].map(|of| one["clients"][of]["count"].clone());
    assert_eq!(json!(counts), json!([1, 3]));
    assert_eq!(one["clients"]["rejected"]["some"][2]["rejection"], "worse", "{one}");
    let all = window.json("/resources").await;
    assert_eq!(all["resources"][full(CDS)][0]["name"], "a", "{all}");
    assert_eq!(all["more"], false, "{all}");
    assert_eq!(window.get("/resources/b").await.0, 404);
    put(&relay, EDS, &["a"], 1);
    let (code, text) = window.get("/resources/a").await;
    assert!(
        code == 409 && text.contains("write ?type= and one of cds, eds"),
        "{text}"
    );

    put(&relay, CDS, &["a"], 2);
    for one in &mut clients {
        one.take().await;
    }
    window.until("edge-*", CDS, "SYNCED").await;
    assert_eq!(window.json("/nacks").await["rejections"], json!([]));
    let one = window.json("/resources/a?type=cds").await;
    assert_eq!(one["clients"]["accepted"]["count"], 4, "{one}");
    // All four had been there before the change, and have accepted it.
    let adoption = &one["adoption"];
    let counts = ["accepted", "came_later", "not_accepted"].map(|of| adoption[of].clone());
    assert_eq!(json!(counts), json!([4, 0, 0]));
    assert!(adoption["at_latest_seconds"].as_f64().unwrap() > 0.0, "{adoption}");
}

/// The list of resources has all pages of each type, those that fit, or as many as are asked for.
#[tokio::test]
async fn many_resources() {
    let relay = Relay::start();
    let names: Vec<String> = (0..600).map(|number| format!("name-{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    put(&relay, CDS, &names, 1);
    put(&relay, EDS, &["name-7", "\"odd\\"], 1);
    let window = Window::of(&relay);
    for (query, clusters, endpoints, more) in [
        ("", 600, 2, false),
        ("?name=name-5*", 100, 0, false),
        ("?type=eds&name=*odd*", 0, 1, false),
        ("?limit=300", 300, 0, true),
        ("?limit=602", 600, 2, false),
        ("?limit=0", 0, 0, true),
        ("?class=nobody", 0, 0, false),
    ] {
        let all = window.json(&format!("/resources{query}")).await;
        let count = |type_url: &str| all["resources"][full(type_url)].as_array().map_or(0, Vec::len);
        assert_eq!((count(CDS), count(EDS)), (clusters, endpoints), "{query}");
        assert_eq!(all["more"], more, "{query}");
    }
    let (code, text) = window.get("/resources?names=x").await;
    assert!(code == 400 && text.contains("limit=COUNT"), "{code} {text}");
}
