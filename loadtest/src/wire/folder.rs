// SPDX-License-Identifier: Apache-2.0
//! A folder for files that other processes read during a run.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;

/// A folder that is deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Folder {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("distributary-load-{}-{count}", std::process::id()));
        std::fs::create_dir(&folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If it cannot be removed, the rest stays in the system's folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
