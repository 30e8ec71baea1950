// SPDX-License-Identifier: Apache-2.0
//! What clients reject of one type, until the server was told (E-24).
//!
//! Owns when the clients are asked, when the server is told, and what it was told already. Knows nothing of the request, and of who
//! the clients are.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::kept::Kept;
use xds::{Name, Rejection, Version};

/// What the server is told of one type besides acknowledgements.
#[derive(Debug, Default)]
pub(super) struct RejectionReport {
    /// When the clients are to be asked what they reject.
    due: Option<Instant>,
    /// They are not asked before, because they were asked or the server was told a short time ago.
    pause_until: Option<Instant>,
    /// How many clients the server was told of on this stream, by content and kind of client.
    said: BTreeMap<ReportKey, usize>,
    /// What is to be said. The newest answer of the clients replaces the one before.
    unsaid: Vec<Rejection>,
}

/// A content, and a hash of the rest.
type ReportKey = (Option<(Name, Version)>, u64);

/// How long rejections are gathered: clients of one kind mostly reject together.
const GATHER: Duration = Duration::from_millis(250);
/// The clients are asked at most once in this time.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// The server is told at most once in this time.
const PACE: Duration = Duration::from_secs(5);
/// What the server was told, it is told again when the number of clients has grown so many times.
const GROWTH: usize = 10;
/// As many contents are remembered, and of relays as many words. The server is not told of more.
const SAID_MAX: usize = 1024;
const RELAYED_MAX: usize = 64;

impl RejectionReport {
    /// A client has rejected something.
    pub(super) fn rejected(&mut self, now: Instant) {
        let due = self.pause_until.max(Some(now + GATHER));
        self.due = self.due.or(due);
    }

    /// A stream begins: what still holds is said once more.
    pub(super) fn connected(&mut self) {
        self.unsaid.clear();
        if !self.said.is_empty() {
            self.said.clear();
            self.due = self.due.or(self.pause_until);
        }
    }

    /// Returns when the clients are to be asked, if the server may be told then.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// Returns whether the clients are to be asked now; they count as asked. What they said before is not passed on any more, so that the
    /// server is told at most once after each question.
    pub(super) fn asks(&mut self, now: Instant) -> bool {
        let due = self.due.take_if(|at| *at <= now).is_some();
        if due {
            self.pause_until = Some(now + ASK_AGAIN);
            self.unsaid.clear();
        }
        due
    }

    /// Takes the clients' answer. Only what the server's last word for a content is counts.
    pub(super) fn answer(&mut self, rejections: &[Rejection], kept: &Kept) {
        self.said.retain(|(content, _), _| holds(content.as_ref(), kept));
        let current = rejections.iter().filter(|one| holds(one.content.as_ref(), kept));
        let news = current.filter(|one| {
            let said = self.said.get(&key(one));
            said.map_or(self.has_room(one), |said| one.clients >= said.saturating_mul(GROWTH))
        });
        self.unsaid = news.cloned().collect();
        // What one sentence says stands together.
        let words = |one: &Rejection| (one.kind.clone(), one.objection.words().to_owned());
        self.unsaid.sort_by_cached_key(words);
    }

    /// Takes what is to be said now; it counts as said.
    pub(super) fn take(&mut self, now: Instant, kept: &Kept) -> Vec<Rejection> {
        let mut unsaid = std::mem::take(&mut self.unsaid);
        unsaid.retain(|one| holds(one.content.as_ref(), kept));
        if !unsaid.is_empty() {
            self.said.extend(unsaid.iter().map(|one| (key(one), one.clients)));
            self.pause_until = Some(now + PACE);
            self.due = self.due.max(self.due.map(|_| now + PACE));
        }
        unsaid
    }

    fn has_room(&self, one: &Rejection) -> bool {
        let relayed = |(content, _): &&ReportKey| content.is_none();
        match one.content {
            Some(_) => self.said.len() < SAID_MAX,
            None => self.said.keys().take_while(relayed).count() < RELAYED_MAX,
        }
    }
}

fn holds(content: Option<&(Name, Version)>, kept: &Kept) -> bool {
    content.is_none_or(|(name, version)| kept.version(name) == Some(*version))
}

/// Once for each content and kind; what a relay says, once for each of its texts.
fn key(one: &Rejection) -> ReportKey {
    let kind = xxh3_64_with_seed(one.kind.as_bytes(), 0);
    let words = one.objection.words().as_bytes();
    let rest = match one.content {
        Some(_) => kind,
        None => xxh3_64_with_seed(words, kind),
    };
    (one.content.clone(), rest)
}
