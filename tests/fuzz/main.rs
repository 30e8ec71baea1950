// SPDX-License-Identifier: Apache-2.0
//! The inputs that the fuzzer begins with, and what is near to them, given to each of its targets without the fuzzer.
//!
//! Owns what is near: the input cut off at many places, and with one byte changed. Finds nothing new: `tests/fuzz/run` does.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a target says by a panic what is wrong"
)]

#[path = "targets/bootstrap.rs"]
mod bootstrap;
#[path = "targets/config.rs"]
mod config;
#[path = "targets/file.rs"]
mod file;
#[path = "targets/message.rs"]
mod message;
#[path = "targets/poll.rs"]
mod poll;
#[path = "targets/proxy.rs"]
mod proxy;
#[path = "targets/rules.rs"]
mod rules;
#[path = "targets/text.rs"]
mod text;
#[path = "targets/token.rs"]
mod token;

use std::fs;
use std::path::Path;

use distributary::json::{Bounds, Schemas, Tree, Unknown};

/// As many places of an input are changed.
const PLACES: usize = 24;

/// The contents of the files in a folder of the repository.
fn seeds(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry of a folder").path());
    let mut files: Vec<_> = paths.filter(|path| path.is_file()).collect();
    files.sort();
    assert!(!files.is_empty(), "{}: no seed", folder.display());
    files
        .iter()
        .map(|path| fs::read(path).expect("a seed can be read"))
        .collect()
}

/// Gives a target each of these inputs, and what is near to it.
fn replay(run: fn(&[u8]), inputs: &[Vec<u8>]) {
    for input in inputs {
        run(input);
        for place in 0..PLACES {
            let at = input.len() * place / PLACES;
            run(&input[..at]);
            let mut changed = input.clone();
            if let Some(byte) = changed.get_mut(at) {
                *byte ^= 1 << (place % 8);
            }
            run(&changed);
        }
    }
}

/// These inputs, each behind each of so many first bytes, by which a target chooses.
fn chosen(inputs: &[Vec<u8>], choices: u8) -> Vec<Vec<u8>> {
    let each =
        |input: &Vec<u8>| -> Vec<Vec<u8>> { (0..choices).map(|choice| [&[choice], &input[..]].concat()).collect() };
    inputs.iter().flat_map(each).collect()
}

/// The same resources as messages.
fn messages(texts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let schemas = Schemas::standard();
    let read = |text: &Vec<u8>| {
        let tree = Tree::json(text, Bounds::FILE).ok()?;
        Some(schemas.resource(&tree, "", Unknown::Ignore).ok()?.value.value.to_vec())
    };
    texts.iter().filter_map(read).collect()
}

const RESOURCES: &str = "tests/json/golden";

#[test]
fn bootstraps() {
    replay(bootstrap::run, &seeds("tests/fuzz/seeds/bootstrap"));
}

#[test]
fn configurations() {
    replay(config::run, &seeds("tests/fuzz/seeds/config"));
}

#[test]
fn files() {
    replay(file::run, &chosen(&seeds(RESOURCES), 8));
}

#[test]
fn discovery_messages() {
    let messages = messages(&seeds(RESOURCES));
    assert!(!messages.is_empty(), "no resource can be read");
    replay(message::run, &chosen(&messages, 8));
}

#[test]
fn polls() {
    replay(poll::run, &seeds(RESOURCES));
}

#[test]
fn headers_of_balancers() {
    replay(proxy::run, &seeds("tests/fuzz/seeds/proxy"));
}

#[test]
fn lists_of_rules() {
    replay(rules::run, &seeds("tests/fuzz/seeds/rules"));
}

#[test]
fn texts() {
    replay(text::run, &seeds(RESOURCES));
}

#[test]
fn tokens() {
    replay(token::run, &seeds("tests/fuzz/seeds/token"));
}
