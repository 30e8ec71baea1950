// SPDX-License-Identifier: Apache-2.0
//! Files are small and begin with a description, and the root has few entries.

use crate::tree;

const LINES_MAX: usize = 400;

const LICENCE: &str = "// SPDX-License-Identifier: Apache-2.0\n";

const TOP: [&str; 18] = [
    ".cargo",
    ".ci",
    ".clippy.toml",
    ".dockerignore",
    ".github",
    ".gitignore",
    ".rustfmt.toml",
    "Cargo.lock",
    "Cargo.toml",
    "Dockerfile",
    "LICENSE",
    "README.md",
    "build.rs",
    "config",
    "loadtest",
    "proto",
    "src",
    "tests",
];

#[test]
fn files_are_small() {
    let mut large = Vec::new();
    for file in tree::files()
        .iter()
        .filter(|file| file.is("src/", ".rs") || file.is("loadtest/", ".rs"))
    {
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            large.push(format!(
                "{}: {lines} lines; split it by idea below {LINES_MAX}",
                file.path
            ));
        }
    }
    assert!(large.is_empty(), "\n{}", large.join("\n"));
}

/// In Rust, Python and scripts, above everything but the interpreter.
#[test]
fn every_file_of_code_names_its_licence() {
    let line = LICENCE.trim_start_matches("// ").trim_end();
    let files = tree::files();
    let code = files.iter().filter(|file| {
        let scripted = file.text.starts_with("#!") && !file.text.starts_with("#![");
        scripted || [".rs", ".py"].iter().any(|end| file.path.ends_with(end))
    });
    let silent: Vec<_> = code
        .filter(|file| !file.text.lines().take(2).any(|own| own.ends_with(line)))
        .map(|file| &file.path)
        .collect();
    assert!(
        silent.is_empty(),
        "begin them with `{}`: {silent:?}",
        LICENCE.trim_end()
    );
}

#[test]
fn every_module_says_what_it_is() {
    let mut silent = Vec::new();
    for file in tree::files().iter().filter(|file| file.path.ends_with(".rs")) {
        let own = file.text.strip_prefix(LICENCE).unwrap_or(&file.text);
        if !own.starts_with("//!") {
            silent.push(format!(
                "{}: begin with `//!`: what the module is, what it owns, and what it must not know",
                file.path
            ));
        }
    }
    assert!(silent.is_empty(), "\n{}", silent.join("\n"));
}

#[test]
fn the_root_is_short() {
    let strange: Vec<_> = tree::top()
        .into_iter()
        .filter(|name| !TOP.contains(&name.as_str()))
        .collect();
    assert!(
        strange.is_empty(),
        "{strange:?} in the root; put it in a folder, or ignore it if it is built"
    );
}
