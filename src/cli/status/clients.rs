// SPDX-License-Identifier: Apache-2.0
//! The table of client streams, with a column for each common type: those in trouble first, over all relays.
//!
//! Owns the columns, and which clients are asked for. The relays say how their clients are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde_json::json;

use super::Report;
use super::fault::StatusFault;
use crate::answers::{ClientRow, Clients};
use crate::cli::asking::{Relays, encoded};
use crate::get::{Tone, short};
use crate::xds::{TypeUrl, one_or_several};

/// Which clients are shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which clients")]
pub(super) struct Chosen {
    /// Only those that are rejecting, older, lagging, waiting or current
    #[arg(long, value_name = "STATE", requires = "clients", value_parser = STATES)]
    state: Option<String>,
    /// Only those of this class, as /clients shows it; * stands for any text
    #[arg(long, value_name = "CLASS", requires = "clients")]
    class: Option<String>,
    /// Only those with this software and version, such as 'envoy 1.36*'
    #[arg(long, value_name = "NAME", requires = "clients")]
    software: Option<String>,
    /// Those first that have sent most requests, or most bytes of them
    #[arg(long, value_name = "ORDER", requires = "clients", value_parser = SORTS)]
    sort: Option<String>,
}

/// The states of a client stream, the worst first.
const STATES: [&str; 5] = ["rejecting", "older", "lagging", "waiting", "current"];
const NARROW: &str = "NODE STATE CLUSTER CDS LDS EDS RDS OTHERS RELAY";
const WIDE: &str = "STREAM DIALECT CLASS ADDRESS IDENTITY SOFTWARE SINCE REQUESTS BYTES SERVERS REJECTS";
const SORTS: [&str; 2] = ["requests", "request_bytes"];
/// The types that have a column.
const COMMON: [&str; 4] = ["cds", "lds", "eds", "rds"];

pub(super) fn report(relays: &Relays<'_>, chosen: &Chosen) -> Report {
    let mut report = Report::new(NARROW, WIDE);
    let path = format!("/clients?format=json{}", chosen.query());
    let seen = report.answered(relays.each(|relay| relay.json::<Clients>(&path)));
    let mut rows: Vec<(usize, &str, &str, &ClientRow)> = Vec::new();
    for (relay, clients) in &seen {
        let Some(clients) = clients else { continue };
        let mut rejecting = 0;
        let mut listed = Vec::new();
        for client in &clients.clients {
            rejecting += usize::from(client.types.values().any(|one| one.status == "ERROR"));
            rows.push((rank(client), &client.node.id, relay, client));
            let types = client.types.iter().map(|(name, one)| (name, &one.status));
            let read = client.types.iter();
            let servers = read.filter_map(|(name, one)| Some((name, one.server.as_ref()?)));
            listed.push(json!({
                "stream": client.stream,
                "node": client.node.id,
                "cluster": client.node.cluster,
                "software": client.node.user_agent_name,
                "identity": client.identity,
                "class": client.class,
                "address": client.address,
                "dialect": client.dialect,
                "since": client.since,
                "requests": client.requests,
                "request_bytes": client.request_bytes,
                "state": client.state,
                "types": types.collect::<BTreeMap<_, _>>(),
                "servers": servers.collect::<BTreeMap<_, _>>(),
            }));
        }
        let reject = one_or_several(["client stream rejects", "client streams reject"], rejecting);
        if rejecting > 0 {
            let words =
                format!("{relay}: {rejecting} {reject} something; `distributary status --nacks` shows what to mend");
            report.faults.push(StatusFault::new(format!("nacks {relay}"), words));
        }
        if clients.end.unanswered > 0 {
            let words = format!(
                "{relay}: clients that are not listed, because they were busy: {}; ask again",
                clients.end.unanswered
            );
            report
                .faults
                .push(StatusFault::new(format!("unanswered {relay}"), words));
        }
        report.relays.push(json!({ "relay": relay, "clients": listed }));
    }
    // Each relay has this order already; a stable sort keeps it among equal ones.
    rows.sort_by_key(|(rank, node, relay, client)| (chosen.place(client), *rank, *node, *relay));
    for (rank, _, relay, client) in rows {
        let tone = match rank {
            0 | 1 => Tone::Wrong,
            2 | 3 => Tone::Busy,
            _ => Tone::Plain,
        };
        report.table.push_in(tone, row(relay, client));
    }
    report
}

impl Chosen {
    /// Returns the place of a client by what it has sent, if that is the order.
    fn place(&self, client: &ClientRow) -> Reverse<u64> {
        Reverse(match self.sort.as_deref() {
            None => 0,
            Some("requests") => client.requests,
            Some(_) => client.request_bytes,
        })
    }

    /// Returns what is added to the query.
    fn query(&self) -> String {
        let keys = [
            ("state", &self.state),
            ("class", &self.class),
            ("software", &self.software),
            ("sort", &self.sort),
        ];
        let given = keys.into_iter().filter_map(|(key, text)| Some((key, text.as_deref()?)));
        given.map(|(key, text)| format!("&{key}={}", encoded(text))).collect()
    }
}

/// Returns the control planes from which a client reads, each with its types: `cds,lds http://a; eds http://b`.
fn servers(client: &ClientRow) -> String {
    let mut read: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (name, one) in &client.types {
        if let Some(server) = &one.server {
            let types = read.entry(server).or_default();
            types.insert(TypeUrl::new(name).word().to_owned());
        }
    }
    let each = read.into_iter().map(|(server, types)| {
        let types: Vec<String> = types.into_iter().collect();
        format!("{} {server}", types.join(","))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// Returns a client's place in the order of trouble. An older relay does not say a state.
fn rank(client: &ClientRow) -> usize {
    let known = STATES.iter().position(|state| *state == client.state);
    known.unwrap_or_else(|| match client.types.values().any(|one| one.status == "ERROR") {
        true => 0,
        false => STATES.len() - 1,
    })
}

/// Returns what the client rejects, which version and since when, and whether it was sent older content in its place.
fn rejects(client: &ClientRow) -> String {
    let types = client.types.iter();
    let all = types.flat_map(|(name, one)| {
        let both = one.rejecting.iter().map(|one| ("rejecting", one));
        let both = both.chain(one.older.iter().map(|one| ("older", one)));
        both.map(move |(state, of)| (TypeUrl::new(name).word().to_owned(), state, of))
    });
    let all = all.map(|(word, state, of)| {
        let version = short(&of.version);
        format!("{state} {word} {}@{version} since {}", of.name, of.since)
    });
    all.collect::<Vec<_>>().join(", ")
}

fn row(relay: &str, client: &ClientRow) -> Vec<String> {
    let types: Vec<(String, &str)> = client
        .types
        .iter()
        .map(|(name, one)| (TypeUrl::new(name).word().to_owned(), one.status.as_str()))
        .collect();
    let common = COMMON.iter().map(|common| {
        let found = types.iter().find(|(word, _)| word == common);
        found.map_or_else(String::new, |(_, status)| (*status).to_owned())
    });
    let others = types.iter().filter(|(word, _)| !COMMON.contains(&word.as_str()));
    let others: Vec<String> = others.map(|(word, status)| format!("{word}:{status}")).collect();
    let state = STATES.get(rank(client)).copied().unwrap_or_default().to_owned();
    let first = [client.node.id.clone(), state, client.node.cluster.clone()].into_iter();
    let wide = [
        &client.stream,
        &client.dialect,
        &client.class,
        &client.address,
        &client.identity,
        &client.node.user_agent_name,
        &client.since,
        &client.requests.to_string(),
        &client.request_bytes.to_string(),
    ];
    let rest = [others.join(","), relay.to_owned()].into_iter();
    let wide = wide.into_iter().cloned().chain([servers(client), rejects(client)]);
    first.chain(common).chain(rest).chain(wide).collect()
}
