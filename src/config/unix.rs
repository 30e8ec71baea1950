// SPDX-License-Identifier: Apache-2.0
//! Unix sockets as operators write them: paths, and the names of Linux that have no file. Opens no sockets.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The file of a listener's Unix socket. What is not set is left to the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketFile {
    /// Its permissions.
    pub mode: Option<u32>,
    /// The name or number of the user to whom it belongs.
    pub owner: Option<String>,
    /// The name or number of the group to which it belongs.
    pub group: Option<String>,
}

/// What the path of a socket without a file begins with.
const ABSTRACT: &str = "@";

/// Whether the socket has no file: `@name`, in the abstract namespace of Linux.
#[must_use]
pub fn is_abstract(path: &Path) -> bool {
    path.to_string_lossy().starts_with(ABSTRACT)
}

/// Returns the path for system calls, in which the first byte of an abstract name is zero.
#[must_use]
pub fn system_path(path: &Path) -> Cow<'_, Path> {
    match path.to_str().and_then(|path| path.strip_prefix(ABSTRACT)) {
        Some(name) => Cow::Owned(PathBuf::from(format!("\0{name}"))),
        None => Cow::Borrowed(path),
    }
}

/// Reads what follows `unix:`, a path or `@name`.
pub(super) fn path(text: &str) -> Result<PathBuf, &'static str> {
    match text {
        "" => Err("lacks a path"),
        ABSTRACT => Err("lacks a name after the @"),
        _ if text.contains('\0') => Err("has a zero byte in it"),
        _ => Ok(text.into()),
    }
}

/// Reads `0660`.
pub(super) fn mode(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    let mode = u32::from_str_radix(digits, 8).ok().filter(|_| digits.len() >= 3);
    mode.filter(|mode| *mode <= 0o777)
        .ok_or_else(|| format!("`{text}` is not a file mode; write three octal digits, such as 0660"))
}
