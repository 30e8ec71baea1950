// SPDX-License-Identifier: Apache-2.0
//! Where the paths in a configuration lead: a relative one begins at the file that it stands in, as the file was named.
//!
//! Owns that, and what is done about paths that were written for the working directory. Reads no file.

use std::path::{Path, PathBuf};

use super::{Check, Scalar};
use crate::json::Place;

/// Reads a path; returns `None` if it is missing or bad.
pub(super) fn read(
    check: &mut Check,
    key: &str,
    written: Option<&Scalar>,
    parse: impl FnOnce(&str) -> Result<PathBuf, String>,
) -> Option<PathBuf> {
    let path = check.read(key, written, parse)?;
    Some(placed(check, key, written.map(|written| written.place), path))
}

/// Returns where a path leads.
pub(super) fn placed(check: &mut Check, key: &str, place: Option<Place>, path: PathBuf) -> PathBuf {
    let there = at_file(check, key, place, &path, &path);
    // Without `./` in the middle, as people and editors name files.
    there.map_or(path.clone(), |folder| folder.join(&path).components().collect())
}

/// Returns where a path with fields in braces leads.
pub(super) fn template(check: &mut Check, key: &str, written: &Scalar) -> String {
    let text = &written.value;
    let known = Path::new(text.split('{').next().unwrap_or_default());
    let folder = if text.contains('{') {
        known.parent().unwrap_or(known)
    } else {
        known
    };
    match at_file(check, key, Some(written.place), Path::new(text), folder) {
        Some(file) => {
            let file = file.display().to_string().replace('{', "{{").replace('}', "}}");
            Path::new(&file).join(text).display().to_string()
        }
        None => text.clone(),
    }
}

/// Returns the folder at which a path begins, unless it is the working directory. `known` is as much of the path as is known.
fn at_file(check: &mut Check, key: &str, place: Option<Place>, path: &Path, known: &Path) -> Option<PathBuf> {
    let folder = check.folder()?.to_owned();
    if path.is_absolute() || path.as_os_str().is_empty() {
        return None;
    }
    if !folder.join(known).exists() && known.exists() {
        let message = format!(
            "{} is taken from the working directory; from the next version on it begins at {}, like the file: write {}",
            path.display(),
            folder.display(),
            std::path::absolute(path).unwrap_or_default().display()
        );
        check.warn(place, key, message);
        return None;
    }
    Some(folder)
}
