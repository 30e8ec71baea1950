//! A relay behind a relay: which variants of a name the clients of the lower one get.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DynamicParameterConstraints,
};
use distributary::proto::xds::core::v3::ContextParams;

use crate::stage::{CDS, Client, Delta, Relay, directory};

/// `a/1`, or `a[prod]/1` for clients of one `env`: a name, its constraint, and its content.
fn write(files: &Path, texts: &[&str]) {
    let one = |text: &&str| {
        let (name, content) = text.split_once('/').unwrap();
        let (name, env) = name.split_once('[').unwrap_or((name, ""));
        let called = match env.trim_end_matches(']') {
            "" => format!("name: {name}"),
            env => format!(
                "resource_name: {{name: {name}, dynamic_parameter_constraints: {{constraint: {{key: env, value: {env}}}}}}}"
            ),
        };
        format!(
            "- {{'@type': type.googleapis.com/envoy.service.discovery.v3.Resource, {called}, resource: {{'@type': {CDS}, name: \
             {name}, connect_timeout: {content}s}}}}\n"
        )
    };
    let text: String = texts.iter().map(one).collect();
    std::fs::write(files.join("new"), if text.is_empty() { "[]" } else { &text }).unwrap();
    std::fs::rename(files.join("new"), files.join("clusters.yaml")).unwrap();
}

/// Less than the stream itself has.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client and what it holds: by name, the constraint and the version.
struct Held {
    stream: Delta,
    all: BTreeMap<String, (Option<DynamicParameterConstraints>, String)>,
}

impl Held {
    async fn of(relay: &Relay, env: Option<&str>, names: &[&str]) -> Self {
        let said = |env: &str| {
            let params = [("env".to_owned(), env.to_owned())].into();
            [(CDS.to_owned(), ContextParams { params })].into()
        };
        let first = DeltaDiscoveryRequest {
            node: Some(Node {
                id: "client".to_owned(),
                dynamic_parameters: env.map(said).unwrap_or_default(),
                ..Node::default()
            }),
            type_url: CDS.to_owned(),
            resource_names_subscribe: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Default::default()
        };
        Self {
            stream: Client::connect(relay.address).await.open(&first).await,
            all: BTreeMap::new(),
        }
    }

    fn takes(&mut self, response: DeltaDiscoveryResponse) {
        for name in response.removed_resources {
            self.all.remove(&name);
        }
        for full in response.removed_resource_names {
            let same = |held: &mut (Option<_>, String)| held.0 == full.dynamic_parameter_constraints;
            if self.all.get_mut(&full.name).is_some_and(same) {
                self.all.remove(&full.name);
            }
        }
        for found in response.resources {
            let full = found.resource_name.unwrap_or_default();
            let name = if found.name.is_empty() { full.name } else { found.name };
            self.all
                .insert(name, (full.dynamic_parameter_constraints, found.version));
        }
    }

    /// The versions that it holds.
    fn versions(&self) -> BTreeMap<String, String> {
        let all = self.all.iter();
        all.map(|(name, (_, version))| (name.clone(), version.clone()))
            .collect()
    }

    /// Waits until the versions that it holds are `right`.
    async fn holds(
        &mut self,
        what: &str,
        right: impl Fn(&BTreeMap<String, String>) -> bool,
    ) -> BTreeMap<String, String> {
        while !right(&self.versions()) {
            let next = tokio::time::timeout(PATIENCE, self.stream.whole()).await;
            let response = next.unwrap_or_else(|_| panic!("{what}: nothing comes beyond {:?}", self.versions()));
            self.takes(response);
        }
        self.versions()
    }
}

/// F-16: each client holds the same at the second relay as at the first one, in both dialects between them, by wildcard and by
/// name, whatever is added, changed and removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tiers_serve_what_one_does() {
    for transport in ["delta", "sotw"] {
        let files = directory(&format!("tiers-{transport}"));
        write(&files, &["a/1", "a[prod]/2", "b[test]/3"]);
        let run = |name: &str, server: &str| {
            let text = format!(
                "upstream: {{xds_servers: [{{{server}}}]}}\nlisteners: [{{address: '127.0.0.1:0'}}]\nadmin: {{address: '127.0.0.1:0'}}\n"
            );
            Relay::run(&format!("tiers-{name}-{transport}"), &text)
        };
        let upper = run("upper", &format!("server_uri: '{}'", files.display()));
        let server = format!("server_uri: '{}', transport: {transport}", upper.address);
        let lower = run("lower", &server);
        let mut clients = Vec::new();
        for env in [Some("prod"), Some("test"), Some("other"), None] {
            for names in [&["*"][..], &["a", "b"]] {
                let here = Held::of(&upper, env, names).await;
                let below = Held::of(&lower, env, names).await;
                clients.push((format!("{transport} {env:?} {names:?}"), env, here, below));
            }
        }
        for (step, all, expected) in [
            (1, &["a/1", "a[prod]/2", "b[test]/3"][..], [1, 2, 1]),
            (2, &["a/1", "a[prod]/4", "a[test]/5", "b[test]/3", "b/6"], [2, 2, 2]),
            (3, &["a/7", "a[test]/5", "b/6"], [2, 2, 2]),
            (4, &["a[test]/8", "b[prod]/9"], [1, 1, 0]),
            (5, &["b/10", "b[prod]/11"], [1, 1, 1]),
            (6, &[], [0, 0, 0]),
        ] {
            write(&files, all);
            for (who, env, here, below) in &mut clients {
                let count = match env {
                    Some("prod") => expected[0],
                    Some("test") => expected[1],
                    Some(_) | None => expected[2],
                };
                let before = here.versions();
                let what = format!("{who}: step {step} of the first");
                let right = |held: &BTreeMap<String, String>| {
                    held.len() == count && (step < 2 || *held != before || count == 0)
                };
                let here = here.holds(&what, right).await;
                below
                    .holds(&format!("{who}: step {step} of the second"), |held| *held == here)
                    .await;
            }
        }
    }
}
