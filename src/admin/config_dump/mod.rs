// SPDX-License-Identifier: Apache-2.0
//! `/config_dump`: what the relay runs with and what it has of its control planes, as Envoy's ConfigDump.
//!
//! Owns what a query chooses, and that a page of contents is taken at a time.

mod mask;
mod section;

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;

use super::Shown;
use super::forms::{self, Answered, Asked, Refused};
use super::written::{self, Page};
use crate::census::Entry;
use crate::clock::WallClock;
use crate::xds::Expression;
use mask::Mask;
use section::Section;

/// The query.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DumpQuery {
    resource: Option<String>,
    mask: Option<String>,
    name_regex: Option<String>,
    include_eds: Option<String>,
}

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
    /// What stands before the next element of the answer.
    separator: &'static str,
}

pub(super) async fn answer(State(shown): State<Shown>, Asked(wanted): Asked<DumpQuery>) -> Answered {
    let (sections, dump) = (sections(&wanted)?, Dump::new(shown, &wanted)?);
    let questions = dump.shown.status.questions().clone();
    written::answer(&questions, "application/json", |page| dump.write(sections, page)).await
}

impl Dump {
    fn new(shown: Shown, wanted: &DumpQuery) -> Result<Self, Refused> {
        let mask = wanted.mask.as_deref().map(Mask::read).transpose();
        let mask = mask.map_err(|fault| forms::wrong(format!("mask: {fault}\n")))?;
        let names = wanted.name_regex.as_deref().map(Expression::whole).transpose();
        let names = names.map_err(|fault| forms::wrong(format!("name_regex: {fault}\n")))?;
        Ok(Self {
            shown,
            clock: WallClock::read(),
            mask: mask.unwrap_or_default(),
            names,
            single: wanted.resource.is_some(),
            separator: "\n",
        })
    }

    /// Writes the relay's own configuration, unless only contents of one kind are asked for, and the sections.
    async fn write(mut self, sections: Vec<&'static Section>, mut page: Page) -> Page {
        let mut start = "{\"configs\":[".to_owned();
        if !self.single {
            let own = self.shown.process.bootstrap(self.shown.status.node(), self.clock);
            start.push_str(self.separator());
            start.push_str(&self.mask.apply(own).to_string());
        }
        page.write(&start).await;
        for section in sections {
            self.section(section, &mut page).await;
        }
        page.write("\n]}\n").await;
        page
    }

    /// Returns what stands before an element of the answer.
    const fn separator(&mut self) -> &'static str {
        std::mem::replace(&mut self.separator, ",\n")
    }

    async fn section(&mut self, section: &'static Section, page: &mut Page) {
        let mut pages = self.shown.status.census().pages(|type_url| section.has(type_url));
        let mut begun = false;
        while let Some(entries) = pages.in_turn(PAGE).await {
            for entry in entries {
                if let Some(text) = self.element(section, &mut begun, &entry) {
                    page.write(&text).await;
                }
            }
        }
        if begun {
            page.write("\n]}").await;
        }
    }

    /// Returns one content with what stands before it; none if it is not asked for.
    fn element(&mut self, section: &Section, begun: &mut bool, entry: &Entry) -> Option<String> {
        let name = entry.name.as_ref()?;
        if self.names.as_ref().is_some_and(|names| !names.fits(name.as_str())) {
            return None;
        }
        let content = entry.resource.as_ref();
        let content = content.map(|content| self.shown.status.content(&entry.type_url, content));
        let element = section.element(entry, content.unwrap_or_default(), self.clock);
        if self.single {
            let element = self.mask.apply(section.typed(element));
            return Some(format!("{}{element}", self.separator()));
        }
        let element = self.mask.below(section.field)?.apply(element);
        Some(match std::mem::replace(begun, true) {
            true => format!(",\n{element}"),
            false => format!("{}{}{element}", self.separator(), section.head()),
        })
    }
}

/// Returns the sections that a query chooses.
fn sections(wanted: &DumpQuery) -> Result<Vec<&'static Section>, Refused> {
    let with_endpoints = wanted.include_eds.is_some();
    match wanted.resource.as_deref() {
        Some(field) => chosen(field),
        None => Ok(Section::all()
            .filter(|section| with_endpoints || !section.is_endpoints())
            .collect()),
    }
}

/// Returns the section with this field.
fn chosen(field: &str) -> Result<Vec<&'static Section>, Refused> {
    if section::ALWAYS_EMPTY.contains(&field) {
        return Ok(Vec::new());
    }
    let found: Vec<_> = Section::all().filter(|section| section.field == field).collect();
    if found.is_empty() {
        let known: Vec<&str> = Section::all().map(|section| section.field).collect();
        let known = known.join(", ");
        let why = format!("`{field}` is not in the dump; write resource= and one of {known}\n");
        return Err(Refused::new(StatusCode::NOT_FOUND, why));
    }
    Ok(found)
}
