// SPDX-License-Identifier: Apache-2.0
//! A control plane that names what it has by version, as the sample of go-control-plane does: an ordinary rollout is no incident.

use super::{LDS, RDS, Server, Watcher, cluster, configuration, endpoints, holding, listener, put_path, route};
use crate::stage::{CDS, EDS, Relay};

/// Over SotW. The old listener of an Envoy wants its route for as long as it drains: the old cluster is kept for it. That is listed,
/// and is no trouble.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_over_sotw() {
    let server = Server::start().await;
    put_path(&server, &["c-1"]);
    server.edit(|content| {
        content.get_mut(RDS).unwrap().clear();
        content
            .get_mut(RDS)
            .unwrap()
            .insert("r-1".to_owned(), route("r-1", &["c-1"]));
        content
            .get_mut(LDS)
            .unwrap()
            .insert("l".to_owned(), listener("l", "r-1", 10_000));
    });
    let upstream = format!("{{server_uri: '{}', transport: sotw}}", server.address);
    let relay = Relay::telling("amnesia-rollout", &configuration(&upstream, "60s", ""));
    let draining = Watcher::start(relay.address, &[(RDS, &["r-1"]), (LDS, &["*"]), (CDS, &["*"])]).await;
    draining.has(RDS, "r-1").await;
    draining.has(CDS, "c-1").await;
    server.edit(|content| {
        content.clear();
        let mut put = |kind: &str, name: &str, body| {
            content
                .entry(kind.to_owned())
                .or_default()
                .insert(name.to_owned(), body);
        };
        put(LDS, "l", listener("l", "r-2", 10_000));
        put(RDS, "r-2", route("r-2", &["c-2"]));
        put(CDS, "c-2", cluster("c-2"));
        put(EDS, "c-2", endpoints("c-2", 1));
    });
    let new = Watcher::start(relay.address, &[(RDS, &["r-2"]), (LDS, &["*"]), (CDS, &["*"])]).await;
    new.has(RDS, "r-2").await;
    holding(&relay, "cds", "referenced", "c-1").await;
    let (code, out) = relay.command(&["holds"]);
    assert!(out.contains("c-1"), "{out}");
    assert_eq!(code, Some(0), "{out}");
    let (code, out) = relay.command(&["status"]);
    assert_eq!(code, Some(0), "{out}");
    draining.loses_only("").await;
    // The old listener is drained.
    drop(draining);
    new.has(CDS, "c-2").await;
    relay.line("no longer held: nothing refers to it");
    let warned = relay.seen().into_iter().find(|line| line.contains("level=warn"));
    assert_eq!(warned, None);
}
