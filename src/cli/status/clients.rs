//! The table of client streams, with a column for each common type.
//!
//! Owns the columns. The relays say how their clients are.

use serde_json::json;

use super::Report;
use super::answers::{self, Client};
use super::fault::Fault;
use crate::cli::asking::AdminAccess;
use crate::xds::TypeUrl;

const NARROW: [&str; 8] = ["NODE", "CLUSTER", "CDS", "LDS", "EDS", "RDS", "OTHERS", "RELAY"];
const WIDE: [&str; 7] = ["STREAM", "DIALECT", "CLASS", "ADDRESS", "IDENTITY", "SOFTWARE", "SINCE"];
/// The types that have a column.
const COMMON: [&str; 4] = ["cds", "lds", "eds", "rds"];

pub(super) fn report(access: &AdminAccess) -> Report {
    let mut report = Report::new(&NARROW, &WIDE);
    let seen = report.answered(access.each(|relay| (relay.to_string(), answers::clients(relay))));
    for (relay, clients) in &seen {
        let Some(clients) = clients else { continue };
        let mut rejecting = 0;
        let mut listed = Vec::new();
        for client in &clients.clients {
            rejecting += usize::from(client.types.values().any(|one| one.status == "ERROR"));
            report.table.push(row(relay, client));
            let types = client
                .types
                .iter()
                .map(|(name, one)| (name.clone(), one.status.as_str().into()));
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
                "types": types.collect::<serde_json::Map<_, _>>(),
            }));
        }
        if rejecting > 0 {
            let words = format!("{relay}: {rejecting} clients reject something; --nacks shows what");
            report.faults.push(Fault::new(format!("nacks {relay}"), words));
        }
        if clients.unanswered > 0 {
            let words = format!("{relay}: {} clients are not listed; they were busy", clients.unanswered);
            report.faults.push(Fault::new(format!("unanswered {relay}"), words));
        }
        report.json_relay(json!({ "relay": relay, "clients": listed }));
    }
    report
}

fn row(relay: &str, client: &Client) -> Vec<String> {
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
    let first = [client.node.id.clone(), client.node.cluster.clone()].into_iter();
    let wide = [
        &client.stream,
        &client.dialect,
        &client.class,
        &client.address,
        &client.identity,
        &client.node.user_agent_name,
        &client.since,
    ];
    let rest = [others.join(","), relay.to_owned()].into_iter();
    first
        .chain(common)
        .chain(rest)
        .chain(wide.into_iter().cloned())
        .collect()
}
