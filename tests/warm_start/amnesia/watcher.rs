// SPDX-License-Identifier: Apache-2.0
//! A client that remembers what it has, and everything that it ever lost.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::server::A_WHILE;
use crate::plane::PATIENCE;
use crate::stage::{Client, Delta, node};

/// One ADS stream, which acknowledges everything. Dropping it ends it.
pub(super) struct Watcher {
    seen: Arc<Mutex<Seen>>,
    wishes: mpsc::Sender<DeltaDiscoveryRequest>,
    reading: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    has: BTreeMap<String, BTreeMap<String, String>>,
    /// `-l1`: the removal of `l1`; `+l1`: it came or changed.
    log: Vec<String>,
}

impl Watcher {
    /// A client that wants these names of these types; `*`: all.
    pub(super) async fn start(relay: SocketAddr, wants: &[(&str, &[&str])]) -> Self {
        Self::of(node(), relay, wants).await
    }

    /// The same of this node.
    pub(super) async fn of(node: Node, relay: SocketAddr, wants: &[(&str, &[&str])]) -> Self {
        let client = Client::connect(relay).await;
        let mut requests = wants.iter().map(|(type_url, names)| DeltaDiscoveryRequest {
            node: Some(node.clone()),
            type_url: (*type_url).to_owned(),
            resource_names_subscribe: names.iter().map(|name| (*name).to_owned()).collect(),
            ..DeltaDiscoveryRequest::default()
        });
        let mut stream: Delta = client.open(&requests.next().unwrap()).await;
        requests.for_each(|request| stream.says(&request));
        let seen = Arc::new(Mutex::new(Seen::default()));
        let sees = seen.clone();
        let (wishes, mut more) = mpsc::channel(4);
        #[expect(clippy::disallowed_methods, reason = "a client runs beside the test")]
        let reading = tokio::spawn(async move {
            let _connection = client;
            loop {
                let response = tokio::select! {
                    Some(request) = more.recv() => {
                        stream.says(&request);
                        continue;
                    }
                    response = stream.message() => response,
                };
                stream.says(&DeltaDiscoveryRequest {
                    type_url: response.type_url.clone(),
                    response_nonce: response.nonce.clone(),
                    ..DeltaDiscoveryRequest::default()
                });
                let mut seen = sees.lock();
                for name in response.removed_resources {
                    if seen
                        .has
                        .get_mut(&response.type_url)
                        .and_then(|of| of.remove(&name))
                        .is_some()
                    {
                        seen.log.push(format!("-{name}"));
                    }
                }
                for resource in response.resources {
                    seen.log.push(format!("+{}", resource.name));
                    let of_type = seen.has.entry(response.type_url.clone()).or_default();
                    of_type.insert(resource.name, resource.version);
                }
            }
        });
        Self { seen, wishes, reading }
    }

    /// It wants one more name.
    pub(super) async fn wants(&self, type_url: &str, name: &str) {
        let request = DeltaDiscoveryRequest {
            type_url: type_url.to_owned(),
            resource_names_subscribe: vec![name.to_owned()],
            ..DeltaDiscoveryRequest::default()
        };
        self.wishes.send(request).await.unwrap();
    }

    /// Waits until it has exactly these names of a type: `l1 l2`.
    pub(super) async fn has(&self, type_url: &str, names: &str) {
        let wanted: BTreeSet<String> = names.split_whitespace().map(str::to_owned).collect();
        let waits = async {
            while self.names(type_url) != wanted {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, waits).await.is_err() {
            let has = self.names(type_url);
            panic!("it has {has:?}, not {names}; it lost {}", self.lost());
        }
    }

    fn names(&self, type_url: &str) -> BTreeSet<String> {
        let seen = self.seen.lock();
        seen.has
            .get(type_url)
            .map(|of| of.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Everything that it has lost until now, in order.
    pub(super) fn lost(&self) -> String {
        let seen = self.seen.lock();
        let lost = seen.log.iter().filter_map(|event| event.strip_prefix('-'));
        lost.collect::<Vec<_>>().join(" ")
    }

    /// How often it was sent this name.
    pub(super) fn sent(&self, name: &str) -> usize {
        let came = format!("+{name}");
        self.seen.lock().log.iter().filter(|event| **event == came).count()
    }

    /// Waits a while, and checks that it has never lost anything but these.
    #[track_caller]
    pub(super) fn loses_only(&self, names: &str) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            tokio::time::sleep(A_WHILE).await;
            let lost = self.lost();
            assert_eq!(lost, names, "{caller}: lost");
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
