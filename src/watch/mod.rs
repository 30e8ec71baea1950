// SPDX-License-Identifier: Apache-2.0
//! Decides when to look at files again.
//!
//! Owns which directories are watched, and the pause after a write. Knows nothing of what is in files.

#[cfg(target_os = "linux")]
mod inotify;
mod trouble;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::task::JoinError;

#[cfg(target_os = "linux")]
use self::inotify::Inotify as System;
pub use self::trouble::{News, Trouble};
use crate::clock::{self, now};

/// Waits for changes of the files at some paths.
pub struct Watcher {
    paths: Vec<PathBuf>,
    system: Option<System>,
    /// When the first and the last change were reported since the last look.
    touched: Option<(Instant, Instant)>,
    at_once: bool,
    fault: Option<String>,
}

/// A directory by device and inode, because another one may be at the same path later.
type Directory = (u64, u64);

/// A change that the system reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    /// Something is being written or was removed.
    Touched,
    /// Something was moved into place.
    AtOnce,
}

/// A write in place counts as finished after this time without another change.
const QUIET: Duration = Duration::from_millis(300);
/// The files are read after this time even if the writing goes on.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often watched files are checked besides, for changes that the watches do not report.
const POLL: Duration = Duration::from_secs(10);
/// I-07: how often files are checked that cannot be watched.
const POLL_ALONE: Duration = Duration::from_secs(2);
/// The most symlinks in a row; more are a loop.
const LINKS_MAX: usize = 40;

impl Watcher {
    /// Creates a watcher that watches nothing before it is armed. To be called within a runtime.
    #[must_use]
    pub fn new(paths: &[PathBuf]) -> Self {
        let system = System::new();
        Self {
            paths: paths.to_owned(),
            fault: system.as_ref().err().cloned(),
            system: system.ok(),
            touched: None,
            at_once: false,
        }
    }

    /// Watches other files from the next time on that it is armed.
    pub fn set(&mut self, paths: &[PathBuf]) {
        paths.clone_into(&mut self.paths);
    }

    /// Returns why the files cannot be watched, if they cannot.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Looks at the files by `read`, on a thread that may wait. No change since then is missed. If it panics, the watcher starts over.
    pub async fn look<T>(mut self, read: impl FnOnce() -> T + Send + 'static) -> (Self, Result<T, JoinError>)
    where
        T: Send + 'static,
    {
        let paths = self.paths.clone();
        let look = tokio::task::spawn_blocking(move || {
            self.arm();
            let read = read();
            (self, read)
        });
        match look.await {
            Ok((watcher, read)) => (watcher, Ok(read)),
            Err(error) => (Self::new(&paths), Err(error)),
        }
    }

    /// Watches the directories that matter now. Call it before looking at the files, so that no change is missed.
    fn arm(&mut self) {
        let Some(system) = &mut self.system else { return };
        let mut wanted = BTreeMap::new();
        let mut missing = None;
        for path in &self.paths {
            missing = directories(path, &mut wanted).or(missing);
        }
        self.fault = system.watch(wanted).or(missing);
    }

    /// Waits until the files may have changed, or until `ends`; at least for `pace`.
    pub async fn next(&mut self, pace: Duration, ends: Option<Instant>) {
        let begun = now();
        let poll = if self.fault.is_none() { POLL } else { POLL_ALONE };
        let latest = begun + poll.max(pace);
        let latest = ends.map_or(latest, |ends| ends.min(latest));
        loop {
            let due = self.due().map_or(latest, |at| at.min(latest)).max(begun + pace);
            if due <= now() {
                self.touched = None;
                self.at_once = false;
                return;
            }
            let told = async {
                match &mut self.system {
                    Some(system) => system.next().await,
                    None => std::future::pending().await,
                }
            };
            let sign = tokio::select! {
                sign = told => sign,
                () = clock::sleep_until(due) => continue,
            };
            let now = now();
            self.at_once |= sign == Sign::AtOnce;
            self.touched = Some((self.touched.map_or(now, |(first, _)| first), now));
        }
    }

    /// Returns when to look because of the reported changes.
    fn due(&self) -> Option<Instant> {
        let (first, last) = self.touched?;
        if self.at_once {
            return Some(first);
        }
        Some((last + QUIET).min(first + PATIENCE))
    }
}

/// I-03: finds the directories to watch for changes of `path`: the one that holds `path`, the one of every target of its symlinks,
/// and `path` itself if it is a directory. Returns an error if some of them cannot be read.
fn directories(path: &Path, found: &mut BTreeMap<Directory, PathBuf>) -> Option<String> {
    let mut fault = None;
    let mut add = |path: &Path| match std::fs::metadata(path) {
        Ok(metadata) => drop(found.insert((metadata.dev(), metadata.ino()), path.to_owned())),
        Err(error) => fault = Some(format!("{}: {error}", path.display())),
    };
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        let parent = match at.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => &at,
        };
        add(parent);
        match std::fs::read_link(&at) {
            Ok(target) => at = parent.join(target),
            Err(_) => break,
        }
    }
    if path.is_dir() {
        add(path);
    }
    fault
}

/// On other systems the files are checked periodically.
#[cfg(not(target_os = "linux"))]
struct System;

#[cfg(not(target_os = "linux"))]
impl System {
    fn new() -> Result<Self, String> {
        Err("this system does not report file changes".to_owned())
    }

    fn watch(&mut self, _: BTreeMap<Directory, PathBuf>) -> Option<String> {
        None
    }

    async fn next(&mut self) -> Sign {
        std::future::pending().await
    }
}
