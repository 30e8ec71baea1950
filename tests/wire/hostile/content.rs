// SPDX-License-Identifier: Apache-2.0
//! What the control plane of the honest clients says.
//!
//! Owns its versions. Does not know who reads them.

use std::path::PathBuf;

use crate::memory::{cluster, resources};

/// How many clusters the control plane has. The last one changes.
const CLUSTERS: usize = 100;

/// The control plane: a file.
#[derive(Default)]
pub(super) struct Content {
    version: usize,
}

impl Content {
    pub(super) const fn version(&self) -> usize {
        self.version
    }

    /// Moves a file with the next version into place. Returns its path.
    pub(super) fn change(&mut self) -> PathBuf {
        self.version += 1;
        let all = (1..CLUSTERS).map(|n| cluster(&format!("c{n}"), &"x".repeat(500)));
        let changed = cluster("changes", &format!("v{}", self.version));
        resources("hostile-clusters.json", all.chain([changed]))
    }
}
