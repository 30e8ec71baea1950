// SPDX-License-Identifier: Apache-2.0
//! Snapshots: what is known, on disk, so that a relay that starts without its control planes can serve.
//!
//! Owns the files: their format, and that one is complete or refused. Does not know views and when to write.

mod cursor;
mod decode;
mod encode;
mod folder;

use std::path::PathBuf;

pub use cursor::SnapshotFault;
pub use decode::{Decoder, read};
pub use encode::{Choice, give, write};
pub use folder::Folder;

use crate::xds::Cut;

/// The content of one file.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The server that it comes from, and the clients that it is for.
    pub of: SnapshotIdentity,
    /// What was known.
    pub cut: Cut,
}

/// What must be equal in both runs, so that a later one may begin with what an earlier one knew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotIdentity {
    /// The server, as logs and metrics call it.
    pub server: String,
    /// The clients that share it, as the server saw them.
    pub class: String,
}

/// Why a file is not read or written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}; check its owner and mode", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// It is no snapshot, or not a complete one.
    #[error("{}: byte {offset}: {what}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: usize,
        /// What is wrong there.
        what: String,
    },
    /// The file cannot be written.
    #[error("{}: cannot be written: {source}; check `snapshot.dir`: its owner, mode and free space", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// The first bytes of a file.
pub(crate) const MAGIC: &[u8; 8] = b"xdssnap\n";
/// The only format that is read and written. A file of any other is refused: its content can be requested again.
const FORMAT: u32 = 2;
/// The length of the checksum at the end.
const CHECKSUM: usize = 16;

/// The tags, which say what follows.
mod tag {
    /// The end of the content, then the checksum.
    pub(super) const END: u8 = 0;
    /// What was requested by name of a type.
    pub(super) const NAMED: u8 = 1;
    /// A part of what a wildcard covers: there may be more.
    pub(super) const PART: u8 = 2;
    /// All that a wildcard covers.
    pub(super) const WHOLE: u8 = 3;
    /// A resource of the last type.
    pub(super) const RESOURCE: u8 = 4;
    /// A name of the last type that does not exist.
    pub(super) const ABSENT: u8 = 5;
    /// A removal that was not passed on. It is not there if nothing is held.
    pub(super) const HELD: u8 = 6;
    /// Older content that may be used. Earlier versions wrote here what clients of a kind rejected, and what stood in for it.
    pub(super) const OLDER: u8 = 7;
}
