// SPDX-License-Identifier: Apache-2.0
//! The repository refers only to itself: it names no paths of the machine on which it was written, and no document elsewhere.

use crate::layers::code;
use crate::tree::{self, File};

fn prose() -> impl Iterator<Item = File> {
    tree::files()
        .into_iter()
        .filter(|file| !matches!(file.path.as_str(), "Cargo.lock" | "LICENSE"))
}

#[test]
fn no_path_of_one_machine() {
    let mut wrong = Vec::new();
    for file in prose() {
        for (at, line) in file.text.lines().enumerate() {
            for folder in ["home", "root", "tmp", "work", "Users"] {
                let path = format!("/{folder}/");
                let begins = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-}/)".contains(c));
                if line.match_indices(&path).any(|(at, _)| begins(at)) {
                    wrong.push(format!("{}:{}: {path} exists on one machine only", file.path, at + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn no_document_that_is_not_here() {
    let mut wrong = Vec::new();
    let known = |name: &str| {
        matches!(
            name,
            "CHANGELOG.md" | "CONTRIBUTING.md" | "KEYS.md" | "README.md" | "RESULTS.md" | "RULES.md" | "SECURITY.md"
        )
    };
    for file in prose() {
        for (at, line) in file.text.lines().enumerate() {
            let words = line
                .split(|c: char| !(c.is_alphanumeric() || "._/".contains(c)))
                .filter(|word| !word.is_empty());
            let words: Vec<&str> = words.collect();
            for (index, word) in words.iter().enumerate() {
                let shouted = |text: &str| text.len() > 3 && text.chars().all(|c| c.is_ascii_uppercase());
                let missing = word.strip_suffix(".md").is_some_and(shouted) && !known(word);
                let section = shouted(word) && matches!(words.get(index + 1), Some(&("section" | "sections" | "part")));
                let ticket = matches!(*word, "issue" | "Issue")
                    && words
                        .get(index + 1)
                        .is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()));
                if missing || section || ticket {
                    wrong.push(format!(
                        "{}:{}: `{word}` refers to something outside of the repository; explain it here",
                        file.path,
                        at + 1
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A log line shows a class as people know it, never as the program keeps it.
#[test]
fn classes_are_written_for_people() {
    let mut wrong = Vec::new();
    for file in tree::files().into_iter().filter(|file| file.path.starts_with("src/")) {
        for (at, line) in file.text.lines().enumerate() {
            let shown = line.trim_start();
            if shown.starts_with("?class,") || line.contains("class = ?") {
                wrong.push(format!("{}:{}: write %class", file.path, at + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Names that are not used, and the name to use instead.
const SYNONYMS: [(&str, &str); 2] = [("glob", "collection"), ("globs", "collections")];

/// Names and messages have one word for one thing.
#[test]
fn one_word_for_one_thing() {
    let mut wrong = Vec::new();
    for file in tree::files() {
        if !file.path.ends_with(".rs") || file.path.starts_with("tests/tidy/") {
            continue;
        }
        for (at, line) in code(&file.text).lines().enumerate() {
            for word in line.split(|c: char| !c.is_alphanumeric()) {
                let word = word.to_ascii_lowercase();
                for (_, better) in SYNONYMS.iter().filter(|(synonym, _)| word == *synonym) {
                    wrong.push(format!(
                        "{}:{}: write `{better}` instead of `{word}`",
                        file.path,
                        at + 1
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Names so general that only one type may have each.
const ONE_TYPE: [&str; 8] = [
    "Answer", "Found", "Kept", "Limits", "Place", "Settings", "Standing", "Turn",
];

#[test]
fn a_short_word_stands_for_one_type() {
    for name in ONE_TYPE {
        let mut types = Vec::new();
        for file in tree::files().iter().filter(|file| file.is("src/", ".rs")) {
            let code = code(&file.text);
            let words: Vec<&str> = code.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
            let defines =
                |pair: &&[&str]| matches!(pair, ["struct" | "enum" | "trait" | "type", defined] if *defined == name);
            types.extend(words.windows(2).filter(defines).map(|_| file.path.clone()));
        }
        assert!(
            types.len() <= 1,
            "`{name}` is a type in each of {types:?}; choose more specific names"
        );
    }
}
