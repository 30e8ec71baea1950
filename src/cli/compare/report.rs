// SPDX-License-Identifier: Apache-2.0
//! What two servers say differently, in words and as JSON. Owns what was said already. Finds nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::pair::Pair;
use crate::cli::status::differs;
use crate::get::{Contents, DifferingField, ReadKey, Sides, short};
use crate::xds::{TypeUrl, one_or_several, printable};

/// What was said.
pub(super) struct Report {
    servers: [String; 2],
    /// By node and key.
    named: BTreeMap<(String, ReadKey), Named>,
    rejected: BTreeSet<(usize, String, String)>,
}

struct Named {
    sides: Sides,
    dialects: Vec<&'static str>,
    fields: Result<Vec<DifferingField>, String>,
    /// It is the same again.
    over: bool,
}

/// How many fields of a resource are listed; the others are counted.
const FIELDS_MAX: usize = 20;

impl Report {
    pub(super) const fn new(servers: [String; 2]) -> Self {
        Self {
            servers,
            named: BTreeMap::new(),
            rejected: BTreeSet::new(),
        }
    }

    /// Returns what there is to say that was not said before.
    pub(super) fn look(&mut self, pairs: &[Pair], contents: &Contents, settle: Duration, now: Instant) -> String {
        let mut told = String::new();
        for ((node, key), named) in self.named.iter_mut().filter(|(_, named)| !named.over) {
            let mut of_node = pairs.iter().filter(|pair| pair.node() == node);
            named.over = of_node.all(|pair| pair.episode(key).is_none());
            if named.over {
                let what = format!("{} {}{}", key.0.word(), key.1, of(pairs, node));
                line(&mut told, &format!("{what} is the same again"));
            }
        }
        let lasting = pairs
            .iter()
            .flat_map(|pair| pair.lasting(settle, now).map(move |key| (pair.node().to_owned(), key)));
        for (node, key) in lasting.collect::<BTreeSet<_>>() {
            let place = (node, key.clone());
            if self.named.get(&place).is_some_and(|named| !named.over) {
                continue;
            }
            let Some(named) = named(pairs, &place, contents) else {
                continue;
            };
            self.tell(pairs, &place, &named, &mut told);
            self.named.insert(place, named);
        }
        for found in pairs.iter().flat_map(Pair::rejected) {
            let (at, type_url, why) = &found;
            if !self.rejected.contains(&found) {
                let (of, server) = (TypeUrl::new(type_url), self.servers.get(*at).map_or("", String::as_str));
                line(
                    &mut told,
                    &format!("{}: {server} sends what is rejected: {why}", of.word()),
                );
                self.rejected.insert(found);
            }
        }
        told
    }

    fn tell(&self, pairs: &[Pair], (node, key): &(String, ReadKey), named: &Named, told: &mut String) {
        let mut of = of(pairs, node);
        if pairs.iter().filter(|pair| pair.node() == node).count() > named.dialects.len() {
            of = format!("{of} in {}", named.dialects.join(", "));
        }
        let contents = named.sides.iter().zip(&self.servers).map(|(side, server)| {
            let word = side.as_ref().map(|one| short(&one.version().to_string()));
            (word.unwrap_or_else(|| "nothing".to_owned()), vec![server.as_str()])
        });
        line(told, &differs(&key.0, key.1.as_str(), &of, contents));
        match &named.fields {
            Ok(fields) => {
                for DifferingField { path, values } in fields.iter().take(FIELDS_MAX) {
                    let [one, other] = values.each_ref().map(|value| value.as_deref().unwrap_or("nothing"));
                    line(told, &format!("  {path}: {one} -> {other}"));
                }
                let more = fields.len().saturating_sub(FIELDS_MAX);
                if more > 0 {
                    line(told, &format!("  ... and {more} more"));
                }
            }
            Err(why) => line(told, &format!("  {why}")),
        }
    }

    /// Returns how much was different; `None` if nothing was.
    pub(super) fn summary(&self) -> Option<String> {
        let (named, rejected) = (self.named.len(), self.rejected.len());
        let over = self.named.values().filter(|named| named.over).count();
        let mut words = Vec::new();
        for (number, said) in [
            (named, ["resource differs", "resources differ"]),
            (over, ["of them is the same again", "of them are the same again"]),
            (rejected, ["response is rejected", "responses are rejected"]),
        ] {
            words.extend((number > 0).then(|| format!("{number} {}", one_or_several(said, number))));
        }
        (!words.is_empty()).then(|| words.join(", "))
    }

    pub(super) fn json(&self, pairs: &[Pair]) -> Value {
        let differences = self.named.iter().map(|((node, key), named)| {
            let contents = named.sides.iter().zip(&self.servers);
            let contents = contents.map(|(side, server)| {
                let digests = side.iter().map(|resource| resource.version().to_string());
                json!({"digests": digests.collect::<Vec<_>>(), "at": server})
            });
            let field = |field: &DifferingField| json!({"path": field.path, "values": field.values});
            json!({
                "type": key.0.full_name(),
                "name": key.1.as_str(),
                "node": node,
                "dialects": named.dialects,
                "contents": contents.collect::<Vec<_>>(),
                "fields": named.fields.iter().flatten().map(field).collect::<Vec<_>>(),
                "reason": named.fields.as_ref().err(),
                "over": named.over,
            })
        });
        let rejected = self.rejected.iter();
        let rejected = rejected.map(|(at, of, why)| json!({"at": self.servers.get(*at), "type": of, "reason": why}));
        json!({
            "equal": self.summary().is_none(),
            "compared": compared(pairs),
            "differences": differences.collect::<Vec<_>>(),
            "rejected": rejected.collect::<Vec<_>>(),
        })
    }
}

fn named(pairs: &[Pair], (node, key): &(String, ReadKey), contents: &Contents) -> Option<Named> {
    let apart = pairs.iter().filter(|pair| pair.node() == node);
    let apart: Vec<_> = apart
        .filter_map(|pair| Some((pair.dialect(), pair.episode(key)?)))
        .collect();
    let (_, episode) = apart.first()?;
    let fields = match episode.sides() {
        [Some(one), Some(other)] => contents.fields(&key.0, one, other),
        _ => Ok(Vec::new()),
    };
    Some(Named {
        sides: episode.sides().clone(),
        dialects: apart.iter().map(|(dialect, _)| *dialect).collect(),
        fields,
        over: false,
    })
}

/// Returns for which node something is said, if there are several.
fn of(pairs: &[Pair], node: &str) -> String {
    match pairs.iter().all(|pair| pair.node() == node) {
        true => String::new(),
        false => format!(" for node {node}"),
    }
}

fn compared(pairs: &[Pair]) -> usize {
    let all = pairs
        .iter()
        .flat_map(|pair| pair.keys().into_iter().map(|key| (pair.node(), key)));
    all.collect::<BTreeSet<_>>().len()
}

/// Returns that nothing is different.
pub(super) fn equal(pairs: &[Pair]) -> String {
    let distinct = |of: fn(&Pair) -> &str| {
        let all: BTreeSet<&str> = pairs.iter().map(of).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    };
    let (nodes, dialects) = (distinct(Pair::node), distinct(|pair| pair.dialect()));
    let count = compared(pairs);
    printable(&format!("the same: {count} resources, for node {nodes}, in {dialects}")).into_owned()
}

fn line(into: &mut String, text: &str) {
    // Writing to memory cannot fail.
    let _ = writeln!(into, "{}", printable(text));
}
