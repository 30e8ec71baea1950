// SPDX-License-Identifier: Apache-2.0
//! The directory with the snapshots of a relay: one file for each view.
//!
//! Owns the names of the files, and the bound on their number. Does not know what is in them.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use parking_lot::Mutex;

use super::{Snapshot, SnapshotError, SnapshotIdentity, read, write};
use crate::xds::{Cut, Hasher, Types};

/// A directory with snapshots.
#[derive(Debug)]
pub struct Folder {
    dir: PathBuf,
    secrets: bool,
    /// The most files that are kept.
    most: usize,
    /// Only one file is written at a time: a write goes on even if its caller does not wait for it any more.
    writing: Mutex<()>,
}

const EXTENSION: &str = "snapshot";

impl Folder {
    /// Creates a folder in `dir`, for at most `most` files (0: no bound), with keys and certificates or without.
    #[must_use]
    pub const fn new(dir: PathBuf, secrets: bool, most: usize) -> Self {
        let writing = Mutex::new(());
        Self {
            dir,
            secrets,
            most,
            writing,
        }
    }

    /// Returns the path of a view's file.
    pub fn path(&self, of: &SnapshotIdentity) -> PathBuf {
        let mut hasher = Hasher::new(0);
        hasher.field(of.server.as_bytes());
        hasher.field(of.class.as_bytes());
        self.dir.join(format!("{}.{EXTENSION}", hasher.finish()))
    }

    /// Returns what an earlier run knew of a view, if it saved that.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not complete, or is another view's.
    pub fn load(&self, of: &SnapshotIdentity, types: &Types, now: Instant) -> Result<Option<Cut>, SnapshotError> {
        let path = self.path(of);
        match read(&path, types, now) {
            Ok(found) if found.of == *of => Ok(Some(found.cut)),
            Ok(Snapshot { of, .. }) => Err(SnapshotError::Broken {
                path,
                offset: 0,
                what: format!(
                    "this is the snapshot of server {} for the clients {:?}",
                    of.server, of.class
                ),
            }),
            Err(SnapshotError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Saves what is known of a view.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save(&self, of: &SnapshotIdentity, cut: &Cut) -> Result<(), SnapshotError> {
        let _writing = self.writing.lock();
        self.make().map_err(|source| SnapshotError::Write {
            path: self.dir.clone(),
            source,
        })?;
        write(&self.path(of), of, cut, self.secrets)
    }

    /// Returns all files, the latest first.
    ///
    /// # Errors
    ///
    /// The directory cannot be listed.
    pub fn all(&self) -> Result<Vec<PathBuf>, SnapshotError> {
        let cannot = |source| SnapshotError::Read {
            path: self.dir.clone(),
            source,
        };
        let found = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found.map_err(cannot)?,
        };
        let mut files = Vec::new();
        for entry in found {
            let path = entry.map_err(cannot)?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                files.push((fs::metadata(&path).and_then(|found| found.modified()).ok(), path));
            }
        }
        files.sort_unstable();
        Ok(files.into_iter().rev().map(|(_, path)| path).collect())
    }

    /// Deletes the oldest files if there are too many, but none of `keep`: clients choose which views there are.
    ///
    /// # Errors
    ///
    /// The directory cannot be listed.
    pub fn prune(&self, keep: &BTreeSet<PathBuf>) -> Result<(), SnapshotError> {
        let others = self.all()?.into_iter().filter(|path| !keep.contains(path));
        let most = if self.most == 0 { usize::MAX } else { self.most };
        for path in others.skip(most.saturating_sub(keep.len())) {
            // A relay that cannot delete cannot write either, and reports that then.
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)
    }
}
