// SPDX-License-Identifier: Apache-2.0
//! The rooms of the load tool: which may use which. Each uses only those before it, so no two files of different rooms call each other.

use crate::layers::{code, named};
use crate::tree::{self, File};

const SOURCES: &str = "loadtest/src/";

/// The rooms; each may name those before it.
const ROOMS: [&str; 9] = [
    "measure", "wire", "origin", "fleet", "subject", "dump", "report", "command", "story",
];

/// What lies beside the rooms and may name all of them.
const BESIDE: [&str; 2] = ["main.rs", "tests"];

/// The first folder or file of a path below the sources.
fn room(path: &str) -> Option<&str> {
    path.strip_prefix(SOURCES)?.split('/').next()
}

/// What a file names that its room may not name.
fn upward<'a>(file: &'a File) -> impl Iterator<Item = String> + use<'a> {
    let own = ROOMS.iter().position(|it| Some(*it) == room(&file.path));
    let above = ROOMS.get(own.unwrap_or_default() + 1..).unwrap_or_default();
    let named = named(&code(file.production()));
    let wrong = above.iter().filter(move |room| named.contains(**room));
    wrong.map(|above| format!("{}: must not use `{above}`", file.path))
}

#[test]
fn rooms_know_only_those_before_them() {
    let mut wrong = Vec::new();
    for file in tree::files().iter().filter(|file| file.is(SOURCES, ".rs")) {
        match room(&file.path) {
            Some(room) if BESIDE.contains(&room) => {}
            Some(room) if ROOMS.contains(&room) => wrong.extend(upward(file).filter(|_| !file.path.contains("/tests"))),
            _ => wrong.push(format!("{}: move it into a room: {}", file.path, ROOMS.join(", "))),
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
