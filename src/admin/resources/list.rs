// SPDX-License-Identifier: Apache-2.0
//! The list of all that the relay has of its control planes.
//!
//! Owns what a query chooses, and that a page of names is taken at a time. A sorted list is bounded, because all names are compared for it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::listed;
use crate::admin::Shown;
use crate::admin::forms::{self, Answered, Asked, Refused};
use crate::admin::written::{self, Page};
use crate::census::{Cached, Census, Entry};
use crate::classes::Pattern;
use crate::clock::WallClock;
use crate::xds::{Name, TypeUrl};

/// The query.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct ResourcesQuery {
    #[serde(rename = "type")]
    type_url: Option<String>,
    class: Option<String>,
    name: Option<String>,
    state: Option<String>,
    sort: Option<Sort>,
    limit: Option<usize>,
}

/// What comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sort {
    /// What has arrived last.
    Age,
    /// What is largest.
    Size,
}

/// How many names a sorted list has, unless the query says so.
const SORTED: usize = 1000;
/// How many it may have.
const SORTED_MAX: usize = 10_000;

/// How many names are taken at a time.
const PAGE: usize = 256;
/// What stands before a line, apart from the first of its type.
const SEPARATOR: &str = ",\n";

/// An answer that is being written.
struct List {
    clock: WallClock,
    class: Option<Pattern>,
    name: Option<Pattern>,
    state: Option<Cached>,
    sort: Option<Sort>,
    /// How many more may be shown.
    room: usize,
    /// Whether there were more than that.
    cut: bool,
}

pub(in crate::admin) async fn answer(State(shown): State<Shown>, Asked(wanted): Asked<ResourcesQuery>) -> Answered {
    let census = shown.status.census().clone();
    let (whom, list) = (
        forms::whom(None, None, wanted.type_url.as_deref())?,
        List::new(&wanted)?,
    );
    let questions = shown.status.questions();
    written::answer(questions, "application/json", |page| {
        list.write(census, whom.type_url, page)
    })
    .await
}

/// The place in a sorted list: first by what it is sorted by, then by name.
type Rank = (Reverse<Option<Instant>>, Reverse<usize>, Option<Name>);

impl Sort {
    fn rank(self, entry: &Entry) -> Rank {
        let content = entry.resource.as_ref();
        let (received, bytes) = match self {
            Self::Age => (content.map(|content| content.received()), 0),
            Self::Size => (None, content.map_or(0, |content| content.weight())),
        };
        (Reverse(received), Reverse(bytes), entry.name.clone())
    }
}

/// Reads a state.
fn state(word: &str) -> Result<Cached, Refused> {
    Cached::called(word).ok_or_else(|| {
        let words = Cached::ALL.map(Cached::word);
        forms::wrong(format!("state: write one of {}\n", words.join(", ")))
    })
}

impl List {
    fn new(wanted: &ResourcesQuery) -> Result<Self, Refused> {
        let pattern = |key: &str, text: &Option<String>| {
            let read = text.as_deref().map(Pattern::read).transpose();
            read.map_err(|fault| forms::wrong(format!("{key}: {fault}\n")))
        };
        Ok(Self {
            clock: WallClock::read(),
            class: pattern("class", &wanted.class)?,
            name: pattern("name", &wanted.name)?,
            state: wanted.state.as_deref().map(state).transpose()?,
            sort: wanted.sort,
            room: match wanted.sort {
                Some(_) => wanted.limit.unwrap_or(SORTED).min(SORTED_MAX),
                None => wanted.limit.unwrap_or(usize::MAX),
            },
            cut: false,
        })
    }

    /// Writes the types, each with its names.
    async fn write(mut self, census: Census, asked: Option<TypeUrl>, mut page: Page) -> Page {
        let types = asked.map_or_else(|| census.types(), |asked| BTreeSet::from([asked]));
        if let Some(sort) = self.sort {
            let first = self.first(sort, &census, types).await;
            page.write(&first).await;
            return page;
        }
        page.write("{\"resources\":{").await;
        let mut comma = "";
        for type_url in types {
            let mut pages = census.entries_of(type_url.clone());
            let mut before = format!("{comma}\n{}:[\n", Value::from(type_url.full_name()));
            while !self.cut
                && let Some(entries) = pages.in_turn(PAGE).await
            {
                let class = pages.class().to_string();
                let lines = self.lines(&entries, (&class, pages.is_read()), &mut before);
                page.write(&lines).await;
            }
            // Something is written of the type.
            if before == SEPARATOR {
                page.write("\n]").await;
                comma = ",";
            }
        }
        page.write(&format!("\n}},\"more\":{}}}\n", self.cut)).await;
        page
    }

    /// Returns those that come first, by type.
    async fn first(mut self, sort: Sort, census: &Census, types: BTreeSet<TypeUrl>) -> String {
        let mut first: Vec<(Rank, (String, bool), Entry)> = Vec::new();
        let mut pages = census.entries(move |one| types.contains(one));
        while let Some(entries) = pages.in_turn(PAGE).await {
            let of = (pages.class().to_string(), pages.is_read());
            let chosen = entries.into_iter().filter(|entry| self.has(entry, &of.0));
            first.extend(chosen.map(|entry| (sort.rank(&entry), of.clone(), entry)));
            if first.len() > 2 * self.room + PAGE {
                self.keep_first(&mut first);
            }
        }
        self.keep_first(&mut first);
        let mut types: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (_, (class, is_read), entry) in &first {
            let lines = types.entry(entry.type_url.full_name()).or_default();
            lines.push(json!(listed(entry, (class, *is_read), self.clock)).to_string());
        }
        let types = types.iter();
        let types = types.map(|(name, lines)| format!("\n{}:[\n{}\n]", Value::from(*name), lines.join(SEPARATOR)));
        let types: Vec<String> = types.collect();
        format!("{{\"resources\":{{{}\n}},\"more\":{}}}\n", types.join(","), self.cut)
    }

    fn keep_first(&mut self, found: &mut Vec<(Rank, (String, bool), Entry)>) {
        found.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        self.cut |= found.len() > self.room;
        found.truncate(self.room);
    }

    /// Whether an entry is asked for.
    fn has(&self, entry: &Entry, class: &str) -> bool {
        let name = entry.name.as_ref().map_or(Name::WILDCARD, Name::as_str);
        self.class.as_ref().is_none_or(|asked| asked.matches(class))
            && self.name.as_ref().is_none_or(|asked| asked.matches(name))
            && self.state.is_none_or(|asked| asked == entry.cached)
    }

    /// Returns the lines of those that are asked for, each with what stands before it.
    fn lines(&mut self, entries: &[Entry], of: (&str, bool), before: &mut String) -> String {
        let mut text = String::new();
        for entry in entries {
            if !self.has(entry, of.0) {
                continue;
            }
            if self.room == 0 {
                self.cut = true;
                return text;
            }
            self.room -= 1;
            text.push_str(&std::mem::replace(before, SEPARATOR.to_owned()));
            text.push_str(&json!(listed(entry, of, self.clock)).to_string());
        }
        text
    }
}
