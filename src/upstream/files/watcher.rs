//! When to look at files again.
//!
//! Owns which directories matter, and the quiet after a write. Refuses to know what is in files.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use super::inotify::Inotify as System;
use crate::clock::{self, now};

/// Tells when the files at a path may have changed.
pub(super) struct Watcher {
    path: PathBuf,
    system: Option<System>,
    /// The first and the last sign of a write since somebody looked.
    touched: Option<(Instant, Instant)>,
    at_once: bool,
    fault: Option<String>,
}

/// A directory by device and inode: another one may be at the same path later.
pub(super) type Directory = (u64, u64);

/// What the system tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    /// Something is being written or was taken away.
    Touched,
    /// Something was moved into place.
    AtOnce,
}

/// A write in place is over after so much quiet.
const QUIET: Duration = Duration::from_millis(300);
/// And is read after this time however long it goes on.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often the files are looked at besides where they are watched, for what is beyond the last symlink.
const POLL: Duration = Duration::from_secs(10);
/// I-07: and where that is impossible.
const POLL_ALONE: Duration = Duration::from_secs(2);
/// Symlinks in a row; more are a loop.
const LINKS_MAX: usize = 40;

impl Watcher {
    pub(super) fn new(path: &Path) -> Self {
        let system = System::new();
        Self {
            path: path.to_owned(),
            fault: system.as_ref().err().cloned(),
            system: system.ok(),
            touched: None,
            at_once: false,
        }
    }

    /// Why files are only looked at now and then, if that is so.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Watches the directories that matter now. To be called before the files are looked at, so that nothing is missed.
    pub(super) fn arm(&mut self) {
        let Some(system) = &mut self.system else { return };
        let (wanted, missing) = directories(&self.path);
        self.fault = system.watch(wanted).or(missing);
    }

    /// Waits until the files may have changed, or until `ends`; at least for `pace`.
    pub(super) async fn next(&mut self, pace: Duration, ends: Option<Instant>) {
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

    /// When what was told is ripe.
    fn due(&self) -> Option<Instant> {
        let (first, last) = self.touched?;
        if self.at_once {
            return Some(first);
        }
        Some((last + QUIET).min(first + PATIENCE))
    }
}

/// I-03: the directories in which something must move for the content at `path` to change: that of every symlink on the way
/// to it, and the one at its end. And why there may be more.
fn directories(path: &Path) -> (BTreeMap<Directory, PathBuf>, Option<String>) {
    let mut found = BTreeMap::new();
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
    (found, fault)
}

/// Other systems are asked now and then.
#[cfg(not(target_os = "linux"))]
struct System;

#[cfg(not(target_os = "linux"))]
impl System {
    fn new() -> Result<Self, String> {
        Err("this system does not tell of changes".to_owned())
    }

    fn watch(&mut self, _: BTreeMap<Directory, PathBuf>) -> Option<String> {
        None
    }

    async fn next(&mut self) -> Sign {
        std::future::pending().await
    }
}
