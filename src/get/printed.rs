// SPDX-License-Identifier: Apache-2.0
//! Resources in a form for people and scripts.
//!
//! Owns the four forms. Does not know where resources come from.

use std::sync::Arc;

use super::table::PrintedTable;
use crate::json::{Bounds, Fault, Schemas, Secrets, Tree};
use crate::xds::{NameRule, Resource, ServerWords, TypeUrl, WRAPPER_URL, printable, worded};

/// How resources are printed.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The form.
    pub form: Form,
    /// The schemas of types.
    pub schemas: Schemas,
    /// Whether secrets are shown.
    pub secrets: Secrets,
}

worded! {
/// The forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Names alone, one on a line.
    Name = "name",
    /// A response as YAML, which is good as a file of resources.
    Yaml = "yaml",
    /// A response as JSON.
    Json = "json",
    /// A table: names, sizes, hashes, and what the server said besides.
    Wide = "wide",
}
}

/// What happened to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Changed,
    Removed,
}

/// A text, and the errors of what could not be shown in it.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) text: String,
    pub(super) faults: Vec<String>,
}

impl Shown {
    /// Prints all resources at once.
    pub(super) fn all<'a>(
        &self,
        type_url: &TypeUrl,
        resources: impl Iterator<Item = (&'a Arc<Resource>, ServerWords)>,
    ) -> Printed {
        let mut printed = Printed::default();
        match self.form {
            Form::Name => resources.for_each(|(resource, _)| line(&mut printed.text, resource.name().as_str())),
            Form::Wide => printed.text = table(resources),
            Form::Yaml | Form::Json => {
                let bodies: Vec<String> = resources
                    .filter_map(|(resource, _)| printed.body(self, type_url, resource))
                    .collect();
                let text = format!(
                    "{{\"type_url\":{},\"resources\":[{}]}}",
                    quoted(type_url.url()),
                    bodies.join(",")
                );
                printed.tree(self.form, &text);
            }
        }
        printed
    }

    /// Prints one change. JSON takes one line, so that a script can read line by line.
    pub(super) fn changed(
        &self,
        type_url: &TypeUrl,
        change: Change,
        name: &str,
        resource: Option<(&Arc<Resource>, ServerWords)>,
    ) -> Printed {
        let mut printed = Printed::default();
        let (resource, words) = resource.unzip();
        let (word, sign) = change.said();
        match self.form {
            Form::Name => line(&mut printed.text, &format!("{sign} {name}")),
            Form::Wide => {
                let [bytes, hash, words @ ..] =
                    columns(resource.map(|resource| &**resource), words.unwrap_or_default());
                let words = words.join("  ");
                line(
                    &mut printed.text,
                    &format!("{:<8} {bytes:>10}  {hash:<32}  {words}  {name}", word),
                );
            }
            Form::Yaml => {
                let body = resource.and_then(|resource| printed.body(self, type_url, resource));
                line(&mut printed.text, &format!("--- # {word} {name}"));
                if let Some(body) = body {
                    printed.tree(self.form, &body);
                }
            }
            Form::Json => {
                let body = resource.and_then(|resource| printed.body(self, type_url, resource));
                let text = format!(
                    "{{\"change\":{},\"name\":{},\"resource\":{}}}",
                    quoted(word),
                    quoted(name),
                    body.as_deref().unwrap_or("null")
                );
                printed.text.push_str(&text);
                printed.text.push('\n');
            }
        }
        printed
    }

    /// Returns the resource as JSON. It is in its wrapper if only the wrapper has its name.
    fn json(&self, type_url: &TypeUrl, resource: &Resource) -> Result<(String, usize), Fault> {
        let json = self
            .schemas
            .resource_json(type_url.url(), &resource.body(), self.secrets)?;
        let body = String::from_utf8_lossy(&json.text).into_owned();
        // a resource without a name needs no wrapper.
        if type_url.traits().name != NameRule::Wrapper || resource.name().is_empty() {
            return Ok((body, json.unknown_fields));
        }
        let aliases: Vec<String> = resource.aliases().iter().map(|alias| quoted(alias.as_str())).collect();
        let aliases = match aliases.as_slice() {
            [] => String::new(),
            aliases => format!("\"aliases\":[{}],", aliases.join(",")),
        };
        let text = format!(
            "{{\"@type\":{},\"name\":{},{aliases}\"resource\":{body}}}",
            quoted(WRAPPER_URL),
            quoted(resource.name().as_str())
        );
        Ok((text, json.unknown_fields))
    }
}

impl Printed {
    fn body(&mut self, shown: &Shown, type_url: &TypeUrl, resource: &Resource) -> Option<String> {
        match shown.json(type_url, resource) {
            Ok((text, unknown)) => {
                if unknown > 0 {
                    let name = resource.name();
                    let fault = format!(
                        "{name}: {unknown} fields are not shown: the descriptors do not have them; see --descriptors"
                    );
                    self.faults.push(fault);
                }
                Some(text)
            }
            Err(fault) => {
                self.faults.push(format!("{}: {fault}", resource.name()));
                None
            }
        }
    }

    fn tree(&mut self, form: Form, json: &str) {
        match Tree::json(json.as_bytes(), Bounds::FILE) {
            Ok(tree) if form == Form::Yaml => self.text.push_str(&tree.to_yaml()),
            Ok(tree) => self.text.push_str(&tree.to_json()),
            Err(fault) => self.faults.push(fault.to_string()),
        }
    }
}

impl Change {
    /// Returns the word for it, and the sign.
    const fn said(self) -> (&'static str, char) {
        match self {
            Self::Added => ("added", '+'),
            Self::Changed => ("changed", '~'),
            Self::Removed => ("removed", '-'),
        }
    }
}

/// Returns a table. Only the names, at the end, may have spaces in them.
fn table<'a>(resources: impl Iterator<Item = (&'a Arc<Resource>, ServerWords)>) -> String {
    let mut table = PrintedTable::new("BYTES HASH VERSION NONCE CONTROL-PLANE NAME", "");
    for (resource, words) in resources {
        let names = std::iter::once(resource.name()).chain(resource.aliases());
        let names: Vec<String> = names.map(ToString::to_string).collect();
        table.push(columns(Some(resource), words).into_iter().chain([names.join(", ")]));
    }
    let mut text = String::new();
    table.lines(true, None).iter().for_each(|(row, _)| line(&mut text, row));
    text
}

/// Returns size, hash, and the words of the server, in a form that has no spaces and is safe to print.
fn columns(resource: Option<&Resource>, words: ServerWords) -> [String; 5] {
    let bytes = resource.map(|resource| resource.body().len().to_string());
    let hash = resource.map(|resource| resource.version().to_string());
    let said = |word: &str| match word {
        "" => "-".to_owned(),
        word => printable(word).replace(char::is_whitespace, "_"),
    };
    [
        bytes.unwrap_or_default(),
        hash.unwrap_or_default(),
        said(&words.version),
        said(&words.nonce),
        said(&words.identifier),
    ]
}

/// Appends a line for people: what it says cannot end it.
fn line(into: &mut String, text: &str) {
    into.push_str(&printable(text));
    into.push('\n');
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
