// SPDX-License-Identifier: Apache-2.0
//! From one control plane to another, in the steps of the manual, while the new one knows only some of what clients were served: whoever
//! moves keeps what it had, and is told of nothing but the end of a hold.

use std::path::Path;

use distributary::proto::envoy::config::core::v3::Node;

use super::{CDS, Server, Watcher, configuration, held, holding, holds, of, one, order, put_clusters};
use crate::canaries::id;
use crate::stage::Relay;

const ALL: &str = "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9";
/// What the new control plane does not know.
const LACKED: &str = "c3 c4 c5 c6 c7 c8 c9";
/// What each of the reloads makes of the clients' control planes.
const STEPS: [&str; 5] = ["5%", "50%", "100%", "[B, A]", "[B]"];

/// Both control planes, the relay, and a client that moves at the first step, one at the second, and one at the third.
struct Migration {
    name: String,
    hold: &'static str,
    a: Server,
    b: Server,
    relay: Relay,
    clients: [Watcher; 3],
}

impl Migration {
    /// All read A; B has so many of A's ten clusters. Losses are held for so long.
    async fn start(name: &str, hold: &'static str, known: u32) -> Self {
        let (a, b) = (Server::start().await, Server::start().await);
        put_clusters(&a, 0..10);
        put_clusters(&b, 0..known);
        let name = format!("migration-{name}");
        let relay = Relay::telling(&name, &configuration(&one(&a), hold, ""));
        let client = async |from, below| {
            let node = Node {
                id: id(from, below),
                ..Node::default()
            };
            let watcher = Watcher::of(node, relay.address, &[(CDS, &["*"])]).await;
            watcher.has(CDS, ALL).await;
            watcher
        };
        let clients = [
            client(0, 500).await,
            client(500, 5000).await,
            client(5000, 10_000).await,
        ];
        Self {
            name,
            hold,
            a,
            b,
            relay,
            clients,
        }
    }

    fn reload(&self, step: &str) {
        let (a, b) = (one(&self.a), one(&self.b));
        let text = match step {
            "[B, A]" => configuration(&format!("{b}, {a}"), self.hold, ""),
            "[B]" => configuration(&b, self.hold, ""),
            share => configuration(
                &a,
                self.hold,
                &format!("canary: {{share: {share}, xds_servers: [{b}]}}\n"),
            ),
        };
        let config = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("warm-{}.yaml", self.name));
        let new = config.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &config).unwrap();
        let answer = self.relay.post("/reload");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
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
    let migration = Migration::start("all", "60s", 3).await;
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

/// B has everything until a step, and restarts with half of it at that step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_empty_at_each_step() {
    let at = async |step: usize| {
        let migration = Migration::start(&step.to_string(), "60s", 10).await;
        for before in &STEPS[..step] {
            migration.reload(before);
            // Who moves is served by B before it restarts.
            migration.clients[0].loses_only("").await;
        }
        migration.b.forget(CDS, &LACKED.split(' ').collect::<Vec<_>>());
        migration.reload(STEPS[step]);
        holding(&migration.relay, "cds", "mass", LACKED).await;
        migration.loses_nothing(STEPS[step]).await;
    };
    tokio::join!(at(0), at(1), at(2), at(3), at(4));
}

/// What was held for the first that moved goes when its time is over, and is not held again for those who follow. All others keep it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_over_is_over() {
    let migration = Migration::start("over", "1s", 3).await;
    let [few, half, most] = &migration.clients;
    migration.reload("5%");
    few.has(CDS, "c0 c1 c2").await;
    assert_eq!((half.lost(), most.lost()), (String::new(), String::new()));
    assert!(holds(&migration.relay).is_empty());
    migration.reload("50%");
    half.has(CDS, "c0 c1 c2").await;
    most.loses_only("").await;
    migration.reload("[B, A]");
    most.has(CDS, "c0 c1 c2").await;
}
