// SPDX-License-Identifier: Apache-2.0
//! The repository refers only to itself: it names no paths of the machine on which it was written, and no document elsewhere.

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
