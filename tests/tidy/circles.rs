// SPDX-License-Identifier: Apache-2.0
//! The files of one type of the session machine call each other in one direction: none of them needs those that need it.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{self, File};
use crate::types::{MACHINE, after_generics, identifier, items, production};

/// The methods that a file has of one type, and those of the same value that it calls.
#[derive(Debug, Default, PartialEq, Eq)]
struct Part<'a> {
    has: BTreeSet<&'a str>,
    calls: BTreeSet<&'a str>,
}

/// The parts of types in a text, by type.
fn parts(text: &str) -> BTreeMap<&str, Part<'_>> {
    let mut found: BTreeMap<&str, Part<'_>> = BTreeMap::new();
    let mut at = 0;
    for item in items(text) {
        let len: usize = item.iter().map(|line| line.len() + 1).sum();
        let whole = text.get(at..text.len().min(at + len)).unwrap_or_default();
        at += len;
        let Some(head) = item.iter().find_map(|line| line.strip_prefix("impl")) else {
            continue;
        };
        let head = after_generics(head);
        let of = head.split_once(" for ").map_or(head, |(_, of)| of);
        let part = found.entry(identifier(of.trim_start())).or_default();
        let has = item.iter().filter_map(|line| line.split_once("fn "));
        part.has.extend(has.map(|(_, rest)| identifier(rest)));
        for (word, dot) in [("self", "."), ("Self", "::")] {
            let after = whole.split(word).skip(1);
            let called = after.filter_map(|rest| rest.trim_start().strip_prefix(dot));
            let called = called.filter(|rest| {
                rest.get(identifier(rest).len()..)
                    .is_some_and(|rest| rest.starts_with('('))
            });
            part.calls.extend(called.map(identifier));
        }
    }
    found
}

/// The files of one type that call each other in a circle.
fn circle<'a>(files: &'a [File], of: &str) -> Vec<&'a str> {
    let mut left: BTreeMap<&str, Part<'_>> = BTreeMap::new();
    for file in files {
        left.extend(
            parts(production(file))
                .remove(of)
                .map(|part| (file.path.as_str(), part)),
        );
    }
    // What calls no other file that is left is in no circle.
    loop {
        let calls = |path: &str, part: &Part<'_>| {
            let mut others = left.iter().filter(|(other, _)| **other != path);
            others.any(|(_, other)| !part.has.is_superset(&(&part.calls & &other.has)))
        };
        let outer: Vec<&str> = left
            .iter()
            .filter(|(path, part)| !calls(path, part))
            .map(|(path, _)| *path)
            .collect();
        if outer.is_empty() {
            return left.into_keys().collect();
        }
        outer.iter().for_each(|path| _ = left.remove(path));
    }
}

#[test]
fn files_of_a_type_call_each_other_in_one_direction() {
    let mut files = tree::files();
    files.retain(|file| file.is(MACHINE, ".rs") && !file.path.ends_with("/tests.rs"));
    let types: BTreeSet<String> = files
        .iter()
        .flat_map(|file| parts(production(file)).into_keys())
        .map(str::to_owned)
        .collect();
    let circles = types.iter().map(|of| (of, circle(&files, of)));
    let wrong: Vec<String> = circles
        .filter(|(_, files)| !files.is_empty())
        .map(|(of, files)| format!("{of}: {}", files.join(", ")))
        .collect();
    assert!(
        wrong.is_empty(),
        "these files, or some of them, call each other in a circle:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_circle_is_found() {
    let file = |path: &str, text: &str| File {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let one = "impl A {\n    fn one(&self) {\n        self\n            .two();\n        other.three();\n    }\n}\n";
    let two = "impl<'a> A<'a> {\n    pub fn two(&self) {\n        Self::three(self.field);\n    }\n}\n";
    let three = |calls: &str| {
        file(
            "three",
            &format!("impl A {{\n    fn three(&self) {{\n        self.{calls}();\n    }}\n}}\n"),
        )
    };
    let files = |calls: &str| [file("one", one), file("two", two), three(calls)];
    assert_eq!(circle(&files("four"), "A"), [""; 0]);
    // Who calls into a circle is listed with it.
    assert_eq!(circle(&files("two"), "A"), ["one", "three", "two"]);
}
