// SPDX-License-Identifier: Apache-2.0
//! A relay behind a relay: its clients hold what those of the first one hold.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryResponse;

use crate::messages::wants;
use crate::stage::{ANYWHERE, CDS, Client, Delta, Relay, directory};

/// `a/1`: a name and its content.
fn write(files: &Path, texts: &[&str]) {
    let one = |text: &&str| {
        let (name, content) = text.split_once('/').unwrap();
        // Long enough to be compressed between the tiers.
        let long = "long ".repeat(200);
        format!("- {{'@type': {CDS}, name: {name}, connect_timeout: {content}s, alt_stat_name: '{long}'}}\n")
    };
    let text: String = texts.iter().map(one).collect();
    std::fs::write(files.join("new"), if text.is_empty() { "[]" } else { &text }).unwrap();
    std::fs::rename(files.join("new"), files.join("clusters.yaml")).unwrap();
}

/// Less than the stream itself has.
const PATIENCE: Duration = crate::plane::PATIENCE.saturating_sub(Duration::from_secs(1));

/// A client, and the versions that it holds by name.
struct Held {
    stream: Delta,
    versions: BTreeMap<String, String>,
}

impl Held {
    async fn of(relay: &Relay, names: &[&str]) -> Self {
        Self {
            stream: Client::connect(relay.address).await.open(&wants(CDS, names)).await,
            versions: BTreeMap::new(),
        }
    }

    fn takes(&mut self, response: DeltaDiscoveryResponse) {
        for name in response.removed_resources {
            self.versions.remove(&name);
        }
        let found = response.resources.into_iter();
        self.versions.extend(found.map(|found| (found.name, found.version)));
    }

    /// Waits until the versions that it holds are `right`.
    async fn holds(
        &mut self,
        what: &str,
        right: impl Fn(&BTreeMap<String, String>) -> bool,
    ) -> BTreeMap<String, String> {
        while !right(&self.versions) {
            let next = tokio::time::timeout(PATIENCE, self.stream.whole()).await;
            let response = next.unwrap_or_else(|_| panic!("{what}: nothing comes beyond {:?}", self.versions));
            self.takes(response);
        }
        self.versions.clone()
    }
}

/// Each client holds the same at the second relay as at the first one, in both dialects between them, by wildcard and by name,
/// whatever is added, changed and removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tiers_serve_what_one_does() {
    for transport in ["delta", "sotw"] {
        let files = directory(&format!("tiers-{transport}"));
        write(&files, &["a/1"]);
        let run = |name: &str, server: &str| {
            let upstream = format!("upstream: {{xds_servers: [{{{server}}}]}}\n");
            Relay::run(&format!("tiers-{name}-{transport}"), &format!("{upstream}{ANYWHERE}"))
        };
        let upper = run("upper", &format!("server_uri: '{}'", files.display()));
        let server = format!("server_uri: '{}', transport: {transport}", upper.address);
        let lower = run("lower", &server);
        let mut clients = Vec::new();
        for names in [&["*"][..], &["a", "b"]] {
            let here = Held::of(&upper, names).await;
            let below = Held::of(&lower, names).await;
            clients.push((format!("{transport} {names:?}"), here, below));
        }
        for (step, all) in [&["a/1"][..], &["a/1", "b/2"], &["a/3", "b/2"], &["b/4"], &[]]
            .iter()
            .enumerate()
        {
            write(&files, all);
            for (who, here, below) in &mut clients {
                let before = here.versions.clone();
                let right = |held: &BTreeMap<String, String>| held.len() == all.len() && *held != before;
                let here = here.holds(&format!("{who}: step {step} of the first"), right).await;
                below
                    .holds(&format!("{who}: step {step} of the second"), |held| *held == here)
                    .await;
            }
        }
    }
}
