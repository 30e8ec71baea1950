// SPDX-License-Identifier: Apache-2.0
//! To whom the file of a Unix socket belongs, and who may connect through it.
//!
//! Owns the look-up of users and groups by name. Knows nothing of the socket.

use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use crate::config::SocketFile;

const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// Sets the owner and the mode of a file. To be called before anybody can connect.
pub(super) fn set(path: &Path, file: &SocketFile) -> io::Result<()> {
    let (owner, group) = owners(file)?;
    if owner.is_some() || group.is_some() {
        chown(path, owner, group)?;
    }
    match file.mode {
        Some(mode) => std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)),
        None => Ok(()),
    }
}

/// Returns the numbers of the user and of the group of a socket's file.
///
/// # Errors
/// When this machine does not know one of the names.
pub fn owners(file: &SocketFile) -> io::Result<(Option<u32>, Option<u32>)> {
    let look = |name: Option<&String>, known| name.map(|name| number(name, known)).transpose();
    Ok((look(file.owner.as_ref(), USERS)?, look(file.group.as_ref(), GROUPS)?))
}

/// Returns the number itself, or that of the name in a file whose lines are `name:password:number:...`.
fn number(name: &str, known: &str) -> io::Result<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let lines = std::fs::read_to_string(known)?;
    let found = lines.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(name);
        fields.nth(1).filter(|_| is_it)?.parse().ok()
    });
    let missing = || {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("`{name}` is not in {known}; write its number"),
        )
    };
    found.ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(number("root", USERS).unwrap(), 0);
        assert_eq!(number("root", GROUPS).unwrap(), 0);
        assert_eq!(number("4711", USERS).unwrap(), 4711);
        let missing = number("no such user", USERS).unwrap_err().to_string();
        assert_eq!(missing, "`no such user` is not in /etc/passwd; write its number");
    }
}
