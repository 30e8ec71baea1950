// SPDX-License-Identifier: Apache-2.0
//! Reads files and directories, and never blocks on a pipe or a device.
//!
//! Owns how a file is opened, and how a changed file is recognized. Knows nothing of what is in a file.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;

use super::format::FileFormat;
use crate::upstream::clock::unix;

/// The metadata that changes with a file's content (I-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A file's name, and its stamp or why that cannot be read.
pub(super) type StampedFile = (OsString, Result<Stamp, String>);

/// Two writes within this time may leave the same stamp.
const COARSE: Duration = Duration::from_secs(2);
/// How often a file is read if it changes during each reading.
const ATTEMPTS: usize = 3;

impl Stamp {
    /// Returns the current stamp of a path; follows symlinks.
    pub(super) fn of(path: &Path) -> Result<Self, String> {
        let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
        Ok(Self::from(&metadata))
    }

    fn from(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether the file changed so recently that it may change again and keep its stamp.
    pub(super) fn is_young(&self) -> bool {
        let seconds = self.modified.0.max(self.changed.0);
        let age = unix().checked_sub(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
        age.is_none_or(|age| age <= COARSE)
    }
}

/// Whether something may be at this path, including a broken symlink or something without read permission.
fn exists(path: &Path) -> bool {
    let gone = |error: std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    !std::fs::symlink_metadata(path).is_err_and(gone)
}

/// Returns a regular file's content, at most `limit` bytes, as it was at one moment.
pub(super) fn read(path: &Path, limit: usize) -> Result<(Stamp, Vec<u8>), String> {
    for _ in 0..ATTEMPTS {
        let file = open(path)?;
        let before = regular(&file)?;
        // The length of some files, for example in /proc, is 0 until they are read.
        let mut content = Vec::new();
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        if before.len >= most {
            return Err(too_large(limit));
        }
        (&file)
            .take(most)
            .read_to_end(&mut content)
            .map_err(|error| error.to_string())?;
        if content.len() > limit {
            return Err(too_large(limit));
        }
        if regular(&file)? == before {
            return Ok((before, content));
        }
    }
    Err("changes while it is read; write another file and move it into place".to_owned())
}

/// Returns the files of a directory whose extension is a known format, sorted by name.
pub(super) fn list(directory: &Path) -> Result<Vec<StampedFile>, String> {
    let entries = std::fs::read_dir(directory).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") || FileFormat::listed(Path::new(&name)).is_none() {
            continue;
        }
        let path = entry.path();
        let stamp = Stamp::of(&path);
        // A file that vanished meanwhile is left out; a broken symlink is listed with its error.
        if stamp.is_ok() || exists(&path) {
            found.push((name, stamp));
        }
    }
    found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

fn open(path: &Path) -> Result<File, String> {
    // Opening a device can have side effects, and opening a pipe waits for a writer.
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err(not_regular());
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags);
    options.open(path).map_err(|error| error.to_string())
}

fn regular(file: &File) -> Result<Stamp, String> {
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if metadata.is_file() {
        Ok(Stamp::from(&metadata))
    } else {
        Err(not_regular())
    }
}

fn not_regular() -> String {
    "not a regular file".to_owned()
}

fn too_large(limit: usize) -> String {
    format!("larger than the {limit} bytes that are left of `limits.upstream_message`; raise it or split the source")
}
