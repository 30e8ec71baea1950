//! What is known, on disk, so that a relay that starts without its control planes can serve.
//!
//! Owns the files: their form, and that one is whole or refused. Refuses to know views and when to write.

mod decode;
mod encode;
mod folder;

use std::path::PathBuf;

pub use decode::read;
pub use encode::write;
pub use folder::Folder;

use crate::xds::Cut;

/// What one file holds.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Whose word it is, and for whom.
    pub of: Identity,
    /// What was known.
    pub cut: Cut,
}

/// What must be the same for a later run to begin with what an earlier one knew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// The server, as logs and metrics call it.
    pub server: String,
    /// Whom the server saw: the clients that share it.
    pub class: String,
}

/// Why a file is not read or written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The system does not give it.
    #[error("{}: cannot be read: {source}; check who owns it, or delete it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no snapshot, or not a whole one.
    #[error("{}: byte {offset}: {what}; delete it: the next one replaces it", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: usize,
        /// What is wrong there.
        what: String,
    },
    /// The system does not take it.
    #[error("{}: cannot be written: {source}; check `snapshot.dir`: its owner, mode and free space", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// How a file begins.
const MAGIC: &[u8; 8] = b"xdssnap\n";
/// The one form that is read and written. A file of any other is refused: what it says can be asked for again.
const FORMAT: u32 = 2;
/// How long the checksum at the end is.
const CHECKSUM: usize = 16;

/// What follows.
mod tag {
    /// The end of the content, then the checksum.
    pub(super) const END: u8 = 0;
    /// What was asked for by name of a type.
    pub(super) const NAMED: u8 = 1;
    /// What a wildcard covers, of which there may be more.
    pub(super) const PART: u8 = 2;
    /// All that a wildcard covers.
    pub(super) const WHOLE: u8 = 3;
    /// A resource of the last type.
    pub(super) const RESOURCE: u8 = 4;
    /// A name of the last type that does not exist.
    pub(super) const ABSENT: u8 = 5;
}
