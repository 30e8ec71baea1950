// SPDX-License-Identifier: Apache-2.0
//! The process: what it runs with, since when, and where clients reach it.
//!
//! Owns `/server_info`, `/listeners` and `/memory`, in the forms of Envoy. Reads the memory from the system.

use std::fs::read_to_string;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::forms::{self, AnswerForm, Answered, Asked, Formatted};
use super::{Logging, Shown};
use crate::clock::{self, WallClock};
use crate::config::{Address, Config, hide_secrets};
use crate::telemetry::{RelayStatus, VERSION};
use crate::xds::printable;

/// The process.
#[derive(Clone)]
pub struct Process {
    started: Instant,
    file: Option<PathBuf>,
    /// The configuration in effect.
    pub config: Arc<ArcSwap<Config>>,
    /// Where clients connect, in the order of the configuration; empty until all are bound.
    pub listeners: Arc<OnceLock<Vec<Address>>>,
    /// What is logged.
    pub logging: Logging,
}

impl Process {
    /// A process that starts now, with the configuration from this file.
    #[must_use]
    pub fn new(config: Config, file: Option<PathBuf>, logging: Logging) -> Self {
        Self {
            started: clock::now(),
            file,
            config: Arc::new(ArcSwap::from_pointee(config)),
            listeners: Arc::default(),
            logging,
        }
    }
}

pub(super) async fn memory() -> Response {
    forms::json(&memory_of(&read_to_string("/proc/self/status").unwrap_or_default()))
}

pub(super) async fn server_info(State(shown): State<Shown>) -> Response {
    let uptime = WallClock::read().age(shown.process.started);
    forms::json(&shown.process.info(shown.health.status(), shown.status.node(), uptime))
}

pub(super) async fn listeners(State(shown): State<Shown>, Asked(Formatted { format }): Asked<Formatted>) -> Answered {
    let listeners = shown.process.listeners.get().map(Vec::as_slice).unwrap_or_default();
    Ok(match format {
        AnswerForm::Text => text(listeners).into_response(),
        AnswerForm::Json => forms::json(&statuses(listeners)),
    })
}

impl Process {
    /// Returns the configuration as a BootstrapConfigDump: what Envoy's Bootstrap has no field for is in an extension of it.
    pub(super) fn bootstrap(&self, mut node: Value, clock: WallClock) -> Value {
        hide_secrets(&mut node);
        let config = self.config.load();
        json!({
            "@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump",
            "bootstrap": {
                "node": node,
                "admin": { "address": forms::address(&config.admin) },
                "bootstrap_extensions": [{
                    "name": "distributary",
                    "typed_config": {
                        "@type": "type.googleapis.com/google.protobuf.Struct",
                        "value": config.written.json(),
                    },
                }],
            },
            "last_updated": clock.time(self.started),
        })
    }

    /// Returns Envoy's ServerInfo, as far as it applies.
    fn info(&self, status: RelayStatus, mut node: Value, uptime: Duration) -> Value {
        hide_secrets(&mut node);
        let config = self.config.load();
        let uptime = format!("{}s", uptime.as_secs());
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut options = json!({
            "concurrency": threads,
            "drain_time": format!("{}s", config.timers.drain.as_secs_f64()),
            "log_level": self.logging.filter(),
            "mode": "Serve",
            "service_cluster": config.node.cluster,
            "service_node": config.node.id,
        });
        if let (Some(file), Some(options)) = (&self.file, options.as_object_mut()) {
            options.insert("config_path".to_owned(), file.display().to_string().into());
        }
        json!({
            "version": VERSION,
            "state": state(status),
            "uptime_current_epoch": uptime,
            "uptime_all_epochs": uptime,
            "node": node,
            "command_line_options": options,
        })
    }
}

/// Returns Envoy's word for a status.
pub(super) const fn state(status: RelayStatus) -> &'static str {
    match status {
        RelayStatus::Starting => "PRE_INITIALIZING",
        RelayStatus::Ready => "LIVE",
        RelayStatus::Draining => "DRAINING",
    }
}

/// Returns a line for each listener: what the configuration calls it, and its address.
fn text(listeners: &[Address]) -> String {
    let lines = listeners.iter().enumerate().map(|(at, address)| {
        let address = match address {
            Address::Socket(socket) => socket.to_string(),
            Address::Unix(path) => path.display().to_string(),
        };
        format!("{}::{}\n", name(at), printable(&address))
    });
    lines.collect()
}

/// Returns the same as Envoy's Listeners.
fn statuses(listeners: &[Address]) -> Value {
    let statuses = listeners
        .iter()
        .enumerate()
        .map(|(at, address)| json!({ "name": name(at), "local_address": forms::address(address) }));
    json!({ "listener_statuses": statuses.collect::<Vec<_>>() })
}

fn name(at: usize) -> String {
    format!("listeners[{at}]")
}

/// Returns Envoy's Memory from what the kernel says of the process. What only Envoy's allocator has is 0.
fn memory_of(status: &str) -> Value {
    let bytes = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        // As in all JSON of protobuf, large numbers are text.
        kib.unwrap_or_default().saturating_mul(1024).to_string()
    };
    json!({
        "allocated": bytes("RssAnon:"),
        "heap_size": bytes("VmData:"),
        "pageheap_unmapped": "0",
        "pageheap_free": "0",
        "total_thread_cache": "0",
        "total_physical_bytes": bytes("VmRSS:"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Bounds, Schemas, Tree, Unknown};

    /// Checks that this is the JSON of a message of Envoy's API.
    fn assert_is(name: &str, json: &Value) {
        let tree = Tree::json(json.to_string().as_bytes(), Bounds::REQUEST).unwrap();
        let encoded = Schemas::standard().encode(name, &tree, "", Unknown::Deny);
        assert!(encoded.is_ok(), "{name}: {json}: {encoded:?}");
    }

    #[test]
    fn server_info_is_envoys() {
        let config = "node: {id: relay-1, cluster: edge}\nupstream: {xds_servers: [{server_uri: cp:1}]}\n";
        let config = Config::parse(config, "relay.yaml", &crate::config::Flags::default()).unwrap();
        let logging = Logging::new(|| "info".to_owned(), |_| Ok(()));
        let process = Process::new(config, Some("relay.yaml".into()), logging);
        for (status, state) in [
            (RelayStatus::Starting, "PRE_INITIALIZING"),
            (RelayStatus::Ready, "LIVE"),
            (RelayStatus::Draining, "DRAINING"),
        ] {
            let info = process.info(status, json!({ "id": "relay-1" }), Duration::from_millis(61_900));
            assert_is("envoy.admin.v3.ServerInfo", &info);
            assert_eq!(info["state"], state);
            assert_eq!(info["uptime_all_epochs"], "61s");
            assert_eq!(info["command_line_options"]["config_path"], "relay.yaml");
            assert_eq!(info["command_line_options"]["service_node"], "relay-1");
        }
    }

    #[test]
    fn the_bootstrap_is_envoys() {
        let text = "node: {id: relay-1, metadata: {TOKEN: HIDDEN}}\nupstream: {xds_servers: [{server_uri: cp:1}]}\n";
        let config = Config::parse(text, "relay.yaml", &crate::config::Flags::default()).unwrap();
        let process = Process::new(config, None, Logging::new(String::new, |_| Ok(())));
        let node = json!({ "id": "relay-1", "metadata": { "TOKEN": "HIDDEN" } });
        let dump = process.bootstrap(node, WallClock::read());
        assert_is("google.protobuf.Any", &dump);
        assert!(!dump.to_string().contains("HIDDEN"), "{dump}");
        let written = &dump["bootstrap"]["bootstrap_extensions"][0]["typed_config"]["value"];
        assert_eq!(written["upstream"]["xds_servers"][0]["server_uri"], "cp:1");
    }

    #[test]
    fn listeners_of_both_kinds() {
        let listeners = ["0.0.0.0:15010", "[::1]:1", "unix:/run/a\nb", "unix:@abstract"];
        let listeners = listeners.map(|text| Address::parse(text).unwrap());
        let lines = "listeners[0]::0.0.0.0:15010\nlisteners[1]::[::1]:1\nlisteners[2]::/run/a\\nb\n\
                     listeners[3]::@abstract\n";
        assert_eq!(text(&listeners), lines);
        let json = statuses(&listeners);
        assert_is("envoy.admin.v3.Listeners", &json);
        let address = |at: usize| &json["listener_statuses"][at]["local_address"];
        assert_eq!(address(1)["socket_address"]["address"], "::1");
        assert_eq!(address(3)["pipe"]["path"], "@abstract");
    }

    #[test]
    fn memory_is_what_the_kernel_says() {
        let shown = memory_of("Name:\tx\nVmRSS:\t    2048 kB\nRssAnon:\t    1024 kB\n");
        assert_is("envoy.admin.v3.Memory", &shown);
        let found = ["total_physical_bytes", "allocated", "heap_size"].map(|key| shown[key].clone());
        assert_eq!(found, ["2097152", "1048576", "0"]);
    }
}
