// SPDX-License-Identifier: Apache-2.0
//! When the first answer for a wildcard or a collection is complete.
//!
//! Owns how long the server must be quiet before that. Knows nothing of names and content.

use std::time::{Duration, Instant};

/// An answer that has begun, until its end was seen.
#[derive(Debug)]
pub(super) struct OpenAnswer {
    first: Instant,
    quiet_since: Instant,
    /// When the server last sent something new, or a part of a message that may be new.
    spoke: Instant,
    /// The longest time between two such moments.
    pause: Duration,
    /// The same, counting parts of messages that are not known to be new yet.
    perhaps: Duration,
    /// A message with new names is not acknowledged yet.
    unanswered: bool,
    /// The server said that more follows.
    more: bool,
    /// The last message had an entry whose name is in doubt.
    doubtful: bool,
    /// The server has answered a later request of the stream since it last sent something new.
    overtaken: bool,
}

/// How long a server must be quiet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quiet {
    /// The time until its answer counts as complete.
    pub(super) needed: Duration,
    /// The same for a server whose rhythm is not known.
    pub(super) unknown: Duration,
    /// The same for a server that has gone on to a later request, and never paused before that.
    pub(super) overtaken: Duration,
}

/// Even if the server stays busy, its first answer takes no longer than this.
const AT_MOST: Duration = Duration::from_secs(10);

/// The parts of a response that matter for completeness.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// Whether it had a name that was new or not mentioned before on the stream.
    pub(super) news: bool,
    pub(super) more: bool,
    pub(super) uncertain: bool,
}

impl OpenAnswer {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            first: now,
            quiet_since: now,
            spoke: now,
            pause: Duration::ZERO,
            perhaps: Duration::ZERO,
            unanswered: true,
            more: false,
            doubtful: false,
            overtaken: false,
        }
    }

    /// A response came.
    pub(super) fn heard(&mut self, heard: Heard, now: Instant) {
        self.doubtful = heard.uncertain;
        self.more = heard.more;
        if heard.news {
            let pause = now.saturating_duration_since(self.spoke);
            self.pause = self.pause.max(self.perhaps).max(pause);
            self.spoke = now;
            self.quiet_since = now;
            self.unanswered = true;
            self.overtaken = false;
        }
    }

    /// The server said that more of its answer follows, and the end of that answer was about something else.
    pub(super) fn ended(&mut self, now: Instant) {
        if std::mem::take(&mut self.more) {
            self.quiet_since = now;
        }
    }

    /// The server answers a later request of the same stream. Nearly every server answers in order, so that it has said all that it had,
    /// if it has begun to.
    pub(super) const fn overtake(&mut self) {
        self.overtaken = true;
    }

    /// The relay's ACKs for all responses so far are sent.
    pub(super) fn answered(&mut self, now: Instant) {
        if std::mem::take(&mut self.unanswered) {
            self.quiet_since = now;
        }
    }

    /// A part of a message came.
    pub(super) fn bytes(&mut self, at: Instant) {
        self.perhaps = self.perhaps.max(at.saturating_duration_since(self.spoke));
        self.spoke = self.spoke.max(at);
        self.quiet_since = self.quiet_since.max(at);
    }

    /// Returns when it counts as complete, if nothing happens before.
    pub(super) fn deadline(&self, quiet: Quiet) -> Option<Instant> {
        let latest = self.first + AT_MOST;
        match self.more || self.doubtful {
            true => None,
            false if self.unanswered => Some(latest),
            false => Some((self.quiet_since + self.needed(quiet)).min(latest)),
        }
    }

    /// It counts as complete. If the end was seen, returns the longest pause in it, and when the server last spoke, if it may go on all the same:
    /// an unknown server may be quiet for longer. A server that was never quiet did not show an end.
    pub(super) fn end(&self, quiet: Quiet, now: Instant) -> (Option<Duration>, Option<Instant>) {
        let needed = self.needed(quiet);
        let silent = !self.unanswered && self.quiet_since + needed <= now;
        let guessed = silent && needed < quiet.unknown;
        (silent.then_some(self.pause), guessed.then_some(self.spoke))
    }

    /// How long the server must be quiet. What it has paused so far it may pause again.
    fn needed(&self, quiet: Quiet) -> Duration {
        match self.overtaken {
            true => quiet.needed.min(quiet.overtaken + self.pause * 2),
            false => quiet.needed,
        }
    }
}
