//! A text that settings were read from. Owns how a place in it is written. Knows no settings.

use std::path::{Path, PathBuf};

use crate::json::Place;

/// A configuration or a bootstrap.
#[derive(Debug)]
pub(super) struct Document {
    /// Its name in messages: a path, `command line`, or an environment variable.
    pub(super) origin: String,
    pub(super) text: Vec<u8>,
    /// Whether it was written for gRPC clients: then unknown keys are not errors.
    pub(super) foreign: bool,
    /// Where its relative paths begin, unless that is the working directory.
    pub(super) folder: Option<PathBuf>,
}

impl Document {
    pub(super) fn new(origin: &str, text: &[u8]) -> Self {
        Self {
            origin: origin.to_owned(),
            text: text.to_vec(),
            foreign: false,
            // As the file was named, not where a link leads: a mounted ConfigMap has its files behind links.
            folder: Path::new(origin)
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty())
                .map(Path::to_owned),
        }
    }

    pub(super) fn foreign(origin: &str, text: &[u8]) -> Self {
        Self {
            foreign: true,
            folder: None,
            ..Self::new(origin, text)
        }
    }

    /// Returns `origin:line:column: key: message`.
    pub(super) fn line(&self, place: Option<Place>, key: &str, message: &str) -> String {
        let place = place.map_or_else(String::new, |place| format!(":{place}"));
        let key = if key.is_empty() {
            String::new()
        } else {
            format!("{key}: ")
        };
        format!("{}{place}: {key}{message}", self.origin)
    }
}
