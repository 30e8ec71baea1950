//! The table of what clients reject: each content once for each reason, however many relays and clients there are.
//!
//! Owns the sum over the relays. The relays say what their clients reject.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::Report;
use super::answers::{self, Rejection};
use super::fault::Fault;
use super::table::short;
use crate::cli::asking::Relays;
use crate::xds::TypeUrl;

const NARROW: [&str; 6] = ["TYPE", "NAME", "VERSION", "CLIENTS", "RELAYS", "REASON"];
const WIDE: [&str; 3] = ["WHOLE-VERSION", "SOFTWARE", "NODES"];

/// One rejection, over all relays.
#[derive(Default)]
struct Everywhere {
    clients: u64,
    relays: Vec<String>,
    software: BTreeMap<String, u64>,
    /// Some of the clients.
    nodes: BTreeSet<String>,
}

/// Type, name, version and words.
type Key = (String, String, String, String);

pub(super) fn report(relays: &Relays<'_>) -> Report {
    let mut report = Report::new(&NARROW, &WIDE);
    let seen = report.answered(relays.each(|relay| (relay.to_string(), answers::nacks(relay))));
    let mut all: BTreeMap<Key, Everywhere> = BTreeMap::new();
    for (relay, nacks) in &seen {
        let Some(nacks) = nacks else { continue };
        for rejection in &nacks.rejections {
            let version = rejection.version.clone().unwrap_or_default();
            let key = (
                rejection.type_url.clone(),
                rejection.name.clone(),
                version,
                rejection.rejection.clone(),
            );
            all.entry(key).or_default().add(relay, rejection);
        }
        if nacks.left_out > 0 {
            let words = format!("{relay}: {} more rejections are not listed", nacks.left_out);
            report.faults.push(Fault::new(format!("left out {relay}"), words));
        }
    }
    let mut listed = Vec::new();
    for ((type_url, name, version, words), everywhere) in all {
        let word = TypeUrl::new(&type_url).word().to_owned();
        let Everywhere {
            clients,
            relays,
            software,
            nodes,
        } = everywhere;
        listed.push(json!({
            "type": type_url,
            "name": name,
            "version": version,
            "rejection": words,
            "clients": clients,
            "relays": relays,
            "software": software,
            "nodes": nodes,
        }));
        let software: Vec<String> = software.iter().map(|(name, count)| format!("{name}:{count}")).collect();
        report.table.push([
            word,
            name,
            short(&version),
            clients.to_string(),
            relays.join(","),
            words,
            version,
            software.join(","),
            nodes.into_iter().collect::<Vec<_>>().join(","),
        ]);
    }
    if !listed.is_empty() {
        let words = format!("contents that clients reject: {}", listed.len());
        report.faults.push(Fault::new("nacks", words));
    }
    report.put("rejections", listed);
    report
}

impl Everywhere {
    fn add(&mut self, relay: &str, rejection: &Rejection) {
        self.clients += rejection.clients;
        self.relays.push(relay.to_owned());
        for (name, count) in &rejection.software {
            *self.software.entry(name.clone()).or_default() += count;
        }
        self.nodes.extend(rejection.some.iter().map(|one| one.node.clone()));
    }
}
