// SPDX-License-Identifier: Apache-2.0
//! Reads a scenario from YAML and finds all its faults at once: it reads the text again without the parts that were wrong, until no
//! part is. Owns how faults are written, each with its place. Knows no key of scenarios.

use std::collections::{BTreeMap, BTreeSet};

use distributary::json::{Bounds, Place, Tree};
use distributary::xds::meant;
use serde::de::DeserializeOwned;
use serde_saphyr::{Error, Options};

use crate::command::arguments::Setting;

/// After so many faults a text is not read any further.
const FAULTS_MAX: usize = 100;

/// A text whose parts are known by their places.
pub(super) struct Source<'a> {
    /// The file, or the name of the scenario.
    name: &'a str,
    tree: Tree,
    changes: Changes,
}

/// What flags have changed.
#[derive(Default)]
struct Changes {
    /// Other values of keys that are there.
    set: BTreeMap<Way, Tree>,
    /// Further keys of a mapping.
    added: BTreeMap<Way, Vec<(String, Tree)>>,
}

/// A part of a scenario that makes no sense: its path, such as `clients.groups[2]`, and what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    path: String,
    pub(crate) what: String,
}

/// All faults of a scenario, a line each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct Faults(pub(super) Vec<String>);

/// The way to a part of a tree: the number of an entry or item at each level.
type Way = Vec<usize>;

/// The text without the parts that were left out. Each key and each value begins on a line of its own, so that the line of an error
/// says which part it is about.
struct Rest<'a> {
    text: String,
    lines: Vec<Line>,
    changes: &'a Changes,
    /// The place of all that is written, inside of a value that a flag has set.
    at: Option<Place>,
}

struct Line {
    way: Way,
    place: Place,
    is_key: bool,
}

impl Misfit {
    pub(super) fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            what: what.into(),
        }
    }
}

impl<'a> Source<'a> {
    /// Parses a text; with `row`, the member of this name is the scenario.
    pub(super) fn parse(name: &'a str, text: &str, row: Option<&str>) -> Result<Self, Faults> {
        let tree = Tree::yaml(text.as_bytes(), Bounds::REQUEST);
        let tree = tree.map_err(|fault| Faults(vec![fault.within(name)]))?;
        let whole = Some(&tree);
        let found = row.map_or(whole, |row| tree.get(row)).cloned();
        let tree = found.ok_or_else(|| {
            let rows: Vec<_> = tree.members().into_iter().flatten().map(|(key, ..)| key).collect();
            Faults(vec![format!(
                "{name} has no scenario `{}`; it has {}",
                row.unwrap_or_default(),
                rows.join(", ")
            )])
        })?;
        let changes = Changes::default();
        Ok(Self { name, tree, changes })
    }

    /// Sets a key wherever it stands. If it stands nowhere, it is added wherever it can.
    pub(super) fn set(&mut self, setting: &Setting) -> Result<(), Faults> {
        let Setting { path, value } = setting;
        let wrong = |why: &str| Faults(vec![format!("--set {path}={value}: {why}")]);
        let mut steps = path.split('.');
        let mut parents = vec![(Way::new(), &self.tree)];
        while let Some(step) = steps.next() {
            let key = step.trim_end_matches("[]");
            let mut below = Vec::new();
            for (way, parent) in &parents {
                let mut members = parent.members().into_iter().flatten().enumerate();
                if let Some((at, (.., child))) = members.find(|(_, (name, ..))| *name == key) {
                    below.push(([way.as_slice(), &[at]].concat(), child));
                }
            }
            let rest: Vec<&str> = steps.clone().collect();
            if below.is_empty() || rest.is_empty() {
                // What lacks some keys of the path gets all of them.
                let indented = |(depth, key): (usize, &&str)| format!("{:depth$}{key}:", "");
                let lines: Vec<_> = rest.iter().enumerate().map(indented).collect();
                let text = [lines.join("\n"), value.clone()].join(" ");
                let tree = Tree::yaml(text.trim_start().as_bytes(), Bounds::REQUEST);
                let tree = tree.map_err(|fault| wrong(&fault.to_string()))?;
                parents.retain(|(_, parent)| parent.members().is_some());
                if parents.is_empty() || rest.iter().chain([&step]).any(|step| step.ends_with("[]")) {
                    return Err(wrong("there is no such place in this scenario"));
                }
                return match self.changes.take(below, parents, key, &tree) {
                    true => Ok(()),
                    false => Err(wrong("another flag sets a part of it: write both as one value")),
                };
            }
            parents = match step.ends_with("[]") {
                false => below,
                true => below.into_iter().flat_map(|(way, list)| items(&way, list)).collect(),
            };
        }
        Ok(())
    }

    /// Returns the value that the text describes.
    pub(super) fn value<T: DeserializeOwned>(&self) -> Result<T, Faults> {
        let (mut faults, mut left_out, mut incomplete) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        loop {
            let rest = Rest::of(&self.tree, &left_out, &self.changes);
            let error = match rest.parsed::<T>() {
                Ok(value) if faults.is_empty() => return Ok(value),
                Ok(_) => break,
                Err(error) => error,
            };
            let (way, place) = rest.part(&error);
            // What lacks a part that was left out need not be wrong itself.
            if !incomplete.contains(way) {
                faults.push(format!("{}:{place}: {}", self.name, message(&error)));
            }
            let Some((_, parent)) = way.split_last() else { break };
            if !matches!(error, Error::SerdeUnknownField { .. }) {
                incomplete.insert(parent.to_vec());
            }
            if !left_out.insert(way.to_vec()) || faults.len() >= FAULTS_MAX {
                break;
            }
        }
        Err(Faults(faults))
    }

    /// Returns these faults with their places.
    pub(super) fn faults(&self, misfits: &[Misfit]) -> Faults {
        let written = misfits
            .iter()
            .map(|misfit| format!("{}:{}: {}", self.name, self.place(&misfit.path), misfit.what));
        Faults(written.collect())
    }

    /// Returns the place of a part, or of the part that lacks it.
    fn place(&self, path: &str) -> Place {
        let (mut tree, mut place) = (&self.tree, self.tree.place());
        for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
            let below = match step.strip_suffix(']').and_then(|index| index.parse::<usize>().ok()) {
                Some(index) => tree
                    .items()
                    .and_then(|items| items.get(index))
                    .map(|it| (it.place(), it)),
                None => tree
                    .members()
                    .and_then(|mut members| members.find(|(key, ..)| *key == step))
                    .map(|(_, place, value)| (place, value)),
            };
            let Some(below) = below else { break };
            (place, tree) = below;
        }
        place
    }
}

impl Changes {
    /// Takes the value of a key: for those that are there, or for all mappings that lack it. Returns whether it was not taken before.
    fn take(&mut self, there: Vec<(Way, &Tree)>, lacking: Vec<(Way, &Tree)>, key: &str, value: &Tree) -> bool {
        let mut fresh = true;
        for (way, _) in lacking.into_iter().filter(|_| there.is_empty()) {
            let added = self.added.entry(way).or_default();
            fresh &= added.iter().all(|(other, _)| other != key);
            added.push((key.to_owned(), value.clone()));
        }
        for (way, _) in there {
            fresh &= self.set.insert(way, value.clone()).is_none();
        }
        fresh
    }
}

/// Returns the items of a list, each with the way to it.
fn items<'a>(way: &[usize], list: &'a Tree) -> Vec<(Way, &'a Tree)> {
    let items = list.items().unwrap_or_default().iter().enumerate();
    items.map(|(at, item)| ([way, &[at]].concat(), item)).collect()
}

impl<'a> Rest<'a> {
    fn of(tree: &Tree, left_out: &BTreeSet<Way>, changes: &'a Changes) -> Self {
        let mut rest = Self {
            text: String::new(),
            lines: Vec::new(),
            changes,
            at: None,
        };
        rest.value(tree, &mut Vec::new(), left_out);
        rest
    }

    fn line(&mut self, way: &Way, place: Place, text: &str) {
        self.lines.push(Line {
            way: way.clone(),
            place: self.at.unwrap_or(place),
            is_key: text.ends_with(':'),
        });
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Writes a value in YAML's flow style.
    fn value(&mut self, tree: &Tree, way: &mut Way, left_out: &BTreeSet<Way>) {
        let changes = self.changes;
        if let Some(other) = changes.set.get(way).filter(|_| self.at.is_none()) {
            return self.inside(tree.place(), |rest| rest.value(other, way, left_out));
        }
        let Some(members) = tree.members() else {
            return self.list(tree, way, left_out);
        };
        let own = tree.members().map_or(0, Iterator::count);
        self.line(way, tree.place(), "{");
        for (index, (key, place, value)) in members.enumerate() {
            way.push(index);
            if !left_out.contains(way) {
                self.line(way, place, &format!("{}:", quoted(key)));
                self.value(value, way, left_out);
                self.line(way, place, ",");
            }
            way.pop();
        }
        let added = changes.added.get(way).filter(|_| self.at.is_none());
        for (at, (key, value)) in added.into_iter().flatten().enumerate() {
            way.push(own + at);
            if !left_out.contains(way) {
                self.inside(tree.place(), |rest| {
                    rest.line(way, Place::default(), &format!("{}:", quoted(key)));
                    rest.value(value, way, left_out);
                    rest.line(way, Place::default(), ",");
                });
            }
            way.pop();
        }
        self.line(way, tree.place(), "}");
    }

    /// Writes what a flag has set; all of it has the place where that stands.
    fn inside(&mut self, place: Place, write: impl FnOnce(&mut Self)) {
        self.at = Some(place);
        write(self);
        self.at = None;
    }

    fn list(&mut self, tree: &Tree, way: &mut Way, left_out: &BTreeSet<Way>) {
        let Some(items) = tree.items() else {
            return self.line(way, tree.place(), &single(tree));
        };
        self.line(way, tree.place(), "[");
        for (index, item) in items.iter().enumerate() {
            way.push(index);
            if !left_out.contains(way) {
                self.value(item, way, left_out);
                self.line(way, item.place(), ",");
            }
            way.pop();
        }
        self.line(way, tree.place(), "]");
    }

    fn parsed<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let mut options = Options::default();
        options.with_snippet = false;
        options.strict_booleans = true;
        serde_saphyr::from_str_with_options(&self.text, options)
    }

    /// Returns the part that an error is about.
    fn part(&self, error: &Error) -> (&[usize], Place) {
        let line = error.location().and_then(|at| usize::try_from(at.line()).ok());
        let at = line.unwrap_or(1).saturating_sub(1);
        let Some(Line { way, place, is_key }) = self.lines.get(at).or(self.lines.first()) else {
            return (&[], Place::default());
        };
        // A mapping that lacks a key has the place of one that it has.
        let is_inside = *is_key && matches!(error, Error::SerdeMissingField { .. });
        match way.split_last().filter(|_| is_inside) {
            Some((_, whole)) => {
                let begin = self.lines.iter().find(|line| line.way == whole);
                (whole, begin.map_or(*place, |line| line.place))
            }
            None => (way, *place),
        }
    }
}

/// Returns a single value as it was written, or quoted where it cannot stand so.
fn single(tree: &Tree) -> String {
    match tree.text() {
        None => "null".to_owned(),
        Some(text) if tree.is_string() || text.contains(['[', ']', '{', '}', ',', ':', '#', '\n']) => quoted(text),
        Some(text) => text.to_owned(),
    }
}

/// Returns a text in YAML's double quotes, which take what JSON has in its.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns what is wrong. Its place stands elsewhere.
fn message(error: &Error) -> String {
    let unknown = |what: &str, word: &str, expected: &[&'static str]| match meant(word, expected.iter().copied()) {
        Some(meant) => format!("unknown {what} `{word}`; did you mean `{meant}`?"),
        None => format!("unknown {what} `{word}`, expected one of {}", expected.join(", ")),
    };
    if let Error::SerdeUnknownField { field, expected, .. } = error {
        return unknown("key", field, expected);
    }
    if let Error::SerdeUnknownVariant { variant, expected, .. } = error {
        return unknown("word", variant, expected);
    }
    if let Error::SerdeMissingField { field, .. } = error {
        return format!("the key `{field}` is missing; add it");
    }
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    match what.strip_prefix("invalid ") {
        Some("u32" | "u64") => "expected a whole number".to_owned(),
        Some("f64") => "expected a number".to_owned(),
        Some(_) | None => what.to_owned(),
    }
}
