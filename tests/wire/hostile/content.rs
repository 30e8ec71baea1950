// SPDX-License-Identifier: Apache-2.0
//! What the control plane of the honest clients says.
//!
//! Owns its versions. Does not know who reads them.

use std::path::{Path, PathBuf};

use crate::support::CDS;

/// How many clusters the control plane has. The last one changes.
const CLUSTERS: usize = 100;

/// The control plane: a file.
pub(super) struct Content {
    path: PathBuf,
    version: usize,
}

impl Content {
    pub(super) fn new() -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hostile-clusters.json");
        Self { path, version: 0 }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) const fn version(&self) -> usize {
        self.version
    }

    /// Moves a file with the next version into place.
    pub(super) fn change(&mut self) {
        self.version += 1;
        let cluster = |n: usize| {
            format!(
                r#"{{"@type": "{CDS}", "name": "c{n}", "altStatName": "{}"}}"#,
                "x".repeat(500)
            )
        };
        let changed = format!(
            r#"{{"@type": "{CDS}", "name": "changes", "altStatName": "v{}"}}"#,
            self.version
        );
        let all: Vec<String> = (1..CLUSTERS).map(cluster).chain([changed]).collect();
        let beside = self.path.with_extension("new");
        std::fs::write(&beside, format!(r#"{{"resources": [{}]}}"#, all.join(","))).unwrap();
        std::fs::rename(beside, &self.path).unwrap();
    }
}
