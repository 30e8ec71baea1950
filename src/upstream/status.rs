//! How it stands between the relay and one control plane, for people.
//!
//! Owns the present state in words. Refuses to decide anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::clock::now;
use crate::protocol::Why;
use crate::xds::{Dialect, TypeUrl};

/// One stream, as an operator sees it.
#[derive(Clone, Debug)]
pub struct Status {
    /// What it is doing.
    pub phase: Phase,
    /// Since when.
    pub since: Instant,
    /// The dialect it speaks, or will try next.
    pub dialect: Dialect,
    /// Why it is this dialect, where there are two.
    pub why: Option<Why>,
    /// What went wrong last, until a response shows that it is over.
    pub error: Option<String>,
    /// Since when every attempt came to nothing, if it did.
    pub failing_since: Option<Instant>,
    /// Whether the server refused it the last time, which says nothing of other streams.
    pub refused: bool,
    /// When the next attempt is made, if one is waited for.
    pub next_attempt: Option<Instant>,
    /// Types that end the stream and are asked for apart from the others, and how it ended the last time.
    pub suspected: BTreeMap<TypeUrl, Arc<str>>,
    /// Types that are wanted and that the server is not asked for, and why.
    pub unserved: BTreeMap<TypeUrl, Arc<str>>,
    /// When it last answered.
    pub last_success: Option<Instant>,
}

/// What a stream is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is wanted of it.
    Idle,
    /// It is being connected.
    Connecting,
    /// It is open, and the server has not answered yet.
    Open,
    /// The server answers.
    Answering,
    /// It ended, and the next attempt is waited for.
    Waiting,
}

/// Where a stream's status is written and read.
#[derive(Clone, Debug)]
pub struct Board(Arc<Mutex<Status>>);

impl Board {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self(Arc::new(Mutex::new(Status {
            phase: Phase::Idle,
            since: now(),
            dialect,
            why: None,
            error: None,
            failing_since: None,
            refused: false,
            suspected: BTreeMap::new(),
            unserved: BTreeMap::new(),
            next_attempt: None,
            last_success: None,
        })))
    }

    pub(super) fn read(&self) -> Status {
        self.0.lock().clone()
    }

    /// What went wrong last, until a response shows that it is over.
    pub(super) fn error(&self) -> Option<String> {
        self.0.lock().error.clone()
    }

    pub(super) fn enter(&self, phase: Phase, dialect: Dialect) {
        let mut status = self.0.lock();
        status.phase = phase;
        status.since = now();
        status.dialect = dialect;
        status.next_attempt = None;
        if phase == Phase::Answering {
            status.error = None;
            status.failing_since = None;
            status.refused = false;
        }
    }

    /// The type is asked for apart from the others, because the stream ended so.
    pub(super) fn suspect(&self, type_url: &TypeUrl, words: &str) {
        self.0.lock().suspected.insert(type_url.clone(), words.into());
    }

    /// The type is asked for together with the others again.
    pub(super) fn acquit(&self, type_url: &TypeUrl) {
        self.0.lock().suspected.remove(type_url);
    }

    /// It is not asked for these types, and for no others that are wanted it is so.
    pub(super) fn leave_out(&self, unserved: BTreeMap<TypeUrl, Arc<str>>) {
        self.0.lock().unserved = unserved;
    }

    /// Why it speaks this dialect.
    pub(super) fn explain(&self, why: Why) {
        self.0.lock().why = Some(why);
    }

    /// An attempt came to nothing, if `refused` because the server did not want this stream. Whether the one before it did not.
    pub(super) fn fail(&self, refused: bool) -> bool {
        let mut status = self.0.lock();
        status.refused = refused;
        let first = status.failing_since.is_none();
        status.failing_since.get_or_insert_with(now);
        first
    }

    /// Whether the last attempt came to nothing, and none to anything since.
    pub(super) fn failing(&self) -> bool {
        self.0.lock().failing_since.is_some()
    }

    pub(super) fn wait(&self, until: Instant, error: Option<String>) {
        let mut status = self.0.lock();
        status.phase = Phase::Waiting;
        status.since = now();
        status.next_attempt = Some(until);
        if error.is_some() {
            status.error = error;
        }
    }

    /// The server answered.
    pub(super) fn heard(&self) {
        self.0.lock().last_success = Some(now());
    }

    /// Something is wanted of it, or nothing any more: what it was doing beyond that stays.
    pub(super) fn wanted(&self, wanted: bool, dialect: Dialect) {
        let idle = self.0.lock().phase == Phase::Idle;
        match (idle, wanted) {
            (true, true) => self.enter(Phase::Connecting, dialect),
            (false, false) => self.enter(Phase::Idle, dialect),
            (true, false) | (false, true) => {}
        }
    }

    /// What is wrong while the server answers, and when that is tried again.
    pub(super) fn note(&self, wrong: Option<(String, Instant)>) {
        let mut status = self.0.lock();
        (status.error, status.next_attempt) = wrong.unzip();
    }
}
