//! Where the paths in a configuration lead: a relative one begins at the file that it stands in, as the file was named.
//!
//! Owns that, and what is done about paths that were written for the working directory. Reads no file.

use std::path::{Path, PathBuf};

use super::{Check, Scalar};
use crate::json::Place;

impl Check {
    /// Reads a path; returns `None` if it is missing or bad.
    pub(super) fn read_path(
        &mut self,
        key: &str,
        written: Option<&Scalar>,
        parse: impl FnOnce(&str) -> Result<PathBuf, String>,
    ) -> Option<PathBuf> {
        let path = self.read(key, written, parse)?;
        Some(self.placed(key, written.map(|written| written.place), path))
    }

    /// Returns where a path leads.
    pub(super) fn placed(&mut self, key: &str, place: Option<Place>, path: PathBuf) -> PathBuf {
        let there = self.at_file(key, place, &path, &path);
        // Without `./` in the middle, as people and editors name files.
        there.map_or(path.clone(), |folder| folder.join(&path).components().collect())
    }

    /// Returns where a path with fields in braces leads.
    pub(super) fn placed_template(&mut self, key: &str, written: &Scalar) -> String {
        let text = &written.value;
        let known = Path::new(text.split('{').next().unwrap_or_default());
        let folder = if text.contains('{') {
            known.parent().unwrap_or(known)
        } else {
            known
        };
        match self.at_file(key, Some(written.place), Path::new(text), folder) {
            Some(file) => {
                let file = file.display().to_string().replace('{', "{{").replace('}', "}}");
                Path::new(&file).join(text).display().to_string()
            }
            None => text.clone(),
        }
    }

    /// Returns the folder at which a path begins, unless it is the working directory. `known` is as much of the path as is known.
    fn at_file(&mut self, key: &str, place: Option<Place>, path: &Path, known: &Path) -> Option<PathBuf> {
        let folder = self.document.folder.clone()?;
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
            self.warn(place, key, &message);
            return None;
        }
        Some(folder)
    }
}
