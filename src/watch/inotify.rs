// SPDX-License-Identifier: Apache-2.0
//! Changes in directories, as Linux reports them.
//!
//! Owns the watches. Does not decide when files are read.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use super::{Directory, Sign};

/// The watches of one watcher.
pub(super) struct Inotify {
    system: AsyncFd<OwnedFd>,
    watched: BTreeMap<Directory, i32>,
}

/// The size of the event buffer; events that do not fit are read next.
const BUFFER: usize = 16 * 1024;

impl Inotify {
    #[expect(
        deprecated,
        reason = "the descriptor is owned, so it refers to the same file as long as it lives"
    )]
    pub(super) fn new() -> Result<Self, String> {
        let system = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(|error| error.to_string())?;
        Ok(Self {
            system: AsyncFd::new(system).map_err(|error| error.to_string())?,
            watched: BTreeMap::new(),
        })
    }

    /// Watches exactly these directories; returns an error if one of them cannot be watched.
    pub(super) fn watch(&mut self, wanted: BTreeMap<Directory, std::path::PathBuf>) -> Option<String> {
        let system = self.system.get_ref();
        self.watched.retain(|directory, number| {
            let stays = wanted.contains_key(directory);
            if !stays {
                // The watch of a removed directory is already gone.
                let _ = remove_watch(system, *number);
            }
            stays
        });
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        let mut fault = None;
        for (directory, path) in wanted {
            if self.watched.contains_key(&directory) {
                continue;
            }
            match add_watch(system, &path, flags) {
                Ok(number) => drop(self.watched.insert(directory, number)),
                Err(error) => fault = Some(format!("{}: {error}", path.display())),
            }
        }
        fault
    }

    /// Waits until the system reports a change.
    pub(super) async fn next(&mut self) -> Sign {
        loop {
            let Ok(mut ready) = self.system.readable().await else {
                // Without events the periodic check of the files remains.
                return std::future::pending().await;
            };
            let sign = read(ready.get_inner(), &mut self.watched);
            match sign {
                Some(sign) => return sign,
                None => ready.clear_ready(),
            }
        }
    }
}

/// Reads all available events; returns the most urgent sign, if there is one.
fn read(system: &OwnedFd, watched: &mut BTreeMap<Directory, i32>) -> Option<Sign> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let mut reader = Reader::new(system, &mut buffer);
    let mut found = None;
    loop {
        let (number, events) = match reader.next() {
            Ok(event) => (event.wd(), event.events()),
            Err(Errno::INTR) => continue,
            Err(_) => return found,
        };
        if events.contains(ReadFlags::IGNORED) {
            watched.retain(|_, watched| *watched != number);
        }
        // I-02, I-04: a file, or the symlink of a mounted ConfigMap, was moved into place. I-07: the event queue overflowed.
        let at_once = events.intersects(ReadFlags::MOVED_TO | ReadFlags::QUEUE_OVERFLOW);
        found = found.max(Some(if at_once { Sign::AtOnce } else { Sign::Touched }));
    }
}
