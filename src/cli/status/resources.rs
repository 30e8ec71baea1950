// SPDX-License-Identifier: Apache-2.0
//! The table of resources: each content once, and which relays have it.
//!
//! Owns the columns. What differs is in `compare`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Report;
use super::compare::{self, ContentKey, ViewDifference};
use crate::answers::{ResourceRow, Resources, ViewList};
use crate::cli::asking::Relays;
use crate::get::short;
use crate::xds::TypeUrl;

const NARROW: &str = "TYPE NAME STATE VERSION CONTENT RELAYS";
const WIDE: &str = "CLASS BYTES RECEIVED WHOLE-VERSION ERROR";

/// One content under a key, and the relays that have it.
struct Line<'a> {
    one: &'a ResourceRow,
    relays: Vec<&'a str>,
}

pub(super) fn report(relays: &Relays<'_>) -> Report {
    let mut report = Report::new(NARROW, WIDE);
    let seen = relays.each(|relay| Ok((relay.json("/views")?, relay.json("/resources")?)));
    let seen = report.answered(seen);
    let relays: Vec<String> = seen.iter().map(|(relay, _)| relay.clone()).collect();
    let (views, listed): (Vec<Option<ViewList>>, Vec<Option<Resources>>) =
        seen.into_iter().map(|(_, seen)| seen.unzip()).unzip();
    let answered = listed.iter().flatten().count();
    let rows = compare::rows(listed);
    let differences = compare::differences(&rows, &views);
    let differing: BTreeMap<&ContentKey, &ViewDifference> = differences.iter().map(|one| (&one.key, one)).collect();
    let mut resources = Vec::new();
    for (key, row) in &rows {
        let mut contents: BTreeMap<(Option<&str>, &str), Line<'_>> = BTreeMap::new();
        for (relay, cell) in relays.iter().zip(row) {
            for one in cell {
                let relays = Vec::new();
                let line = contents.entry((one.digest.as_deref(), &one.state));
                let line = line.or_insert(Line { one, relays });
                if !line.relays.contains(&relay.as_str()) {
                    line.relays.push(relay);
                }
            }
        }
        let having = row.iter().filter(|cell| !cell.is_empty()).count();
        let content = match (differing.contains_key(key), having) {
            (true, _) => "differs",
            (false, 0 | 1) => "",
            (false, _) => "same",
        };
        for line in contents.into_values() {
            report.table.push(line.cells(key, content, answered));
            resources.push(line.json(key, content));
        }
    }
    report.json.insert("resources".to_owned(), resources.into());
    report.faults.extend(differences.iter().map(|one| one.fault(&relays)));
    report
}

impl Line<'_> {
    fn cells(&self, key: &ContentKey, content: &str, answered: usize) -> Vec<String> {
        let Line { one, relays } = self;
        let digest = one.digest.clone().unwrap_or_default();
        let all = relays.len() == answered;
        vec![
            TypeUrl::new(&key.type_url).word().to_owned(),
            key.name.clone(),
            one.state.clone(),
            short(&digest),
            content.to_owned(),
            if all { "all".to_owned() } else { relays.join(",") },
            key.class.clone(),
            one.bytes.map_or_else(String::new, |bytes| bytes.to_string()),
            one.received.clone().unwrap_or_default(),
            digest,
            one.error.clone().unwrap_or_default(),
        ]
    }

    fn json(&self, key: &ContentKey, content: &str) -> Value {
        let Line { one, relays } = self;
        json!({
            "type": key.type_url,
            "name": key.name,
            "class": key.class,
            "state": one.state,
            "digest": one.digest,
            "bytes": one.bytes,
            "received": one.received,
            "error": one.error,
            "content": if content.is_empty() { Value::Null } else { content.into() },
            "relays": relays,
        })
    }
}
