// SPDX-License-Identifier: Apache-2.0
//! The format of a file of resources, by its name. Reads no files.

use std::path::Path;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// Protobuf's binary format.
    Binary,
    /// Protobuf's text format.
    Text,
}

impl FileFormat {
    /// I-01: returns the format by the file's extension, in any case; every other file is JSON.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        Self::listed(path).unwrap_or(Self::Json)
    }

    /// Returns the format of a file in a directory; `None` for other extensions, which are skipped there.
    #[must_use]
    pub fn listed(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            "pb" => Some(Self::Binary),
            "pb_text" => Some(Self::Text),
            _ => None,
        }
    }
}
