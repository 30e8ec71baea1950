//! The list of all that the relay has of its control planes.
//!
//! Owns what a query chooses, and that a page of names is taken at a time.

use std::collections::BTreeSet;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;

use super::line;
use crate::admin::Shown;
use crate::admin::forms::{self, Wrong};
use crate::admin::written::{self, Page};
use crate::census::{Census, Entry};
use crate::clock::WallClock;
use crate::xds::{Name, NoType, Pattern, TypeUrl};

/// The query.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    #[serde(rename = "type")]
    type_url: Option<String>,
    class: Option<String>,
    name: Option<String>,
    limit: Option<usize>,
}

const USAGE: &str =
    "write /resources, with any of type=TYPE, class=CLASS, name=NAME (with * for any text) and limit=COUNT\n";

/// How many names are taken at a time.
const PAGE: usize = 256;
/// What stands before a line, apart from the first of its type.
const SEPARATOR: &str = ",\n";

/// An answer that is being written.
struct List {
    clock: WallClock,
    class: Option<Pattern>,
    name: Option<Pattern>,
    /// How many more may be shown.
    room: usize,
    /// Whether there were more than that.
    cut: bool,
}

pub(super) async fn answer(State(shown): State<Shown>, wanted: Result<Query<Wanted>, QueryRejection>) -> Response {
    let Ok(Query(wanted)) = wanted else {
        return forms::bad(USAGE);
    };
    let census = shown.status.census().clone();
    let asked = wanted.type_url.as_deref().map(str::parse).transpose();
    let asked = asked.map_err(|NoType| forms::wrong(format!("type: {NoType}\n")));
    match asked.and_then(|asked| Ok((asked, List::new(&wanted)?))) {
        Ok((asked, list)) => {
            let questions = shown.status.questions();
            written::answer(questions, "application/json", |page| list.write(census, asked, page)).await
        }
        Err(wrong) => wrong.into_response(),
    }
}

impl List {
    fn new(wanted: &Wanted) -> Result<Self, Wrong> {
        let pattern = |key: &str, text: &Option<String>| {
            let read = text.as_deref().map(Pattern::read).transpose();
            read.map_err(|fault| forms::wrong(format!("{key}: {fault}\n")))
        };
        Ok(Self {
            clock: WallClock::read(),
            class: pattern("class", &wanted.class)?,
            name: pattern("name", &wanted.name)?,
            room: wanted.limit.unwrap_or(usize::MAX),
            cut: false,
        })
    }

    /// Writes the types, each with its names.
    async fn write(mut self, census: Census, asked: Option<TypeUrl>, mut page: Page) -> Page {
        let types = asked.map_or_else(|| census.types(), |asked| BTreeSet::from([asked]));
        page.write("{\"resources\":{").await;
        let mut comma = "";
        for type_url in types {
            let chosen = type_url.clone();
            let mut pages = census.entries(move |one| *one == chosen);
            let mut before = format!("{comma}\n{}:[\n", Value::from(type_url.full_name()));
            while !self.cut {
                // Others who ask get their turn.
                tokio::task::yield_now().await;
                let entries = pages.next(PAGE);
                if entries.is_empty() {
                    break;
                }
                let class = pages.class().to_string();
                page.write(&self.lines(&entries, &class, &mut before)).await;
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

    /// Returns the lines of those that are asked for, each with what stands before it.
    fn lines(&mut self, entries: &[Entry], class: &str, before: &mut String) -> String {
        let mut text = String::new();
        if self.class.as_ref().is_some_and(|asked| !asked.matches(class)) {
            return text;
        }
        for entry in entries {
            let name = entry.name.as_ref().map_or(Name::WILDCARD, Name::as_str);
            if self.name.as_ref().is_some_and(|asked| !asked.matches(name)) {
                continue;
            }
            if self.room == 0 {
                self.cut = true;
                return text;
            }
            self.room -= 1;
            text.push_str(&std::mem::replace(before, SEPARATOR.to_owned()));
            text.push_str(&line(entry, class, self.clock).to_string());
        }
        text
    }
}
