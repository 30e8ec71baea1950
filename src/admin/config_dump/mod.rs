//! `/config_dump`: what the relay runs with and what it has of its control planes, as Envoy's ConfigDump.
//!
//! Owns what a query chooses, and that an answer is written while it is read: a slow reader keeps no more than a page of contents.

mod mask;
mod section;

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;

use super::Shown;
use super::forms::{self, Wrong};
use crate::census::{Entry, Pages};
use crate::clock::WallClock;
use crate::xds::Expression;
use mask::Mask;
use section::Section;

/// The query.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    resource: Option<String>,
    mask: Option<String>,
    name_regex: Option<String>,
    include_eds: Option<String>,
}

const USAGE: &str =
    "write /config_dump, with any of resource=FIELD, mask=FIELD,FIELD, name_regex=REGEX and include_eds\n";

/// How many contents are taken at a time.
const PAGE: usize = 16;

/// An answer that is being written.
struct Dump {
    shown: Shown,
    clock: WallClock,
    mask: Mask,
    names: Option<Expression>,
    /// Whether each content is an element of the answer by itself.
    single: bool,
    stage: Stage,
    /// Those that are not begun.
    sections: VecDeque<&'static Section>,
    now: Option<Now>,
    /// Whether the answer has an element.
    follows: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    Contents,
    Over,
}

/// The section that is being written.
struct Now {
    section: &'static Section,
    pages: Pages,
    page: VecDeque<Entry>,
    /// Whether its beginning is written.
    begun: bool,
}

pub(super) async fn answer(State(shown): State<Shown>, wanted: Result<Query<Wanted>, QueryRejection>) -> Response {
    let Ok(Query(wanted)) = wanted else {
        return forms::bad(USAGE);
    };
    let dump = match Dump::new(shown, &wanted) {
        Ok(dump) => dump,
        Err(wrong) => return wrong.into_response(),
    };
    let body = Body::from_stream(stream::unfold(dump, |mut dump| async {
        let text = dump.next().await?;
        Some((Ok::<_, Infallible>(text), dump))
    }));
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

impl Dump {
    fn new(shown: Shown, wanted: &Wanted) -> Result<Self, Wrong> {
        let mask = wanted.mask.as_deref().map(Mask::read).transpose();
        let mask = mask.map_err(|fault| forms::wrong(format!("mask: {fault}\n")))?;
        let names = wanted.name_regex.as_deref().map(Expression::whole).transpose();
        let names = names.map_err(|fault| forms::wrong(format!("name_regex: {fault}\n")))?;
        let with_endpoints = wanted.include_eds.is_some();
        let sections = match wanted.resource.as_deref() {
            Some(field) => chosen(field)?,
            None => Section::all()
                .filter(|section| with_endpoints || !section.is_endpoints())
                .collect(),
        };
        Ok(Self {
            shown,
            clock: WallClock::read(),
            mask: mask.unwrap_or_default(),
            names,
            single: wanted.resource.is_some(),
            stage: Stage::Start,
            sections,
            now: None,
            follows: false,
        })
    }

    /// Returns the next part of the answer.
    async fn next(&mut self) -> Option<String> {
        match self.stage {
            Stage::Start => {
                self.stage = Stage::Contents;
                Some(self.start())
            }
            Stage::Contents => {
                let content = self.content().await;
                if content.is_none() {
                    self.stage = Stage::Over;
                }
                Some(content.unwrap_or_else(|| "\n]}\n".to_owned()))
            }
            Stage::Over => None,
        }
    }

    /// Begins with the relay's own configuration, unless only contents of one kind are asked for.
    fn start(&mut self) -> String {
        let mut text = "{\"configs\":[".to_owned();
        if !self.single {
            let own = self.shown.process.bootstrap(self.shown.status.node(), self.clock);
            text.push_str(self.separator());
            text.push_str(&self.mask.apply(own).to_string());
        }
        text
    }

    /// Returns what stands before an element of the answer.
    fn separator(&mut self) -> &'static str {
        match std::mem::replace(&mut self.follows, true) {
            true => ",\n",
            false => "\n",
        }
    }

    /// Returns the next content, or the end of a section.
    async fn content(&mut self) -> Option<String> {
        loop {
            let mut now = match self.now.take() {
                Some(now) => now,
                None => self.begin(self.sections.front().copied()?),
            };
            if now.page.is_empty() {
                // Others who ask get their turn.
                tokio::task::yield_now().await;
                now.page = now.pages.next(PAGE).into();
            }
            let Some(entry) = now.page.pop_front() else {
                self.sections.pop_front();
                if now.begun {
                    return Some("\n]}".to_owned());
                }
                continue;
            };
            let text = self.element(&mut now, &entry);
            self.now = Some(now);
            if text.is_some() {
                return text;
            }
        }
    }

    fn begin(&self, section: &'static Section) -> Now {
        Now {
            section,
            pages: self.shown.status.census().pages(|type_url| section.has(type_url)),
            page: VecDeque::new(),
            begun: false,
        }
    }

    /// Returns one content with what stands before it; none if it is not asked for.
    fn element(&mut self, now: &mut Now, entry: &Entry) -> Option<String> {
        let name = entry.name.as_ref()?;
        if self.names.as_ref().is_some_and(|names| !names.fits(name.as_str())) {
            return None;
        }
        let content = entry.resource.as_ref();
        let content = content.map(|content| self.shown.status.content(&entry.type_url, content));
        let element = now.section.element(entry, content.unwrap_or_default(), self.clock);
        if self.single {
            let element = self.mask.apply(now.section.typed(element));
            return Some(format!("{}{element}", self.separator()));
        }
        let element = self.mask.below(now.section.field)?.apply(element);
        Some(match std::mem::replace(&mut now.begun, true) {
            true => format!(",\n{element}"),
            false => format!("{}{}{element}", self.separator(), now.section.head()),
        })
    }
}

/// Returns the section with this field.
fn chosen(field: &str) -> Result<VecDeque<&'static Section>, Wrong> {
    if section::ALWAYS_EMPTY.contains(&field) {
        return Ok(VecDeque::new());
    }
    let found: VecDeque<_> = Section::all().filter(|section| section.field == field).collect();
    if found.is_empty() {
        let known: Vec<&str> = Section::all().map(|section| section.field).collect();
        let known = known.join(", ");
        let why = format!("`{field}` is not in the dump; write resource= and one of {known}\n");
        return Err((StatusCode::NOT_FOUND, why));
    }
    Ok(found)
}
