// SPDX-License-Identifier: Apache-2.0
//! A control plane that is polled, on a real socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use distributary::cache::View;
use distributary::config::{Credentials, RestPolls};
use distributary::json::Schemas;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::telemetry::Metrics;
use distributary::upstream::{RestServer, Writer};
use distributary::xds::{Cut, ServerState, TypeUrl};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::plane::soon;
use crate::{CDS, EDS, Plan, Relay};

/// A listener that hands every poll to the test.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    polls: mpsc::Receiver<Poll>,
    task: JoinHandle<()>,
}

/// One poll, whose connection waits for the answer.
pub(crate) struct Poll {
    pub(crate) path: String,
    asked: Value,
    answer: mpsc::Sender<Vec<u8>>,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, polls) = mpsc::channel(16);
        #[expect(clippy::disallowed_methods, reason = "a server runs beside its client")]
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                connections.spawn(serve(socket, sender.clone()));
            }
        });
        Self { address, polls, task }
    }

    pub(crate) async fn poll(&mut self) -> Poll {
        soon("a poll", self.polls.recv()).await.unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut socket: TcpStream, polls: mpsc::Sender<Poll>) {
    let mut read = Vec::new();
    loop {
        let split = loop {
            if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            match socket.read_buf(&mut read).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        };
        let head = String::from_utf8(read.drain(..split).collect()).unwrap();
        assert!(
            head.starts_with("POST ") && head.contains("content-type: application/json"),
            "{head}"
        );
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.unwrap().parse().unwrap();
        while read.len() < length {
            assert!(socket.read_buf(&mut read).await.unwrap() > 0);
        }
        let body: Vec<u8> = read.drain(..length).collect();
        let asked = serde_json::from_slice(&body).unwrap();
        let (answer, mut answered) = mpsc::channel(1);
        let path = head.split(' ').nth(1).unwrap().to_owned();
        if polls.send(Poll { path, asked, answer }).await.is_err() {
            return;
        }
        // A poll that is dropped ends its connection.
        let Some(bytes) = answered.recv().await else { return };
        if socket.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

impl Poll {
    fn names(&self) -> Vec<&str> {
        let names = self.asked.get("resource_names").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn version(&self) -> &str {
        self.asked
            .get("version_info")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(crate) async fn status(self, status: &str, body: &str) {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
        let head = if status.starts_with("304") {
            "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned()
        } else {
            head
        };
        // The relay may have closed the connection.
        drop(self.answer.send([head, body.to_owned()].concat().into_bytes()).await);
    }

    /// Clusters, or endpoints, of these names.
    pub(crate) async fn say(self, version: &str, names: &[&str]) {
        let kind = if self.path.ends_with(":endpoints") {
            (EDS, "cluster_name")
        } else {
            (CDS, "name")
        };
        let resources: Vec<Value> = names
            .iter()
            .map(|name| json!({"@type": kind.0, kind.1: name}))
            .collect();
        let said = json!({"version_info": version, "type_url": kind.0, "resources": resources});
        self.status("200 OK", &said.to_string()).await;
    }
}

impl Relay {
    /// A relay that polls, at this prefix, for these resources.
    pub(crate) fn polling(site: &Site, prefix: &str, wanted: &[(&str, &str)]) -> Self {
        let mut plan = Plan::usual(site.address);
        (plan.upstream_message, plan.reconnect_max) = (1 << 20, Duration::from_millis(20));
        let rest = RestPolls {
            endpoint: plan.server.endpoint.clone(),
            credentials: Credentials::Insecure,
            token: None,
            prefix: prefix.to_owned(),
        };
        let (all, settings) = (Metrics::new([]), plan.settings());
        let server = RestServer::new("cp", rest, Schemas::standard(), all.upstreams.of("cp"));
        let writer = |view: &Arc<View>, node: &Arc<Node>| Writer::polling(view.clone(), node, &server, None, &settings);
        Self::begin(all, None, settings.clone(), writer, wanted)
    }

    /// Waits until the view satisfies the condition.
    pub(crate) async fn sees(&self, what: &str, test: impl Fn(&Cut) -> bool) {
        let seen = async {
            while !test(&self.view.cut()) {
                drop(self.seat.bell().take());
                let rung = std::future::poll_fn(|cx| self.seat.bell().poll(cx));
                let _ = tokio::time::timeout(Duration::from_millis(10), rung).await;
            }
        };
        soon(what, seen).await;
    }

    /// Waits until these are all clusters.
    pub(crate) async fn has_clusters(&self, names: &[&str]) {
        let cds = TypeUrl::new(CDS);
        let all = |cut: &Cut| {
            let state = cut.slot(&cds)?.wildcard.clone().filter(|state| state.complete())?;
            Some(
                state
                    .resources()
                    .map(|resource| resource.name().to_string())
                    .collect::<Vec<_>>(),
            )
        };
        self.sees(&format!("clusters {names:?}"), |cut| {
            all(cut).is_some_and(|all| all == names)
        })
        .await;
    }
}

/// H-01, H-05, H-06, H-07: each poll has the node, the names and the version. New content is taken; "not modified" changes
/// nothing.
#[tokio::test]
async fn polls_and_keeps() {
    let mut site = Site::start().await;
    let relay = Relay::polling(&site, "/xds", &[(CDS, "*")]);
    let poll = site.poll().await;
    assert_eq!(
        (poll.path.as_str(), poll.version(), poll.names().len()),
        ("/xds/v3/discovery:clusters", "", 0)
    );
    assert_eq!(poll.asked["node"]["id"], "relay");
    assert!(poll.asked["node"]["metadata"]["distributary.relays"].is_array());
    poll.say("1", &["a", "b"]).await;
    relay.has_clusters(&["a", "b"]).await;
    relay.stands(ServerState::Up).await;
    for _ in 0..2 {
        let poll = site.poll().await;
        assert_eq!((poll.version(), &poll.asked["node"]["id"]), ("1", &json!("relay")));
        poll.status("304 Not Modified", "").await;
    }
    relay.has_clusters(&["a", "b"]).await;
    site.poll().await.say("2", &["b"]).await;
    relay.has_clusters(&["b"]).await;
    assert_eq!((relay.metrics.responses.get(), relay.metrics.failures.get()), (2, 0));
}

/// H-07: whatever fails, good content stays, and the relay asks for all of it again when the server is back.
#[tokio::test]
async fn a_failure_keeps_what_was_good() {
    let large = " ".repeat(2 << 20);
    for (status, body) in [
        ("500 Internal Server Error", "no"),
        ("200 OK", &large),
        ("200 OK\r\ncontent-encoding: gzip", "{\"resources\":[]}"),
        ("200 OK", "{"),
        ("200 OK", "[]"),
        ("200 OK", "{\"resources\":[{]}"),
        ("", ""),
    ] {
        let mut site = Site::start().await;
        let relay = Relay::polling(&site, "", &[(CDS, "*")]);
        site.poll().await.say("1", &["a"]).await;
        relay.has_clusters(&["a"]).await;
        let poll = site.poll().await;
        if status.is_empty() {
            drop(poll);
            // A poll that fails on a kept connection is tried once more on a new one.
            drop(site.poll().await);
        } else {
            poll.status(status, body).await;
        }
        relay.stands(ServerState::Failing).await;
        relay.has_clusters(&["a"]).await;
        let poll = site.poll().await;
        assert_eq!(poll.version(), "", "{status} {body}");
        poll.say("1", &["a", "b"]).await;
        relay.has_clusters(&["a", "b"]).await;
        relay.stands(ServerState::Up).await;
        assert_eq!(relay.metrics.failures.get(), 1, "{status} {body}");
    }
}

/// H-07: at most one poll of a type is open. When the names change, the next poll has no version, for servers that compare only
/// versions.
#[tokio::test]
async fn what_is_wanted_changes() {
    let mut site = Site::start().await;
    let relay = Relay::polling(&site, "", &[(EDS, "a")]);
    site.poll().await.say("1", &["a"]).await;
    let held = site.poll().await;
    assert_eq!(
        (held.path.as_str(), held.version(), held.names()),
        ("/v3/discovery:endpoints", "1", vec!["a"])
    );
    relay.want(EDS, "b", true);
    let poll = site.poll().await;
    assert_eq!((poll.version(), poll.names()), ("", vec!["a", "b"]));
    assert!(held.answer.is_closed() || site.polls.try_recv().is_err());
    poll.say("1", &["a", "b"]).await;
    relay
        .sees("both", |cut| {
            let slot = cut.slot(&TypeUrl::new(EDS));
            slot.is_some_and(|slot| slot.named.present() == 2)
        })
        .await;
    // Each type has polls of its own, and the wildcard of a type is polled apart from its names (K-05).
    relay.want(EDS, "*", true);
    loop {
        let poll = site.poll().await;
        if poll.names().is_empty() {
            assert_eq!(poll.version(), "");
            break;
        }
        poll.status("304 Not Modified", "").await;
    }
}
