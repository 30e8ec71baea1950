// SPDX-License-Identifier: Apache-2.0
//! From one control plane to another, in the steps of the manual, while the new one knows only some of what clients were served: whoever
//! moves keeps what it had, and is told of nothing but the end of a hold.

use super::{CDS, Server, Watcher, configuration, held, holding, of, one, order, put_clusters};
use crate::canaries::id;
use crate::messages::node_of;
use crate::stage::Relay;

const ALL: &str = "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9";
/// What the new control plane does not know.
const LACKED: &str = "c3 c4 c5 c6 c7 c8 c9";
/// What each of the reloads makes of the clients' control planes.
const STEPS: [&str; 5] = ["5%", "50%", "100%", "[B, A]", "[B]"];

/// Both control planes, the relay, and a client that moves at the first step, one at the second, and one at the third.
struct Migration {
    a: Server,
    b: Server,
    relay: Relay,
    clients: [Watcher; 3],
}

impl Migration {
    /// All read A; B has three of A's ten clusters.
    async fn start() -> Self {
        let (a, b) = (Server::start().await, Server::start().await);
        put_clusters(&a, 0..10);
        put_clusters(&b, 0..3);
        let relay = Relay::telling("migration", &configuration(&one(&a), "60s", ""));
        let client = async |from, below| {
            let node = node_of(&id(from, below), "");
            let watcher = Watcher::of(node, relay.address, &[(CDS, &["*"])]).await;
            watcher.has(CDS, ALL).await;
            watcher
        };
        let clients = [
            client(0, 500).await,
            client(500, 5000).await,
            client(5000, 10_000).await,
        ];
        Self { a, b, relay, clients }
    }

    fn reload(&self, step: &str) {
        let (a, b) = (one(&self.a), one(&self.b));
        let text = match step {
            "[B, A]" => configuration(&format!("{b}, {a}"), "60s", ""),
            "[B]" => configuration(&b, "60s", ""),
            share => {
                let canary = format!("canary: {{share: {share}, xds_servers: [{b}]}}\n");
                configuration(&a, "60s", &canary)
            }
        };
        self.relay.reload(&text);
    }

    /// Waits a while: nobody has lost anything.
    async fn loses_nothing(&self, step: &str) {
        for client in &self.clients {
            client.loses_only("").await;
            client.has(CDS, ALL).await;
        }
        assert_eq!(held(&self.relay, "cds", "mass"), LACKED, "{step}");
    }
}

/// B is half empty all the way. What it lacks is held once, for all; what it learns is held no more, and a person lets the rest go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_empty_all_the_way() {
    let migration = Migration::start().await;
    for step in STEPS {
        migration.reload(step);
        holding(&migration.relay, "cds", "mass", LACKED).await;
        migration.loses_nothing(step).await;
        assert_eq!(of(&migration.relay, "cds", "mass").len(), 1, "{step}");
    }
    put_clusters(&migration.b, 3..4);
    holding(&migration.relay, "cds", "mass", "c4 c5 c6 c7 c8 c9").await;
    let (code, out) = order(&migration.relay, &["holds", "release", "cds/c9"]);
    assert_eq!(code, Some(0), "{out}");
    for client in &migration.clients {
        client.has(CDS, "c0 c1 c2 c3 c4 c5 c6 c7 c8").await;
        client.loses_only("c9").await;
    }
}
