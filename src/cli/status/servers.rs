// SPDX-License-Identifier: Apache-2.0
//! The table of control planes.
//!
//! Owns what is wrong with one. The relays say how they are.

use serde_json::{Value, json};

use super::Report;
use super::answers;
use super::fault::StatusFault;
use crate::answers::{ClusterList, ServerRow};
use crate::cli::asking::Relays;
use crate::get::Tone;
use crate::xds::authority_label;

const NARROW: &str = "RELAY AUTHORITY SERVER STATE SESSIONS RESOURCES SINCE ERROR";
const WIDE: &str = "STREAMS WAITING LACKING UNCONFIRMED WHY";

pub(super) fn report(relays: &Relays<'_>) -> Report {
    let mut report = Report::new(NARROW, WIDE);
    let seen = report.answered(relays.each(|relay| relay.json::<ClusterList>(answers::CLUSTERS)));
    for (relay, clusters) in &seen {
        let Some(clusters) = clusters else { continue };
        report.faults.extend(faults(relay, clusters));
        let mut shown = Vec::new();
        for authority in &clusters.authorities {
            for server in &authority.servers {
                let tone = if is_failing(server) { Tone::Wrong } else { Tone::Plain };
                report.table.push_in(tone, row(relay, &authority.name, server));
                let mut server = json(server);
                if let Some(fields) = server.as_object_mut() {
                    fields.insert("authority".to_owned(), authority.name.as_str().into());
                }
                shown.push(server);
            }
        }
        report.relays.push(json!({ "relay": relay, "servers": shown }));
    }
    report
}

fn row(relay: &str, authority: &str, server: &ServerRow) -> Vec<String> {
    let stale: Vec<&str> = server
        .types
        .iter()
        .filter(|(_, of)| of.stale)
        .map(|(word, _)| word.as_str())
        .collect();
    vec![
        relay.to_owned(),
        authority_label(authority).to_owned(),
        server.server.clone(),
        server.state.clone(),
        server.sessions.to_string(),
        resources(server).to_string(),
        server.since.clone().unwrap_or_default(),
        server.last_error.clone().unwrap_or_default(),
        server.streams.to_string(),
        server.watching.to_string(),
        server.lacking.count.to_string(),
        stale.join(","),
        server.why.clone(),
    ]
}

fn resources(server: &ServerRow) -> usize {
    server.types.values().map(|of| of.resources).sum()
}

pub(super) fn json(server: &ServerRow) -> Value {
    json!({
        "server": server.server,
        "state": server.state,
        "failing": is_failing(server),
        "since": server.since,
        "last_error": server.last_error,
        "streams": server.streams,
        "sessions": server.sessions,
        "watching": server.watching,
        "resources": resources(server),
        "lacking": server.lacking.count,
        "why": server.why,
    })
}

/// Whether something is wrong with it now: an error is forgotten with the next answer.
pub(super) fn is_failing(server: &ServerRow) -> bool {
    server.state == "unreachable" || server.last_error.is_some()
}

/// Returns a fault for each server that is failing; one that has several authorities is one server.
pub(super) fn faults(relay: &str, clusters: &ClusterList) -> Vec<StatusFault> {
    let servers = clusters.authorities.iter().flat_map(|authority| &authority.servers);
    let mut faults: Vec<StatusFault> = Vec::new();
    for server in servers.filter(|server| is_failing(server)) {
        let fault = StatusFault::new(
            format!("server {relay} {}", server.server),
            format!("{relay}: {}", server.why),
        );
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    faults
}
