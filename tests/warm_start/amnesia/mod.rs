// SPDX-License-Identifier: Apache-2.0
//! Control planes that forget, die and return, as real ones do: what clients keep, what they lose, and who is told why. Each story
//! is an outage that the guard made, or did not see.

mod crossings;
mod migration;
mod orders;
mod restarts;
mod watcher;

use std::path::Path;

use bytes::Bytes;
use serde_json::Value;

use crate::messages::{LDS, RDS};
use crate::stage::{ANYWHERE, CDS, EDS, Relay, eventually, until};
use content::{cluster, endpoints, listener, route};
use peers::{server, state as content};
use server::Server;
use watcher::Watcher;

/// A relay of one server, whose holds last so long.
fn relay(name: &str, server: &Server, hold: &str, more: &str) -> Relay {
    Relay::telling(&format!("amnesia-{name}"), &configuration(&one(server), hold, more))
}

/// The entry of a server.
fn one(server: &Server) -> String {
    format!("{{server_uri: '{}'}}", server.address)
}

/// A configuration with these servers, in which holds last so long.
fn configuration(servers: &str, hold: &str, more: &str) -> String {
    guarded(
        servers,
        &format!("{{hold: {{endpoints: {hold}, other: {hold}}}}}"),
        more,
    )
}

fn guarded(servers: &str, guard: &str, more: &str) -> String {
    format!("upstream: {{xds_servers: [{servers}]}}\n{ANYWHERE}guard: {guard}\n{more}")
}

fn snapshots(dir: &Path) -> String {
    format!("snapshot: {{dir: '{}', interval: 50ms}}\n", dir.display())
}

/// Listeners of these numbers, each with its own address.
fn put_listeners(server: &Server, numbers: std::ops::RangeInclusive<u32>) {
    server.edit(|content| {
        for number in numbers {
            let name = format!("l{number}");
            let body = listener(&name, &format!("r{number}"), 10_000 + number);
            content.entry(LDS.to_owned()).or_default().insert(name, body);
        }
    });
}

/// Clusters of these numbers.
fn put_clusters(server: &Server, numbers: std::ops::Range<u32>) {
    server.edit(|content| {
        for number in numbers {
            let name = format!("c{number}");
            let body = cluster(&name);
            content.entry(CDS.to_owned()).or_default().insert(name, body);
        }
    });
}

/// What `/holds` says.
fn holds(relay: &Relay) -> Vec<Value> {
    relay.json("/holds?format=json")["holds"].as_array().unwrap().clone()
}

/// The names that are held of a type for a reason, with a space between.
fn held(relay: &Relay, word: &str, reason: &str) -> String {
    let mut names: Vec<String> = of(relay, word, reason)
        .iter()
        .flat_map(|hold| hold["resources"].as_array().unwrap().clone())
        .map(|resource| resource["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join(" ")
}

/// The holds of a type for a reason.
fn of(relay: &Relay, word: &str, reason: &str) -> Vec<Value> {
    let full = xds::TypeUrl::new(match word {
        "lds" => LDS,
        "rds" => RDS,
        "cds" => CDS,
        _ => EDS,
    });
    let mut all = holds(relay);
    all.retain(|hold| hold["type"] == full.full_name() && hold["reason"] == reason);
    all
}

/// Waits until these names are held.
async fn holding(relay: &Relay, word: &str, reason: &str, names: &str) {
    let what = format!("a hold of {word} {names} ({reason})");
    eventually(&what, || (held(relay, word, reason) == names).then_some(())).await;
}

/// Waits until nothing is held.
async fn nothing_held(relay: &Relay) {
    until("the end of all holds", || holds(relay).is_empty()).await;
}

/// Runs an order, and returns what it says.
fn order(relay: &Relay, words: &[&str]) -> (Option<i32>, String) {
    let words = [words, &["--reason", "a test"]].concat();
    relay.command(&words)
}

/// A listener whose route leads to these clusters, which take their endpoints from EDS.
fn put_path(server: &Server, clusters: &[&str]) {
    server.edit(|content| {
        let mut put = |kind: &str, name: &str, body: Bytes| {
            content
                .entry(kind.to_owned())
                .or_default()
                .insert(name.to_owned(), body);
        };
        put(LDS, "l", listener("l", "r", 10_000));
        put(RDS, "r", route("r", clusters));
        for name in clusters {
            put(CDS, name, cluster(name));
            put(EDS, name, endpoints(name, 2));
        }
    });
}
