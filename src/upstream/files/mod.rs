//! Files as a source of configuration.
//!
//! Owns that they are read once for all views, and again when they change. Refuses to know who reads the views.

mod asked;
mod content;
mod disk;
#[cfg(target_os = "linux")]
mod inotify;
mod sheet;
mod shelf;
mod watcher;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::clock::now;
use super::status::{Phase, Status};
use crate::telemetry::FileMetrics;
use crate::xds::{Dialect, Standing};
pub use asked::Asked;
pub use content::{Content, Twice};
pub use disk::{Listed, Stamp};
pub use sheet::{Dictionary, Format, Sheet, Stated};
pub use shelf::{Found, Shelf};
use watcher::Watcher;
pub use writer::FileWriter;

/// A file or a directory of files, as all views see it.
pub struct Files {
    uri: String,
    path: PathBuf,
    metrics: FileMetrics,
    loaded: watch::Sender<Loaded>,
    status: Mutex<FilesStatus>,
}

/// What the files say.
#[derive(Clone, Debug, Default)]
struct Loaded {
    content: Arc<Content>,
    standing: Standing,
}

/// How it stands with the files, as an operator sees it.
#[derive(Clone, Debug, Default)]
pub struct FilesStatus {
    /// When their content changed last, if it was ever good.
    pub loaded: Option<Instant>,
    /// Whether all of them were good once.
    pub whole: bool,
    /// How many files there are.
    pub files: usize,
    /// How many resources there are in them.
    pub resources: usize,
    /// What is wrong now, each fault with its file and place; the first few.
    pub faults: Vec<String>,
    /// How many faults there are.
    pub faulty: usize,
    /// Since when something is wrong.
    pub since: Option<Instant>,
}

impl FilesStatus {
    /// The same in the words for streams: it answers once all of it was good.
    #[must_use]
    pub fn as_stream(&self) -> Status {
        let since = self.loaded.or(self.since).unwrap_or_else(now);
        Status {
            phase: match (self.whole, self.loaded.or(self.since)) {
                (true, _) => Phase::Answering,
                (false, Some(_)) => Phase::Waiting,
                (false, None) => Phase::Connecting,
            },
            since,
            dialect: Dialect::Sotw,
            why: None,
            error: self.faults.first().map(|first| match self.faulty {
                0 | 1 => first.clone(),
                all => format!("{first} (and {} more)", all - 1),
            }),
            failing_since: self.since.filter(|_| !self.whole),
            refused: false,
            suspected: std::collections::BTreeMap::new(),
            unserved: std::collections::BTreeMap::new(),
            next_attempt: None,
            last_success: self.loaded,
        }
    }
}

/// So many faults are named; the others are counted.
const FAULTS_NAMED: usize = 16;
/// A source that is slow to look at is looked at less often.
const PACE: u32 = 4;

impl Files {
    /// A source of which nothing is known yet.
    #[must_use]
    pub fn new(uri: &str, path: &std::path::Path, metrics: FileMetrics) -> Arc<Self> {
        Arc::new(Self {
            uri: uri.to_owned(),
            path: path.to_owned(),
            metrics,
            loaded: watch::Sender::default(),
            status: Mutex::default(),
        })
    }

    /// How it stands now.
    #[must_use]
    pub fn status(&self) -> FilesStatus {
        self.status.lock().clone()
    }

    /// Waits until all files were good once.
    pub async fn reached(&self) {
        let mut loaded = self.loaded.subscribe();
        let up = loaded.wait_for(|loaded| loaded.standing == Standing::Up).await;
        debug_assert!(up.is_ok(), "the sender is our own");
    }

    /// Reads the files, and again whenever they change. `limit` bounds the bytes of all of them.
    pub async fn run(self: Arc<Self>, limit: usize, dictionary: Dictionary) {
        let mut watcher = Watcher::new(&self.path);
        let mut shelf = Shelf::new(&self.path, limit, dictionary.clone());
        let mut unwatched = None;
        loop {
            let begun = now();
            let look = tokio::task::spawn_blocking(move || {
                watcher.arm();
                let found = shelf.look(begun);
                (watcher, shelf, found)
            });
            let found;
            match look.await {
                Ok(looked) => (watcher, shelf, found) = looked,
                Err(error) => {
                    // What was read before stays published.
                    tracing::error!(server = self.uri, %error, "reading the files failed; starting over");
                    watcher = Watcher::new(&self.path);
                    shelf = Shelf::new(&self.path, limit, dictionary.clone());
                    found = Found::default();
                }
            }
            self.tell(&shelf, &found);
            let fault = watcher.fault().map(str::to_owned);
            if fault != unwatched {
                if let Some(fault) = &fault {
                    tracing::warn!(server = self.uri, %fault, "cannot be watched; looked at every two seconds");
                }
                unwatched = fault;
            }
            let took = now().saturating_duration_since(begun);
            let pace = (took * PACE).max(Duration::from_millis(20));
            watcher.next(pace, shelf.ends()).await;
        }
    }

    fn tell(&self, shelf: &Shelf, found: &Found) {
        for fault in found.new_faults.iter().take(FAULTS_NAMED) {
            tracing::error!(server = self.uri, "{fault}");
        }
        for warning in found.warnings.iter().take(FAULTS_NAMED) {
            tracing::warn!(server = self.uri, "{warning}");
        }
        for (more, what) in [(found.new_faults.len(), "faults"), (found.warnings.len(), "warnings")] {
            if more > FAULTS_NAMED {
                tracing::warn!(
                    server = self.uri,
                    "{more} new {what}, of which {FAULTS_NAMED} are named"
                );
            }
        }
        self.metrics.errors.inc_by(found.new_faults.len() as u64);
        let content = shelf.content();
        {
            let mut status = self.status.lock();
            let before = status.since.filter(|_| !shelf.faults().is_empty());
            status.since = before.or_else(|| (!shelf.faults().is_empty()).then(now));
            status.faulty = shelf.faults().len();
            status.faults = shelf.faults().iter().take(FAULTS_NAMED).cloned().collect();
            status.files = shelf.files();
            status.resources = content.len();
            status.whole |= content.whole();
            if found.changed {
                status.loaded = Some(now());
            }
        }
        // A source of which something was never good cannot say what does not exist: others are asked, too.
        let standing = if content.whole() {
            Standing::Up
        } else {
            Standing::Failing
        };
        self.loaded.send_if_modified(|loaded| {
            let same = Arc::ptr_eq(&loaded.content, content) && loaded.standing == standing;
            if same || loaded.content.whole() && !content.whole() {
                return false;
            }
            tracing::info!(
                server = self.uri,
                resources = content.len(),
                files = shelf.files(),
                "files read"
            );
            *loaded = Loaded {
                content: content.clone(),
                standing,
            };
            true
        });
        self.metrics.loaded.set(i64::from(content.whole()));
    }
}
