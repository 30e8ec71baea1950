// SPDX-License-Identifier: Apache-2.0
//! Small files that operators name: certificates, keys, tokens.
//!
//! Owns that reading one never waits, and never takes much memory. Knows nothing of what is in it.

use std::fs::OpenOptions;
use std::io::{Error, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The most bytes of a certificate, of keys, or of what is read with them.
pub const BYTES_MAX: usize = 1 << 20;

/// Reads a regular file of at most this many bytes.
///
/// # Errors
/// It cannot be read, is larger, or is a pipe or a device: opening one may wait for a writer, and reading one may not end.
pub fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>> {
    let regular = |is_file: bool| match is_file {
        true => Ok(()),
        false => Err(Error::other("it is not a regular file")),
    };
    regular(std::fs::metadata(path)?.is_file())?;
    // Another may have taken its place.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.cast_signed());
    let file = options.open(path)?;
    regular(file.metadata()?.is_file())?;
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(Error::other(format!("it has more than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Does the same with a text, off the runtime's threads.
///
/// # Errors
/// Says why it cannot be read.
pub async fn text(path: PathBuf, bytes_max: usize) -> std::result::Result<String, String> {
    let read = tokio::task::spawn_blocking(move || read(&path, bytes_max)).await;
    let bytes = read.unwrap_or_else(|_| Err(Error::other("the thread that reads it ended")));
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).map_err(Error::other));
    text.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read() {
        let path = std::env::temp_dir().join(format!("distributary-small-file-{}", std::process::id()));
        let read = |bytes_max| read(&path, bytes_max).map_err(|error| error.to_string());
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(read(3), Ok(b"abc".to_vec()));
        assert_eq!(read(2), Err("it has more than 2 bytes".to_owned()));
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert_eq!(read(3), Err("it is not a regular file".to_owned()));
        std::fs::remove_file(&path).unwrap();
        assert!(super::read(Path::new("/dev/zero"), 3).is_err());
    }
}
