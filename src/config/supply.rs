// SPDX-License-Identifier: Apache-2.0
//! Where certificates and keys come from, as validated settings. Opens no sockets and reads no files.

use std::path::{Path, PathBuf};

use super::CertificateFiles;

/// Where certificates and keys come from. They are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supply<F> {
    /// PEM files.
    Files(F),
    /// A SPIFFE Workload API.
    Workload(Workload),
}

/// A SPIFFE Workload API, and what to take from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// The Unix socket of the agent; [`system_path`](super::system_path) returns its path for system calls.
    pub socket: PathBuf,
    /// Which SVID to take: the one with this hint, or the first.
    pub hint: Option<String>,
}

impl Supply<CertificateFiles> {
    /// Returns the paths of all files, or that of the socket.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Self::Files(files) => vec![&files.certificate_file, &files.private_key_file],
            Self::Workload(api) => vec![&api.socket],
        }
    }
}

impl Supply<PathBuf> {
    /// Returns the path of the file, or of the socket.
    pub fn path(&self) -> &Path {
        match self {
            Self::Files(path) => path,
            Self::Workload(api) => &api.socket,
        }
    }
}

impl<F> From<F> for Supply<F> {
    fn from(files: F) -> Self {
        Self::Files(files)
    }
}
