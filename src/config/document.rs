// SPDX-License-Identifier: Apache-2.0
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
    /// Whether it was sent by somebody who may not see what is in the files that it names.
    pub(super) sent: bool,
    /// Whether it is such a file: only the places of its problems are told.
    pub(super) secret: bool,
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
            sent: false,
            secret: false,
        }
    }

    /// A text that was sent in place of the file `like`, where its relative paths begin.
    pub(super) fn sent(origin: &str, text: &[u8], like: Option<&Path>) -> Self {
        let like = like.map_or_else(|| origin.to_owned(), |like| like.display().to_string());
        Self {
            origin: origin.to_owned(),
            sent: true,
            ..Self::new(&like, text)
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
        if self.secret {
            return format!(
                "{}{place}: something is wrong here; `distributary validate` says what where the file is",
                self.origin
            );
        }
        let key = if key.is_empty() {
            String::new()
        } else {
            format!("{key}: ")
        };
        format!("{}{place}: {key}{message}", self.origin)
    }
}
