// SPDX-License-Identifier: Apache-2.0
//! The repository as a set of text files. Owns the decision which files belong to it and which are built or fetched.

use std::path::{Path, PathBuf};

/// Built or fetched, and ignored by version control.
const IGNORED: [&str; 6] = [".git", "target", "node_modules", "__pycache__", ".venv", "vendor"];

/// A text file of the repository.
pub(crate) struct File {
    /// Relative to the root, with slashes.
    pub(crate) path: String,
    /// Its content.
    pub(crate) text: String,
}

impl File {
    /// Whether it lies in `folder` and ends with `suffix`.
    pub(crate) fn is(&self, folder: &str, suffix: &str) -> bool {
        self.path.starts_with(folder) && self.path.ends_with(suffix)
    }

    /// Its lines before the tests, which are at the end of a file or in one of their own.
    pub(crate) fn production(&self) -> &str {
        if self.path.ends_with("/tests.rs") {
            return "";
        }
        self.text.split("#[cfg(test)]\nmod ").next().unwrap_or_default()
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The content of a file that must exist.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn exists(path: &str) -> bool {
    root().join(path).exists()
}

/// The names in the root.
pub(crate) fn top() -> Vec<String> {
    let mut names: Vec<String> = entries(root()).iter().map(|path| name(path)).collect();
    names.retain(|name| !IGNORED.contains(&name.as_str()));
    names
}

/// Every text file.
pub(crate) fn files() -> Vec<File> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if IGNORED.contains(&name(&path).as_str()) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let path = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                found.push(File { path, text });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(found.len() > 40, "only {} files", found.len());
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}
