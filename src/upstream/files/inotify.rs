//! What Linux tells of changes in directories.
//!
//! Owns the watches. Refuses to know when something is to be read.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use super::watcher::{Directory, Sign};

/// The watches of one source.
pub(super) struct Inotify {
    system: AsyncFd<OwnedFd>,
    watched: BTreeMap<Directory, i32>,
}

/// Room for many events at once; those that do not fit are read next.
const BUFFER: usize = 16 * 1024;

impl Inotify {
    #[expect(
        deprecated,
        reason = "the descriptor is owned, and stays the same file for as long as it lives"
    )]
    pub(super) fn new() -> Result<Self, String> {
        let system = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(|error| error.to_string())?;
        Ok(Self {
            system: AsyncFd::new(system).map_err(|error| error.to_string())?,
            watched: BTreeMap::new(),
        })
    }

    /// Watches exactly these directories, or says why not all of them.
    pub(super) fn watch(&mut self, wanted: BTreeMap<Directory, std::path::PathBuf>) -> Option<String> {
        let system = self.system.get_ref();
        self.watched.retain(|directory, number| {
            let stays = wanted.contains_key(directory);
            if !stays {
                // One that is gone is not watched any more anyway.
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

    /// Waits until the system tells something.
    pub(super) async fn next(&mut self) -> Sign {
        loop {
            let Ok(mut ready) = self.system.readable().await else {
                // There is nothing to wait for; others look now and then.
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

/// The most urgent sign among the events that are there, if there are any.
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
        // I-02, I-04: a file, or the symlink of a mounted ConfigMap, is moved into place. I-07: the system lost count.
        let at_once = events.intersects(ReadFlags::MOVED_TO | ReadFlags::QUEUE_OVERFLOW);
        found = found.max(Some(if at_once { Sign::AtOnce } else { Sign::Touched }));
    }
}
