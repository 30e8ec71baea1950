// SPDX-License-Identifier: Apache-2.0
//! The protocol rules by id. `tests/RULES.md` lists them in our own words, one on a line that begins with its id, such
//! as `- **B-15** Dropping a name forgets that it was sent.` A rule that is not obeyed yet says `(not yet)`. Code and
//! tests cite the ids.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{self, File};

const LIST: &str = "tests/RULES.md";
/// How long a rule is at most, and each detail below it: what one reads at once.
const WORDS_MAX: usize = 60;

/// The ids in a text: a letter from A to M, a dash, one or two digits, as a whole word.
fn ids(text: &str) -> BTreeSet<String> {
    let word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    let bytes = text.as_bytes();
    let mut found = BTreeSet::new();
    for (at, window) in bytes.windows(3).enumerate() {
        let [b'A'..=b'M', b'-', b'0'..=b'9'] = window else {
            continue;
        };
        let digits = bytes
            .iter()
            .skip(at + 2)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        if digits <= 2 && !word(before) && !word(bytes.get(at + 2 + digits)) {
            found.insert(text[at..at + 2 + digits].to_owned());
        }
    }
    found
}

/// The listed rules, and whether each is obeyed.
fn listed(text: &str) -> BTreeMap<String, bool> {
    let mut rules = BTreeMap::new();
    for line in text.lines() {
        let rule = line.trim_start_matches([' ', '-', '*', '|', '#', '`']);
        let end = rule
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .unwrap_or(rule.len());
        let Some(id) = ids(&rule[..end]).pop_first().filter(|id| id.len() == end) else {
            continue;
        };
        assert!(
            rules.insert(id.clone(), !line.contains("(not yet)")).is_none(),
            "{LIST} lists {id} twice"
        );
    }
    rules
}

/// The part of a file that consists of tests.
fn tests(file: &File) -> &str {
    if file.path == LIST || file.path.starts_with("tests/tidy/") {
        ""
    } else if file.path.starts_with("tests/") {
        &file.text
    } else {
        &file.text[file.production().len()..]
    }
}

#[test]
fn every_cited_rule_is_listed() {
    if !tree::exists(LIST) {
        return;
    }
    let rules = listed(&tree::read(LIST));
    let mut unknown = Vec::new();
    for file in tree::files() {
        let searched = file.is("src/", ".rs") || file.path.starts_with("tests/") || file.is("loadtest/", ".rs");
        if !searched || file.path == LIST || file.path.starts_with("tests/tidy/") {
            continue;
        }
        for id in ids(&file.text).into_iter().filter(|id| !rules.contains_key(id)) {
            unknown.push(format!("{}: {id} is not in {LIST}", file.path));
        }
    }
    assert!(unknown.is_empty(), "\n{}", unknown.join("\n"));
}

#[test]
fn every_obeyed_rule_has_a_test() {
    if !tree::exists(LIST) {
        return;
    }
    let cited: BTreeSet<String> = tree::files().iter().flat_map(|file| ids(tests(file))).collect();
    let rules = listed(&tree::read(LIST));
    assert!(
        !rules.is_empty(),
        "{LIST} lists nothing; begin a line with the id of its rule"
    );
    let untested: Vec<_> = rules
        .iter()
        .filter(|(id, obeyed)| **obeyed && !cited.contains(*id))
        .map(|(id, _)| id)
        .collect();
    assert!(
        untested.is_empty(),
        "no test cites {untested:?}; cite the rule above its test, or say (not yet) in {LIST}"
    );
}

/// Each item of the list, with its number of words.
fn lengths(text: &str) -> Vec<(String, usize)> {
    let mut items: Vec<(String, usize)> = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        let words = line.split_whitespace().filter(|word| *word != "-").count();
        match items.last_mut() {
            _ if line.starts_with("- ") => items.push((line.to_owned(), words)),
            Some((_, count)) if !line.is_empty() && !line.starts_with('#') => *count += words,
            _ => {}
        }
    }
    items
}

#[test]
fn every_rule_is_short() {
    if !tree::exists(LIST) {
        return;
    }
    let items = lengths(&tree::read(LIST));
    let long: Vec<String> = items
        .into_iter()
        .filter(|(_, words)| *words > WORDS_MAX)
        .map(|(item, words)| format!("{words} words: {item}"))
        .collect();
    assert!(
        long.is_empty(),
        "{LIST}: a rule has at most {WORDS_MAX} words; put details below it\n{}",
        long.join("\n")
    );
}

#[test]
fn the_scanner_sees_what_it_should() {
    let found = ids("B-15, (L-3) K-13: M-01 E-08/E-09; UTF-8 A-T1 A-100 X-1 sha-256 a B-2x nonce-A-1 G-");
    assert_eq!(
        found.into_iter().collect::<Vec<_>>(),
        ["B-15", "E-08", "E-09", "K-13", "L-3", "M-01"]
    );
    let rules = listed("# Rules\n\n- **B-15** Says K-13 too.\n| L-3 | text |\n* `E-08` (not yet) text\nSee B-16.\n");
    let expected = [
        ("B-15".to_owned(), true),
        ("E-08".to_owned(), false),
        ("L-3".to_owned(), true),
    ];
    assert_eq!(rules.into_iter().collect::<Vec<_>>(), expected);
    let items = lengths("# Rules\n\n- **B-15** One two\n  three.\n  - Four\n    five.\n\n## C\n\n- **C-01** Six.\n");
    assert_eq!(items.into_iter().map(|(_, words)| words).collect::<Vec<_>>(), [4, 2, 2]);
}
