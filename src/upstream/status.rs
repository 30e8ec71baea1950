// SPDX-License-Identifier: Apache-2.0
//! The state of one stream to a control plane, for operators.
//!
//! Owns the current state. Decides nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::clock::now;
use crate::protocol::Why;
use crate::xds::{Dialect, TypeUrl};

/// One stream, as an operator sees it.
#[derive(Clone, Debug)]
pub struct StreamStatus {
    /// What it is doing.
    pub phase: StreamPhase,
    /// Since when.
    pub since: Instant,
    /// The dialect it speaks, or will try next.
    pub dialect: Dialect,
    /// Why it uses this dialect, if the source has a choice of dialects.
    pub why: Option<Why>,
    /// The last error, until a response shows that it is over.
    pub error: Option<String>,
    /// When attempts began to fail, if the last one failed.
    pub failing_since: Option<Instant>,
    /// Whether the server refused this stream at its last attempt. Other streams may still work.
    pub refused: bool,
    /// When the next attempt or poll is due, if the stream waits for one.
    pub next_attempt: Option<Instant>,
    /// Types that end the stream on which they are asked for and so have streams of their own, and how the last one ended.
    pub suspected: BTreeMap<TypeUrl, Arc<str>>,
    /// Types that clients want but the server is not asked for, and why.
    pub unserved: BTreeMap<TypeUrl, Arc<str>>,
    /// When the server last answered.
    pub last_success: Option<Instant>,
}

/// What a stream is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPhase {
    /// No client wants anything from it.
    Idle,
    /// It is being connected.
    Connecting,
    /// It is open, but the server has not answered yet.
    Open,
    /// The server has answered.
    Answering,
    /// It ended, and waits for the next attempt.
    Waiting,
}

/// How many streams of a view its server has answered. All streams of the view share the number.
#[derive(Clone, Debug, Default)]
pub(super) struct AnswerCount(Arc<AtomicU64>);

impl StreamStatus {
    /// Nobody needs the stream, since then.
    #[must_use]
    pub const fn idle(dialect: Dialect, since: Instant) -> Self {
        Self {
            phase: StreamPhase::Idle,
            since,
            dialect,
            why: None,
            error: None,
            failing_since: None,
            refused: false,
            suspected: BTreeMap::new(),
            unserved: BTreeMap::new(),
            next_attempt: None,
            last_success: None,
        }
    }
}

impl AnswerCount {
    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The shared place for a stream's status.
#[derive(Clone, Debug)]
pub struct Board {
    status: Arc<Mutex<StreamStatus>>,
    answers: AnswerCount,
    /// How many answers there had been when an attempt failed last.
    failed_after: Arc<AtomicU64>,
}

impl Board {
    pub(super) fn new(dialect: Dialect, answers: AnswerCount) -> Self {
        Self {
            status: Arc::new(Mutex::new(StreamStatus::idle(dialect, now()))),
            answers,
            failed_after: Arc::default(),
        }
    }

    /// Creates the place for another stream of the same view.
    pub(super) fn beside(&self, dialect: Dialect) -> Self {
        Self::new(dialect, self.answers.clone())
    }

    pub(super) fn read(&self) -> StreamStatus {
        let mut status = self.status.lock().clone();
        status.failing_since = status.failing_since.filter(|_| !self.is_over());
        status
    }

    /// Returns the last error, until a response shows that it is over.
    pub(super) fn error(&self) -> Option<String> {
        self.status.lock().error.clone()
    }

    pub(super) fn enter(&self, phase: StreamPhase, dialect: Dialect) {
        let mut status = self.status.lock();
        status.phase = phase;
        status.since = now();
        status.dialect = dialect;
        status.next_attempt = None;
        if phase == StreamPhase::Answering {
            status.error = None;
            status.failing_since = None;
            status.refused = false;
            self.answers.add();
        }
    }

    /// The type has a stream of its own now, because the shared stream ended with these words.
    pub(super) fn suspect(&self, type_url: &TypeUrl, words: &str) {
        self.status.lock().suspected.insert(type_url.clone(), words.into());
    }

    /// The type is on the shared stream again.
    pub(super) fn rejoin(&self, type_url: &TypeUrl) {
        self.status.lock().suspected.remove(type_url);
    }

    /// Replaces the types that the server is not asked for. Returns whether they have changed.
    pub(super) fn leave_out(&self, unserved: &BTreeMap<TypeUrl, Arc<str>>) -> bool {
        let mut status = self.status.lock();
        let changed = status.unserved != *unserved;
        if changed {
            status.unserved.clone_from(unserved);
        }
        changed
    }

    /// Records why the stream uses its dialect.
    pub(super) fn explain(&self, why: Why) {
        self.status.lock().why = Some(why);
    }

    /// An attempt failed; if `refused`, because the server refused this stream. Returns whether it is the first failure in a row.
    pub(super) fn fail(&self, refused: bool) -> bool {
        let mut status = self.status.lock();
        status.refused = refused;
        if self.is_over() {
            status.failing_since = None;
        }
        self.failed_after.store(self.answers.count(), Ordering::Relaxed);
        let first = status.failing_since.is_none();
        status.failing_since.get_or_insert_with(now);
        first
    }

    /// Whether an attempt failed and the server has not answered since, neither this stream nor another one of the view (G-08).
    pub(super) fn failing(&self) -> bool {
        self.status.lock().failing_since.is_some() && !self.is_over()
    }

    /// Whether the server has answered a stream of the view since an attempt failed here.
    fn is_over(&self) -> bool {
        self.failed_after.load(Ordering::Relaxed) < self.answers.count()
    }

    pub(super) fn wait(&self, until: Instant, error: Option<String>) {
        let mut status = self.status.lock();
        status.phase = StreamPhase::Waiting;
        status.since = now();
        status.next_attempt = Some(until);
        if error.is_some() {
            status.error = error;
        }
    }

    /// The server answered.
    pub(super) fn heard(&self) {
        self.status.lock().last_success = Some(now());
    }

    /// Enters or leaves the idle phase as clients want something or nothing; other phases stay.
    pub(super) fn wanted(&self, wanted: bool, dialect: Dialect) {
        let idle = self.status.lock().phase == StreamPhase::Idle;
        match (idle, wanted) {
            (true, true) => self.enter(StreamPhase::Connecting, dialect),
            (false, false) => self.enter(StreamPhase::Idle, dialect),
            (true, false) | (false, true) => {}
        }
    }

    /// Records an error while the server answers, and when the next try is due; `None` clears both.
    pub(super) fn note(&self, wrong: Option<(String, Instant)>) {
        let mut status = self.status.lock();
        (status.error, status.next_attempt) = wrong.unzip();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G-08: an answer to one stream ends the failures of the view's other streams, until they fail again.
    #[test]
    fn an_answer_ends_the_failures_of_all_streams() {
        let (answers, dialect) = (AnswerCount::default(), Dialect::Delta);
        let (one, other) = (Board::new(dialect, answers.clone()), Board::new(dialect, answers));
        let elsewhere = Board::new(dialect, AnswerCount::default());
        assert!(one.fail(false) && !one.fail(false) && elsewhere.fail(false));
        assert!(one.failing() && !other.failing());
        other.enter(StreamPhase::Answering, dialect);
        assert!(!one.failing() && one.read().failing_since.is_none());
        assert!(elsewhere.failing(), "the server answered another view");
        assert!(one.fail(false), "it fails anew");
        assert!(one.failing() && one.read().failing_since.is_some());
    }
}
