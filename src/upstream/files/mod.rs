// SPDX-License-Identifier: Apache-2.0
//! Files as a source of resources.
//!
//! Owns the reading: once for all views, and again when the files change. Knows nothing of who reads the views.

mod asked;
mod content;
mod disk;
mod file_set;
mod format;
mod parsed_file;
mod writer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::clock::now;
use super::status::{StreamPhase, StreamStatus};
use crate::telemetry::FileMetrics;
use crate::watch::Watcher;
use crate::xds::{Dialect, ServerState, TypeUrl};
pub use asked::FileWants;
pub use content::{FileContents, Twice};
pub use file_set::{FileChanges, FileSet};
pub use format::FileFormat;
pub use parsed_file::{Dictionary, ParsedFile, Stated};
pub use writer::FileWriter;

/// A file or a directory of files, shared by all views.
pub struct Files {
    uri: String,
    path: PathBuf,
    metrics: FileMetrics,
    loaded: watch::Sender<Loaded>,
    status: Mutex<FilesStatus>,
}

/// The published content of the files.
#[derive(Clone, Debug, Default)]
struct Loaded {
    content: Arc<FileContents>,
    server_state: ServerState,
}

/// The state of the files, for operators.
#[derive(Clone, Debug, Default)]
pub struct FilesStatus {
    /// When their content last changed, if any of it was ever good.
    pub loaded: Option<Instant>,
    /// Whether all files were good at the same time at least once.
    pub whole: bool,
    /// How many files there are.
    pub files: usize,
    /// How many resources there are in them.
    pub resources: usize,
    /// The first few current faults, each with its file and place.
    pub faults: Vec<String>,
    /// The number of current faults.
    pub faulty: usize,
    /// Since when there are faults.
    pub since: Option<Instant>,
}

impl FilesStatus {
    /// Returns the same as the status of a stream: it answers once all files were good.
    #[must_use]
    pub fn as_stream(&self) -> StreamStatus {
        let since = self.loaded.or(self.since).unwrap_or_else(now);
        StreamStatus {
            phase: match (self.whole, self.loaded.or(self.since)) {
                (true, _) => StreamPhase::Answering,
                (false, Some(_)) => StreamPhase::Waiting,
                (false, None) => StreamPhase::Connecting,
            },
            error: self.faults.first().map(|first| match self.faulty {
                0 | 1 => first.clone(),
                all => format!("{first} (and {} more)", all - 1),
            }),
            failing_since: self.since.filter(|_| !self.whole),
            last_success: self.loaded,
            ..StreamStatus::idle(Dialect::Sotw, since)
        }
    }
}

/// How many faults are listed; the others are counted.
const FAULTS_NAMED: usize = 16;
/// The shortest pause before the next look at the files, as a multiple of how long the last one took.
const PACE: u32 = 4;

impl Files {
    /// Creates a source that was not read yet.
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

    /// Returns the current state.
    #[must_use]
    pub fn status(&self) -> FilesStatus {
        self.status.lock().clone()
    }

    /// Returns how many resources of each type the files have, whether a client asks for them or not.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<TypeUrl, usize> {
        self.loaded.borrow().content.counts()
    }

    /// Waits until all files were good once.
    pub async fn reached(&self) {
        let mut loaded = self.loaded.subscribe();
        let up = loaded.wait_for(|loaded| loaded.server_state == ServerState::Up).await;
        debug_assert!(up.is_ok(), "the sender is our own");
    }

    /// Reads the files, and again whenever they change. `limit` bounds the bytes of all files together.
    pub async fn run(self: Arc<Self>, limit: usize, dictionary: Dictionary) {
        let mut watcher = Watcher::new(std::slice::from_ref(&self.path));
        let mut file_set = FileSet::new(&self.path, limit, dictionary.clone());
        let mut unwatched = None;
        loop {
            let begun = now();
            let look = move || {
                let found = file_set.look(begun);
                (file_set, found)
            };
            let looked;
            (watcher, looked) = watcher.look(look).await;
            let found;
            match looked {
                Ok(looked) => (file_set, found) = looked,
                Err(error) => {
                    // The content that was read before stays published.
                    tracing::error!(server = self.uri, %error, "reading the files failed; starting over");
                    file_set = FileSet::new(&self.path, limit, dictionary.clone());
                    found = FileChanges::default();
                }
            }
            self.tell(&file_set, &found);
            let fault = watcher.fault().map(str::to_owned);
            if fault != unwatched {
                if let Some(fault) = &fault {
                    tracing::warn!(server = self.uri, error = %fault, "the files cannot be watched; checking them every two seconds");
                }
                unwatched = fault;
            }
            let took = now().saturating_duration_since(begun);
            let pace = (took * PACE).max(Duration::from_millis(20));
            watcher.next(pace, file_set.ends()).await;
        }
    }

    fn tell(&self, file_set: &FileSet, found: &FileChanges) {
        for fault in found.new_faults.iter().take(FAULTS_NAMED) {
            tracing::error!(server = self.uri, "{fault}");
        }
        for warning in found.warnings.iter().take(FAULTS_NAMED) {
            tracing::warn!(server = self.uri, "{warning}");
        }
        for (more, what) in [(found.new_faults.len(), "faults"), (found.warnings.len(), "warnings")] {
            if more > FAULTS_NAMED {
                tracing::warn!(server = self.uri, "{more} new {what}; only {FAULTS_NAMED} are listed");
            }
        }
        self.metrics.errors.inc_by(found.new_faults.len() as u64);
        let content = file_set.content();
        {
            let mut status = self.status.lock();
            let before = status.since.filter(|_| !file_set.faults().is_empty());
            status.since = before.or_else(|| (!file_set.faults().is_empty()).then(now));
            status.faulty = file_set.faults().len();
            status.faults = file_set.faults().iter().take(FAULTS_NAMED).cloned().collect();
            status.files = file_set.files();
            status.resources = content.len();
            status.whole |= content.whole();
            if found.changed {
                status.loaded = Some(now());
            }
        }
        // A source that was never completely good cannot tell which resources do not exist, so the fallback sources are asked,
        // too.
        let server_state = if content.whole() {
            ServerState::Up
        } else {
            ServerState::Failing
        };
        self.loaded.send_if_modified(|loaded| {
            let same = Arc::ptr_eq(&loaded.content, content) && loaded.server_state == server_state;
            if same || loaded.content.whole() && !content.whole() {
                return false;
            }
            tracing::info!(
                server = self.uri,
                resources = content.len(),
                files = file_set.files(),
                "files read"
            );
            *loaded = Loaded {
                content: content.clone(),
                server_state,
            };
            true
        });
        self.metrics.read(content.whole(), file_set.bad_files());
    }
}
