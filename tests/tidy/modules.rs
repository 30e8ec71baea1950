// SPDX-License-Identifier: Apache-2.0
//! One style of module files, and one path to each item.

use std::collections::BTreeSet;

use crate::tree;

/// A module with parts is `x/mod.rs` with its parts beside it, never `x.rs` beside `x/`.
#[test]
fn modules_with_parts_are_folders() {
    let mut wrong = Vec::new();
    let files = tree::files();
    for path in files.iter().map(|file| &file.path) {
        let Some(module) = path.strip_suffix(".rs") else {
            continue;
        };
        let folder = format!("{module}/");
        if files.iter().any(|part| part.is(&folder, ".rs")) {
            wrong.push(format!("{path}: move it to {folder}mod.rs"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The modules that a text declares or re-exports from: the first word after each of these beginnings of a line.
fn after<'a>(text: &'a str, beginning: &str) -> BTreeSet<&'a str> {
    let rest = text.lines().filter_map(|line| line.strip_prefix(beginning));
    rest.filter_map(|rest| rest.split([';', ':', ' ']).next()).collect()
}

/// A module is either public, and its name is in the path of its items, or private, and its parent re-exports them.
#[test]
fn each_item_has_one_path() {
    let mut wrong = Vec::new();
    for file in tree::files().iter().filter(|file| file.is("src/", ".rs")) {
        for module in after(&file.text, "pub mod ").intersection(&after(&file.text, "pub use ")) {
            wrong.push(format!(
                "{}: `{module}` is public and re-exported from; make it private",
                file.path
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_scanner_sees_what_it_should() {
    let text = "pub mod a;\nmod b;\npub use a::A;\npub use b::{B, C};\n// pub mod c;\n";
    assert_eq!(after(text, "pub mod "), ["a"].into());
    assert_eq!(after(text, "pub use "), ["a", "b"].into());
}
