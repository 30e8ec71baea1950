// SPDX-License-Identifier: Apache-2.0
//! The page of the admin address reads nothing that no answer says. Each of its scripts says on top which fields of which answers it reads,
//! and which properties of its own have such a name; a field that is renamed in `src/answers` is then one that nobody answers.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::tree;

/// Returns all that groups of a pattern find in a text; empty: the group found nothing.
fn found<const N: usize>(pattern: &str, text: &str) -> Vec<[String; N]> {
    let pattern = Regex::new(pattern).unwrap_or_else(|error| panic!("{error}"));
    let group =
        |found: &regex::Captures<'_>, at| found.get(at).map_or(String::new(), |group| group.as_str().to_owned());
    let all = pattern.captures_iter(text);
    all.map(|found| std::array::from_fn(|at| group(&found, at + 1)))
        .collect()
}

/// Returns the fields of each answer, as they are written.
fn answers() -> BTreeMap<String, BTreeSet<String>> {
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in tree::files().iter().filter(|file| file.is("src/answers/", ".rs")) {
        let (mut of, mut renamed) = (String::new(), String::new());
        let pattern = r#"(?m)^(?: *//.*| *(?:pub\(crate\) )?(?:struct|enum) (\w+)|.*rename = "(\w+)".*|.*?\b(\w+): )"#;
        for [name, other, field] in found(pattern, &file.text) {
            if !name.is_empty() {
                of = name;
                types.entry(of.clone()).or_default();
            } else if !other.is_empty() {
                renamed = other;
            } else if !field.is_empty() {
                let renamed = std::mem::take(&mut renamed);
                let written = if renamed.is_empty() { field } else { renamed };
                types.entry(of.clone()).or_default().insert(written);
            }
        }
    }
    types
}

/// Returns what a script says that it reads: answers, each with its fields, and its own.
fn declared(script: &str) -> Vec<(String, Vec<String>)> {
    let head = script.lines().map_while(|line| line.strip_prefix("//"));
    let all = found(r"Reads (its own|\w+) \{([\w, ]+)\}", &head.collect::<String>());
    let fields = |fields: String| fields.split(',').map(|field| field.trim().to_owned()).collect();
    all.into_iter().map(|[name, of]| (name, fields(of))).collect()
}

/// Returns a script without comments.
fn code(script: &str) -> String {
    let lines = script.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns what is behind a dot and not called.
fn read(code: &str) -> BTreeSet<String> {
    let read = found(r"[\w)\]?]\.([a-z]\w*)(\(?)", code).into_iter();
    read.filter(|[_, call]| call.is_empty()).map(|[name, _]| name).collect()
}

#[test]
fn the_page_reads_what_is_answered() {
    let (answers, files) = (answers(), tree::files());
    let known: BTreeSet<&String> = answers.values().flatten().collect();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for script in files.iter().filter(|file| file.is("src/admin/page/", ".js")) {
        let (declared, code) = (declared(&script.text), code(&script.text));
        let words: BTreeSet<String> = found(r"(\w+)", &code).into_iter().map(|[word]| word).collect();
        for (name, field) in declared
            .iter()
            .flat_map(|(name, of)| of.iter().map(move |field| (name, field)))
        {
            if name != "its own" && !answers.get(name).is_some_and(|of| of.contains(field)) {
                wrong.push(format!("{}: {name} has no field `{field}`", script.path));
            }
            if !words.contains(field) {
                wrong.push(format!("{}: it reads no `{field}`", script.path));
            }
            checked += usize::from(name != "its own");
        }
        let said: BTreeSet<&String> = declared.iter().flat_map(|(_, of)| of).collect();
        let read = read(&code);
        let unsaid = read
            .iter()
            .filter(|name| !said.is_empty() && known.contains(name) && !said.contains(name));
        wrong.extend(unsaid.map(|name| format!("{}: say of which answer `{name}` is", script.path)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(checked > 150, "only {checked} fields are checked");
}

#[test]
fn the_reader_sees_what_it_should() {
    let script = "// Reads A { a,\n//   b }\n// Reads its own { c }\nf(x.a, y?.b, z.g());\n  // z.i\n";
    let said = [("A", vec!["a", "b"]), ("its own", vec!["c"])];
    let said = said.map(|(name, of)| (name.to_owned(), of.into_iter().map(str::to_owned).collect()));
    assert_eq!(declared(script), said);
    let names: Vec<String> = read(&code(script)).into_iter().collect();
    assert_eq!(names.join(" "), "a b");
}
