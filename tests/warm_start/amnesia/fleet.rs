// SPDX-License-Identifier: Apache-2.0
//! Many clients of several control planes: how many streams there are, and what a client is sent when it moves.

use std::path::Path;

use distributary::proto::envoy::config::core::v3::Node;
use distributary::xds::bucket;

use super::{CDS, EDS, LDS, RDS, Server, Watcher, cluster, configuration, endpoints, one, put_clusters};
use super::{content, nothing_held, put_path};
use crate::stage::{Relay, eventually};

/// 100 clients have 500 clusters with their endpoints, from two control planes: one stream of each client, two at most at each server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_stream_for_each_client() {
    let (main, aside) = (Server::start().await, Server::start().await);
    let names: Vec<String> = (0..500).map(|number| format!("c{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    put_path(&main, &["c0"]);
    put_clusters(&main, 0..500);
    names.iter().for_each(|name| aside.put(EDS, name, endpoints(name, 1)));
    let more = format!("sources: [{{types: [eds], xds_servers: [{}]}}]\n", one(&aside));
    let relay = Relay::telling("fleet-streams", &configuration(&one(&main), "60s", &more));
    let wants: [(&str, &[&str]); 4] = [(LDS, &["*"]), (CDS, &["*"]), (RDS, &["r"]), (EDS, &names)];
    let mut watchers = Vec::new();
    for _ in 0..100 {
        watchers.push(Watcher::start(relay.address, &wants).await);
    }
    let all = names.join(" ");
    for watcher in &watchers {
        watcher.has(EDS, &all).await;
        watcher.has(CDS, &all).await;
        watcher.has(LDS, "l").await;
        watcher.has(RDS, "r").await;
        // Endpoints that came before their clusters come again behind these (K-13).
        assert_eq!(watcher.counts().1, 0);
    }
    for server in [&main, &aside] {
        assert!((1..=2).contains(&server.streams()), "{}", server.streams());
    }
    let shown = relay.admin("/clients?format=json");
    assert_eq!(shown.matches("\"stream\":").count(), 100);
}

/// A share of 200 clients reads the new control plane, then more, then all, and back in the same steps. The new one has other content of three
/// clusters and one more, and of nothing else is a client sent anything, at no step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_moves_there_and_back() {
    let (a, b) = (Server::start().await, Server::start().await);
    for server in [&a, &b] {
        put_path(server, &["c0"]);
        put_clusters(server, 0..40);
    }
    for name in ["c1", "c2", "c3"] {
        b.put(CDS, name, content::aggregate(name, &["c0"]));
    }
    b.put(CDS, "new", cluster("new"));
    let (only_a, only_b) = (one(&a), one(&b));
    let both = format!("{only_b}, {only_a}");
    let share = |percent: u32| {
        let canary = format!("canary: {{share: {percent}%, xds_servers: [{only_b}]}}\n");
        configuration(&only_a, "60s", &canary)
    };
    let steps = [
        (0, configuration(&only_a, "60s", "")),
        (500, share(5)),
        (5_000, share(50)),
        (10_000, share(100)),
        (10_000, configuration(&both, "60s", "")),
        (10_000, configuration(&only_b, "60s", "")),
    ];
    let relay = Relay::telling("fleet-share", &steps[0].1);
    let config = Path::new(env!("CARGO_TARGET_TMPDIR")).join("warm-fleet-share.yaml");
    let wants: [(&str, &[&str]); 4] = [(LDS, &["*"]), (CDS, &["*"]), (RDS, &["r"]), (EDS, &["c0"])];
    let mut watchers = Vec::new();
    for number in 0..200 {
        let id = format!("client-{number}");
        let node = Node {
            id: id.clone(),
            ..Node::default()
        };
        let watcher = Watcher::of(node, relay.address, &wants).await;
        watchers.push((bucket(&id).unwrap(), watcher));
    }
    let of_a: Vec<String> = (0..40).map(|number| format!("c{number}")).collect();
    let (of_a, of_b) = (of_a.join(" "), format!("{} new", of_a.join(" ")));
    for (_, watcher) in &watchers {
        watcher.has(CDS, &of_a).await;
        watcher.has(EDS, "c0").await;
    }
    let there_and_back = steps.iter().skip(1).chain(steps.iter().rev().skip(1));
    for (step, (moved, text)) in there_and_back.enumerate() {
        let new = config.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &config).unwrap();
        let answer = relay.post("/reload");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let back = step >= steps.len() - 1;
        for (bucket, watcher) in &watchers {
            let moved = bucket < moved;
            watcher.has(CDS, if moved { &of_b } else { &of_a }).await;
            // 43 at first, 4 there, 3 back and one removal.
            let counts = match (moved, back) {
                (true, _) => (47, 0),
                (false, false) => (43, 0),
                (false, true) => (50, 1),
            };
            let what = format!("step {step}: {counts:?} of a client in bucket {bucket}");
            eventually(&what, || (watcher.counts() == counts).then_some(())).await;
        }
    }
    nothing_held(&relay).await;
    for (_, watcher) in &watchers {
        assert_eq!(watcher.counts(), (50, 1));
    }
}
