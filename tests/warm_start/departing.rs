// SPDX-License-Identifier: Apache-2.0
//! A control plane that removes a cluster before it sends the route that leaves the cluster, and clients in both dialects.

use std::collections::BTreeSet;
use std::time::Duration;

use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse, Resource};

use crate::messages::{wants, wants_sotw};
use crate::plane::{Call, Plane};
use crate::stage::{CDS, Client, Delta, Relay, Sotw, cluster};

const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";

/// What a client asks for of a type.
fn names(type_url: &str) -> Vec<String> {
    let named = (type_url == RDS).then(|| "r".to_owned());
    named.into_iter().collect()
}

/// A route whose content is the name of the cluster that it leads to.
fn route(to: &str) -> Resource {
    let mut route = cluster("r", to);
    route.resource.as_mut().unwrap().type_url = RDS.to_owned();
    route
}

/// The control plane's half of the relay's stream.
struct Origin {
    call: Call,
    sotw: bool,
    sent: u32,
}

impl Origin {
    /// Waits until the relay has asked for clusters and routes.
    async fn asked(mut call: Call, sotw: bool) -> Self {
        let mut types = BTreeSet::new();
        while types.len() < 2 {
            types.insert(match sotw {
                true => call.sotw().await.type_url,
                false => call.delta().await.type_url,
            });
        }
        Self { call, sotw, sent: 0 }
    }

    /// Says what there is now of a type, and what has gone.
    fn says(&mut self, type_url: &str, all: Vec<Resource>, gone: &[&str]) {
        self.sent += 1;
        let nonce = self.sent.to_string();
        let type_url = type_url.to_owned();
        if self.sotw {
            return self.call.send(&DiscoveryResponse {
                version_info: nonce.clone(),
                nonce,
                type_url,
                resources: all.into_iter().filter_map(|one| one.resource).collect(),
                ..Default::default()
            });
        }
        self.call.send(&DeltaDiscoveryResponse {
            nonce,
            type_url,
            resources: all,
            removed_resources: gone.iter().map(|name| (*name).to_owned()).collect(),
            ..Default::default()
        });
    }
}

enum Either {
    Delta(Delta),
    Sotw(Sotw),
}

/// A client that notes what it has.
struct Follower {
    stream: Either,
    clusters: BTreeSet<String>,
    route: Option<String>,
    /// Whether it has all that there is at first, which may come in any order while that is not known to be all.
    settled: bool,
}

impl Follower {
    async fn start(relay: &Relay, sotw: bool) -> Self {
        let client = Client::connect(relay.address).await;
        let stream = if sotw {
            let mut stream: Sotw = client.open(&wants_sotw(CDS, &[])).await;
            stream.says(&wants_sotw(RDS, &["r"]));
            Either::Sotw(stream)
        } else {
            let mut stream: Delta = client.open(&wants(CDS, &[])).await;
            stream.says(&wants(RDS, &["r"]));
            Either::Delta(stream)
        };
        Self {
            stream,
            clusters: BTreeSet::new(),
            route: None,
            settled: false,
        }
    }

    /// Takes responses until it has these clusters and a route to this one. At no time does its route lead to a cluster that it
    /// does not have.
    async fn has(&mut self, clusters: &[&str], to: &str, when: &str) {
        let clusters: BTreeSet<String> = clusters.iter().map(|name| (*name).to_owned()).collect();
        while self.clusters != clusters || self.route.as_deref() != Some(to) {
            match &mut self.stream {
                Either::Delta(stream) => {
                    let response = stream.whole().await;
                    for one in response.resources {
                        self.take(&response.type_url, &one.resource.unwrap().value);
                    }
                    for name in response.removed_resources {
                        self.clusters.remove(&name);
                    }
                }
                Either::Sotw(stream) => {
                    let response = stream.next_asking(names).await;
                    if response.type_url == CDS {
                        self.clusters.clear();
                    }
                    for any in response.resources {
                        self.take(&response.type_url, &any.value);
                    }
                }
            }
            if let Some(route) = self.route.as_ref().filter(|_| self.settled) {
                let has = self.clusters.contains(route);
                assert!(
                    has,
                    "{when}: a route to {route}, and the clusters are {:?}",
                    self.clusters
                );
            }
        }
        self.settled = true;
    }

    /// Takes a resource: its name is the third byte of the body, its content the last one.
    fn take(&mut self, type_url: &str, body: &[u8]) {
        let text = String::from_utf8_lossy(body);
        if type_url == CDS {
            self.clusters.extend(text.get(2..3).map(str::to_owned));
        } else {
            self.route = text.chars().last().map(String::from);
        }
    }
}

/// The quiet time is longer than usual: a busy machine may make 20 ms a second.
async fn removal_before_route(sotw: bool) {
    let mut plane = Plane::start().await;
    let text = format!(
        "upstream: {{xds_servers: [{{server_uri: '{}', transport: {}}}]}}\nlisteners: [{{address: '127.0.0.1:0'}}]\nadmin: {{address: '127.0.0.1:0'}}\ntimers: {{removal_quiet: 2s}}\n",
        plane.address,
        if sotw { "sotw" } else { "delta" },
    );
    let relay = Relay::run(&format!("departing-{sotw}"), &text);
    let mut clients = [
        Follower::start(&relay, false).await,
        Follower::start(&relay, true).await,
    ];
    let mut origin = Origin::asked(plane.call().await, sotw).await;
    origin.says(CDS, vec![cluster("a", "1")], &[]);
    origin.says(RDS, vec![route("a")], &[]);
    for client in &mut clients {
        client.has(&["a"], "a", "at first").await;
    }
    let (mut old, mut new) = ("a", "b");
    for late in [0, 1, 5, 20] {
        let when = format!("upstream sotw {sotw}, {late} ms late");
        origin.says(CDS, vec![cluster(old, "1"), cluster(new, "1")], &[]);
        for client in &mut clients {
            client.has(&["a", "b"], old, &when).await;
        }
        origin.says(CDS, vec![cluster(new, "1")], &[old]);
        if late > 0 {
            tokio::time::sleep(Duration::from_millis(late)).await;
        }
        origin.says(RDS, vec![route(new)], &[]);
        for client in &mut clients {
            client.has(&[new], new, &when).await;
        }
        (old, new) = (new, old);
    }
    assert!(
        relay.admin("/metrics").contains("gates_expired_total 0"),
        "{}",
        relay.admin("/metrics")
    );
}

/// D-03: over delta from the control plane, no client has a route without its cluster, in either dialect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delta_control_plane_removes_first() {
    removal_before_route(false).await;
}

/// D-03: the same over state of the world.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sotw_control_plane_removes_first() {
    removal_before_route(true).await;
}
