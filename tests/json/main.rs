// SPDX-License-Identifier: Apache-2.0
//! JSON, YAML and text from outside: what becomes of them, in both directions, and what is said of bad ones.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bad_input;
mod descriptors;
mod every_type;
mod forms;
mod oracle;
mod rest;
mod sensitive;
mod text;
mod yaml;

use bytes::Bytes;
use distributary::json::{Bounds, Fault, Schemas, Secrets, Tree, Unknown};

fn tree(json: &str) -> Tree {
    Tree::json(json.as_bytes(), Bounds::FILE).unwrap_or_else(|fault| panic!("{json}: {fault}"))
}

/// The bytes of a message in JSON.
fn encode(name: &str, json: &str) -> Result<Bytes, Fault> {
    let tree = Tree::json(json.as_bytes(), Bounds::FILE)?;
    let parsed = Schemas::standard().encode(name, &tree, "", Unknown::Deny)?;
    assert!(parsed.warnings.is_empty());
    Ok(parsed.value)
}

fn good(name: &str, json: &str) -> Bytes {
    encode(name, json).unwrap_or_else(|fault| panic!("{name} {json}: {fault}"))
}

/// The error of a bad message.
fn complaint(name: &str, json: &str) -> String {
    encode(name, json).unwrap_err().to_string()
}

/// The JSON of a message.
fn decode(name: &str, body: &[u8]) -> String {
    let json = Schemas::standard()
        .decode(name, body, Secrets::Show)
        .unwrap_or_else(|fault| panic!("{name}: {fault}"));
    assert_eq!(json.unknown_fields, 0);
    String::from_utf8(json.text).unwrap()
}

/// Reads a message and writes it again.
fn round(name: &str, json: &str) -> String {
    decode(name, &good(name, json))
}

/// The rows of a table, one on a line: parts between arrows, in which `\n` is the end of a line.
fn rows<const PARTS: usize>(table: &str) -> Vec<[String; PARTS]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    let row = |line: &str| {
        let parts: Vec<String> = line
            .trim()
            .split(" => ")
            .map(|part| part.replace("\\n", "\n"))
            .collect();
        parts.try_into().unwrap_or_else(|_| panic!("{line}"))
    };
    lines.map(row).collect()
}
