//! The list of all that the relay has of its control planes.
//!
//! Owns what a query chooses, and that the answer is written while it is read: a slow reader keeps no more than a page of names.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use serde_json::Value;

use super::line;
use crate::admin::Shown;
use crate::admin::forms::{self, Wrong};
use crate::census::{Census, Entry, Pages};
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

/// An answer that is being written.
struct List {
    census: Census,
    clock: WallClock,
    class: Option<Pattern>,
    name: Option<Pattern>,
    /// How many more may be shown.
    room: usize,
    /// Whether there were more than that.
    cut: bool,
    stage: Stage,
    /// Those that are not begun.
    types: VecDeque<TypeUrl>,
    now: Option<Now>,
    /// Whether the answer has a type.
    follows: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    Names,
    Over,
}

/// The type that is being written.
struct Now {
    type_url: TypeUrl,
    pages: Pages,
    /// Whether its beginning is written.
    begun: bool,
}

pub(super) async fn answer(State(shown): State<Shown>, wanted: Result<Query<Wanted>, QueryRejection>) -> Response {
    let Ok(Query(wanted)) = wanted else {
        return forms::bad(USAGE);
    };
    let list = match List::new(shown.status.census().clone(), &wanted) {
        Ok(list) => list,
        Err(wrong) => return wrong.into_response(),
    };
    let body = Body::from_stream(stream::unfold(list, |mut list| async {
        let text = list.next().await?;
        Some((Ok::<_, Infallible>(text), list))
    }));
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

impl List {
    fn new(census: Census, wanted: &Wanted) -> Result<Self, Wrong> {
        let pattern = |key: &str, text: &Option<String>| {
            let read = text.as_deref().map(Pattern::read).transpose();
            read.map_err(|fault| forms::wrong(format!("{key}: {fault}\n")))
        };
        let asked = wanted.type_url.as_deref().map(str::parse).transpose();
        let asked = asked.map_err(|NoType| forms::wrong(format!("type: {NoType}\n")))?;
        let mut list = Self {
            clock: WallClock::read(),
            class: pattern("class", &wanted.class)?,
            name: pattern("name", &wanted.name)?,
            room: wanted.limit.unwrap_or(usize::MAX),
            cut: false,
            stage: Stage::Start,
            types: asked.into_iter().collect(),
            now: None,
            follows: false,
            census,
        };
        if wanted.type_url.is_none() {
            list.types = list.census.types().into_iter().collect();
        }
        Ok(list)
    }

    /// Returns the next part of the answer.
    async fn next(&mut self) -> Option<String> {
        match self.stage {
            Stage::Start => {
                self.stage = Stage::Names;
                Some("{\"resources\":{".to_owned())
            }
            Stage::Names => {
                let names = self.names().await;
                if names.is_none() {
                    self.stage = Stage::Over;
                }
                Some(names.unwrap_or_else(|| format!("\n}},\"more\":{}}}\n", self.cut)))
            }
            Stage::Over => None,
        }
    }

    /// Returns the names of a page, or the end of a type.
    async fn names(&mut self) -> Option<String> {
        loop {
            let mut now = match self.now.take() {
                Some(now) => now,
                None => self.begin()?,
            };
            // Others who ask get their turn.
            tokio::task::yield_now().await;
            let page = now.pages.next(PAGE);
            let mut text = self.lines(&mut now, &page);
            if self.cut {
                self.types.clear();
            }
            if page.is_empty() || self.cut {
                text.push_str(if now.begun { "\n]" } else { "" });
            } else {
                self.now = Some(now);
            }
            if !text.is_empty() {
                return Some(text);
            }
        }
    }

    fn begin(&mut self) -> Option<Now> {
        let type_url = self.types.pop_front()?;
        let chosen = type_url.clone();
        Some(Now {
            pages: self.census.entries(move |one| *one == chosen),
            type_url,
            begun: false,
        })
    }

    /// Returns the lines of those that are asked for, each with what stands before it.
    fn lines(&mut self, now: &mut Now, page: &[Entry]) -> String {
        let mut text = String::new();
        let class = now.pages.class().to_string();
        if self.class.as_ref().is_some_and(|asked| !asked.matches(&class)) {
            return text;
        }
        for entry in page {
            let name = entry.name.as_ref().map_or(Name::WILDCARD, Name::as_str);
            if self.name.as_ref().is_some_and(|asked| !asked.matches(name)) {
                continue;
            }
            if self.room == 0 {
                self.cut = true;
                return text;
            }
            self.room -= 1;
            text.push_str(&self.separator(now));
            text.push_str(&line(entry, &class, self.clock).to_string());
        }
        text
    }

    fn separator(&mut self, now: &mut Now) -> String {
        if std::mem::replace(&mut now.begun, true) {
            return ",\n".to_owned();
        }
        let comma = if std::mem::replace(&mut self.follows, true) {
            ","
        } else {
            ""
        };
        format!("{comma}\n{}:[\n", Value::from(now.type_url.full_name()))
    }
}
