// SPDX-License-Identifier: Apache-2.0
//! Types that change themselves: nobody else reaches into them, and each is written in one place.
//!
//! A bag that closures change counts as open, also where it has no methods. Values, options of a command line, parts of the
//! configuration and sets of metrics are exempt: they are what others read. What breaks a rule today stands in a list here, which may
//! only shrink.

use std::collections::{BTreeMap, BTreeSet};

use crate::ceilings;
use crate::tree::{self, File};

/// How many names of types stand in two rooms of `src` or more. It may only shrink.
const NAMES_IN_TWO_ROOMS: usize = 77;

/// Fields that others reach into, of types with methods that take `&mut self`: file, type, how many.
const OPEN: &[(&str, &str, usize)] = &[
    ("loadtest/src/fleet/client/lane.rs", "Lane", 4),
    ("loadtest/src/fleet/client/mod.rs", "Client", 3),
    ("loadtest/src/fleet/client/subscription/mod.rs", "Subscription", 4),
    ("loadtest/src/wire/http2/mod.rs", "Http2", 1),
    ("loadtest/src/fleet/life.rs", "Life", 8),
    ("loadtest/src/fleet/presence.rs", "Standing", 3),
    ("loadtest/src/measure/record/state.rs", "State", 10),
    ("loadtest/src/subject/relay.rs", "Relay", 1),
    ("loadtest/src/story/contender.rs", "Contender", 4),
    ("loadtest/src/story/play.rs", "Play", 7),
    ("loadtest/src/measure/tally.rs", "Tally", 11),
    ("src/app/inspection.rs", "Inspection", 2),
    ("src/config/reading.rs", "ShapeFaults", 2),
    ("src/downstream/stream/seats/bindings.rs", "Bindings", 1),
    ("src/get/printed.rs", "Printed", 2),
    ("src/json/read/mod.rs", "Reader", 1),
    ("src/protocol/client/ingest.rs", "Message", 11),
    ("src/telemetry/traces/change.rs", "TracedNews", 3),
    ("src/wire/sealed/batch.rs", "Batch", 1),
];

/// Files with methods of a type that neither define it nor lie in the folder of the module that does.
const APART: &[(&str, &str)] = &[
    ("loadtest/src/story/chaos.rs", "Play"),
    ("loadtest/src/story/check.rs", "Expect"),
    ("loadtest/src/story/check.rs", "Scenario"),
    ("loadtest/src/story/foreign.rs", "Contender"),
    ("loadtest/src/story/outside.rs", "Play"),
    ("loadtest/src/story/returning.rs", "Play"),
    ("loadtest/src/story/streams.rs", "Play"),
    ("loadtest/src/story/streams.rs", "Scenario"),
    ("src/cli/status/overview.rs", "ViewDifference"),
    ("src/downstream/overload.rs", "Shared"),
    ("src/telemetry/types.rs", "AllTypes"),
    ("src/upstream/rest/mod.rs", "Writer"),
    ("src/xds/xdstp.rs", "Name"),
];

/// Types of the rooms below with more fields than [`FIELDS_MAX`].
const LARGE: &[(&str, &str, usize)] = &[];

/// The most fields of a type of these rooms that changes itself.
const FIELDS_MAX: usize = 9;
const MACHINE: &str = "src/protocol/server/";
const FEED: &str = "src/protocol/client/feed/";
/// What is in this room changes behind locks, without `&mut self`.
const SHARED: &str = "src/cache/view/";

/// What a type derives that others read.
const READ_BY_OTHERS: [&str; 7] = [
    "PartialEq",
    "Serialize",
    "Deserialize",
    "Args",
    "Parser",
    "EncodeLabelSet",
    "Message",
];

/// A type, as its definition says.
#[derive(Debug, PartialEq, Eq)]
struct Type<'a> {
    name: &'a str,
    fields: usize,
    open: usize,
    is_read_by_others: bool,
}

/// A line without the word for who may use its item.
fn private(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else {
        return line;
    };
    let rest = rest
        .split_once(") ")
        .filter(|_| rest.starts_with('('))
        .map_or(rest, |(_, rest)| rest);
    rest.trim_start()
}

/// The part of a line up to the end of an identifier.
fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

/// The lines of a text in groups: one for each item that begins at the left margin and has a body.
fn items(text: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    let mut item = Vec::new();
    let mut has_body = false;
    for line in text.lines() {
        item.push(line);
        has_body |= !line.starts_with([' ', '#', '/']) && line.ends_with('{');
        let ends = line.is_empty() || !line.starts_with([' ', '#', '/', ')']) && line.ends_with([';', '}']);
        if line.starts_with('}') || ends && !has_body {
            found.push(std::mem::take(&mut item));
            has_body = false;
        }
    }
    found
}

/// The structs with named fields that a text defines.
fn types(text: &str) -> Vec<Type<'_>> {
    let mut found = Vec::new();
    for item in items(text) {
        let head = item.iter().find_map(|line| private(line).strip_prefix("struct "));
        let Some(name) = head.map(identifier) else { continue };
        let fields = item.iter().filter(|line| {
            let Some(field) = line.strip_prefix("    ") else {
                return false;
            };
            field.starts_with(|c: char| c.is_alphabetic() || c == '_') && field.contains(": ")
        });
        let fields: Vec<_> = fields.collect();
        let before = item.iter().take_while(|line| !private(line).starts_with("struct "));
        let mut attributes = before.filter(|line| !line.starts_with('/'));
        let derives = attributes.any(|line| READ_BY_OTHERS.iter().any(|word| line.contains(word)));
        found.push(Type {
            name,
            fields: fields.len(),
            open: fields.iter().filter(|field| field.starts_with("    pub")).count(),
            is_read_by_others: derives,
        });
    }
    found
}

/// The rest of the head of an `impl` after its own parameters.
fn after_generics(head: &str) -> &str {
    let mut depth = 0;
    let mut before = ' ';
    for (at, character) in head.char_indices() {
        match character {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return head.get(at + 1..).unwrap_or_default();
        }
        before = character;
    }
    head
}

/// The types of which a text has methods, and whether one of these takes `&mut self`.
fn methods(text: &str) -> BTreeMap<&str, bool> {
    let mut found = BTreeMap::new();
    for item in items(text) {
        let Some(head) = item.iter().find_map(|line| line.strip_prefix("impl")) else {
            continue;
        };
        let head = after_generics(head);
        if head.contains(" for ") {
            continue;
        }
        let changes = |line: &&str| line.contains("&mut self,") || line.contains("&mut self)");
        let changes = item.iter().any(changes);
        *found.entry(identifier(head.trim_start())).or_default() |= changes;
    }
    found
}

/// The types that a text hands to closures which change them.
fn opened(text: &str) -> impl Iterator<Item = &str> {
    let closures = ["Fn(&mut ", "FnMut(&mut ", "FnOnce(&mut "].into_iter();
    closures.flat_map(|closure| text.split(closure).skip(1).map(identifier))
}

/// A file without the tests at its end. Tests in a file of their own may be declared anywhere.
fn production(file: &File) -> &str {
    file.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

fn sources() -> Vec<File> {
    let mut files = tree::files();
    files.retain(|file| {
        let is_test =
            file.path.contains("/tests/") || file.path.ends_with("/tests.rs") || file.path.contains("/benches/");
        (file.is("src/", ".rs") || file.is("loadtest/", ".rs")) && !is_test
    });
    files
}

/// Whether a file belongs to the module of another: it is that file, or lies in the folder of its `mod.rs`.
fn belongs(file: &str, defining: &str) -> bool {
    file == defining
        || defining
            .strip_suffix("mod.rs")
            .is_some_and(|folder| file.starts_with(folder))
}

/// Whether a file beside the defining one hands the type to closures that change it.
fn is_opened(name: &str, defining: &File, files: &[File]) -> bool {
    let room = defining.path.rsplit_once('/').map_or("", |(room, _)| room);
    let mut beside = files.iter().filter(|file| file.path.starts_with(room));
    beside.any(|file| opened(production(file)).any(|opened| opened == name))
}

#[test]
fn nobody_reaches_into_what_changes_itself() {
    let files = sources();
    let mut found = Vec::new();
    let mut large = Vec::new();
    for file in &files {
        for one in types(production(file)) {
            let parts: Vec<_> = files.iter().filter(|part| belongs(&part.path, &file.path)).collect();
            let changes = parts
                .iter()
                .any(|part| methods(production(part)).get(one.name) == Some(&true));
            let is_large = one.fields > FIELDS_MAX && !one.is_read_by_others;
            let in_room = [MACHINE, FEED].iter().any(|room| file.path.starts_with(room));
            if is_large && (file.path.starts_with(SHARED) || changes && in_room) {
                large.push((file.path.as_str(), one.name.to_owned(), one.fields));
            }
            let is_bag = !changes && is_opened(one.name, file, &files);
            if !is_bag && (!changes || one.is_read_by_others) {
                continue;
            }
            // Closures of all files of the module reach all fields of a bag.
            let open = if is_bag && parts.len() > 1 {
                one.fields
            } else {
                one.open
            };
            if open > 0 {
                found.push((file.path.as_str(), one.name.to_owned(), open));
            }
        }
    }
    same(&found, OPEN, "fields that others reach into; make them private");
    same(&large, LARGE, "fields; divide what changes for different reasons");
}

/// Holds what was found against the list of what is known.
fn same(found: &[(&str, String, usize)], known: &[(&str, &str, usize)], what: &str) {
    let mut wrong = Vec::new();
    for (path, name, count) in found {
        if !known.contains(&(path, name, *count)) {
            wrong.push(format!("    (\"{path}\", \"{name}\", {count}), // {what}"));
        }
    }
    for (path, name, count) in known {
        if !found
            .iter()
            .any(|one| (one.0, one.1.as_str(), one.2) == (*path, *name, *count))
        {
            wrong.push(format!(
                "{path}: `{name}` has no longer {count} {what}: correct the list in tests/tidy/types.rs"
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_type_is_written_in_one_place() {
    let files = sources();
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    for file in &files {
        let own: Vec<_> = defined(production(file));
        for (name, _) in methods(production(file)) {
            let within = files.iter().filter(|other| belongs(&file.path, &other.path));
            if own.contains(&name)
                || within
                    .into_iter()
                    .any(|other| defined(production(other)).contains(&name))
            {
                continue;
            }
            if APART.contains(&(file.path.as_str(), name)) {
                seen.push((file.path.as_str(), name));
            } else {
                wrong.push(format!(
                    "    (\"{}\", \"{name}\"), // methods of a type of another module",
                    file.path
                ));
            }
        }
    }
    for gone in APART.iter().filter(|one| !seen.contains(one)) {
        wrong.push(format!(
            "{gone:?} is no exception any more: take it from the list in tests/tidy/types.rs"
        ));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The types that a text defines, of whatever kind.
fn defined(text: &str) -> Vec<&str> {
    let names = text.lines().filter_map(|line| {
        let kinds = ["struct ", "enum ", "trait ", "type "].iter();
        kinds.filter_map(|kind| private(line).strip_prefix(kind)).next()
    });
    names.map(identifier).collect()
}

/// A name that means two things makes a reader look twice.
#[test]
fn few_names_of_types_stand_in_two_rooms() {
    let files = sources();
    let mut rooms: BTreeMap<&str, BTreeSet<_>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.starts_with("src/")) {
        for name in defined(production(file)) {
            rooms.entry(name).or_default().insert(ceilings::room(&file.path));
        }
    }
    let shared: Vec<_> = rooms.iter().filter(|(_, rooms)| rooms.len() > 1).collect();
    assert_eq!(
        shared.len(),
        NAMES_IN_TWO_ROOMS,
        "give the new one a name of its own, or lower the number: {shared:?}"
    );
}

#[test]
fn the_scanner_sees_what_it_should() {
    let text = "/// A.\n#[derive(Debug)]\npub struct A<'a> {\n    /// One: x.\n    pub one: u8,\n    two: &'a str,\n}\n\nstruct B(u8);\n\n\
                #[derive(Clone, PartialEq)]\nstruct C {\n    pub(super) x: u8,\n}\n\nimpl<'a> A<'a> {\n    fn f(\n        &mut self,\n    ) {\n    }\n}\n\n\
                impl Drop for B {\n    fn drop(&mut self) {}\n}\n\nimpl B {\n    fn g(&self) {}\n}\n";
    let of = |name, fields, open, is_read_by_others| Type {
        name,
        fields,
        open,
        is_read_by_others,
    };
    assert_eq!(
        types(text),
        [of("A", 2, 1, false), of("B", 0, 0, false), of("C", 1, 1, true)]
    );
    assert_eq!(methods(text), BTreeMap::from([("A", true), ("B", false)]));
    assert_eq!(defined(text), ["A", "B", "C"]);
    let closures = "fn a(f: impl FnOnce(&mut A) -> u8) {}\nfn b(f: &mut dyn FnMut(&mut B<'_>), g: impl Fn(&C)) {}\n";
    assert_eq!(opened(closures).collect::<Vec<_>>(), ["B", "A"]);
    assert_eq!(
        ["pub(in crate::x) struct X", "pub fn f(x: X) -> Y", "pub(crate) enum Y"].map(private),
        ["struct X", "fn f(x: X) -> Y", "enum Y"]
    );
    assert!(belongs("src/a/b.rs", "src/a/mod.rs") && !belongs("src/a/b.rs", "src/a/c.rs"));
}
