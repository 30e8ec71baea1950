// SPDX-License-Identifier: Apache-2.0
//! When a wildcard or a collection is complete.
//!
//! Owns how long the server must be quiet before that, and which names were not confirmed since a reconnect. Knows nothing of
//! content.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use xds::Name;

/// Whether a wildcard is complete, and what it waits for until it is.
///
/// Invariant: `open` is set from the first response on a stream until the wildcard is complete.
#[derive(Debug, Default)]
pub(super) struct Completeness {
    complete: bool,
    open: Option<Open>,
    /// Names held since before this stream that the server has not mentioned on it.
    unconfirmed: BTreeMap<Name, Declared>,
    /// The server resent content although it was sent the same version.
    ignored: bool,
    /// The server's first answer on this stream is over. What is unconfirmed after that has not changed, or is gone and the server does not
    /// read the versions that it is sent.
    over: bool,
    /// The relay rejected a response on this stream, so a later resend has no meaning.
    refused: bool,
    /// When the last message came with a name that was new or unconfirmed.
    calm_since: Option<Instant>,
    /// When the server last spoke, if the wildcard counts as complete after a shorter quiet than an unknown server needs.
    guessed: Option<Instant>,
}

/// Whether the server was sent the version of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Declared {
    No,
    Yes,
    /// The name was requested by itself since: the server sends it even so.
    Asked,
}

#[derive(Debug)]
struct Open {
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

/// The result of a response or of the passing of time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    /// Whether it is newly complete.
    pub(super) complete: bool,
    pub(super) gone: Vec<Name>,
    /// The longest quiet time within the server's answer, if the end of that answer was seen.
    pub(super) pause: Option<Duration>,
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
/// After a reconnect, the server must be quiet this long before names that it did not mention count as gone.
const CALM: Duration = Duration::from_secs(5);

/// The parts of a response that matter for completeness.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// Whether it had a name that was new or unconfirmed.
    pub(super) news: bool,
    pub(super) more: Option<bool>,
    pub(super) uncertain: bool,
}

impl Completeness {
    pub(super) const fn complete(&self) -> bool {
        self.complete
    }

    /// Returns whether it waits for nothing.
    pub(super) fn rests(&self) -> bool {
        self.open.is_none() && (self.unconfirmed.is_empty() || self.over || self.calm_since.is_none())
    }

    /// A stream begins. `held`: the held names, and for each whether the server is sent its version.
    pub(super) fn connected(&mut self, held: BTreeMap<Name, bool>) {
        let declared = |sent| if sent { Declared::Yes } else { Declared::No };
        self.unconfirmed = held.into_iter().map(|(name, sent)| (name, declared(sent))).collect();
    }

    /// E-04: the server is sent another version of the name than its own, so it will mention the name.
    pub(super) fn undeclare(&mut self, name: &Name) {
        if let Some(declared) = self.unconfirmed.get_mut(name) {
            *declared = Declared::No;
        }
    }

    /// Returns whether the name is held since before this stream, the server was not sent its version, and has not mentioned it.
    pub(super) fn undeclared(&self, name: &Name) -> bool {
        self.unconfirmed.get(name) == Some(&Declared::No)
    }

    /// These names were restored from an earlier run of the relay; the server is not sent their versions.
    pub(super) fn restored(&mut self, names: impl Iterator<Item = Name>) {
        if std::mem::take(&mut self.over) {
            self.unconfirmed.clear();
        }
        self.unconfirmed.extend(names.map(|name| (name, Declared::No)));
    }

    /// The stream ended; what is complete stays so (G-19).
    pub(super) fn disconnected(&mut self) {
        *self = Self {
            complete: self.complete,
            ..Self::default()
        };
    }

    /// This name is requested by itself: if the server resends it, that means nothing.
    pub(super) fn asked(&mut self, name: &Name) {
        if let Some(declared) = self
            .unconfirmed
            .get_mut(name)
            .filter(|declared| **declared == Declared::Yes)
        {
            *declared = Declared::Asked;
        }
    }

    /// The server sent this name. Returns whether it was unconfirmed.
    pub(super) fn confirm(&mut self, name: &Name, same_version: bool) -> bool {
        let Some(declared) = self.unconfirmed.remove(name) else {
            return false;
        };
        // The server resends content although it was sent the same version: it ignores `initial_resource_versions`, and will not
        // report removals.
        self.ignored |= declared == Declared::Yes && same_version && !self.refused && !self.over;
        true
    }

    /// The relay rejects a response. E-22: some servers then resend everything.
    pub(super) const fn refuse(&mut self) {
        self.refused = true;
    }

    /// The server has sent everything. Returns whether the wildcard is newly complete.
    pub(super) fn finish(&mut self) -> bool {
        self.open = None;
        self.unconfirmed.clear();
        self.calm_since = None;
        !std::mem::replace(&mut self.complete, true)
    }

    /// A delta response came. Returns what follows.
    pub(super) fn heard(&mut self, heard: Heard, quiet: Quiet, now: Instant) -> Settled {
        if heard.news || self.calm_since.is_none() {
            self.calm_since = Some(now);
        }
        if !self.complete {
            let open = self.open.get_or_insert_with(|| Open::new(now));
            open.doubtful = heard.uncertain;
            open.more = heard.more == Some(true);
            if heard.news {
                let pause = now.saturating_duration_since(open.spoke);
                open.pause = open.pause.max(open.perhaps).max(pause);
                open.spoke = now;
                open.quiet_since = now;
                open.unanswered = true;
                open.overtaken = false;
            }
        }
        if heard.more == Some(false) && !heard.uncertain {
            return Settled {
                gone: self.purge(),
                complete: self.finish(),
                ..Settled::default()
            };
        }
        Settled {
            pause: self.pause_after_all(heard.news, quiet, now),
            ..Settled::default()
        }
    }

    /// The wildcard counted as complete, and then more news came: the server paused for longer than it was given. Returns that
    /// pause.
    fn pause_after_all(&mut self, news: bool, quiet: Quiet, now: Instant) -> Option<Duration> {
        let since = self.guessed.filter(|_| news)?;
        let pause = now.saturating_duration_since(since);
        self.guessed = (pause < quiet.unknown).then_some(now);
        self.guessed.map(|_| pause)
    }

    /// The server said that more of its answer follows, and the end of that answer was about something else.
    pub(super) fn ended(&mut self, now: Instant) {
        if let Some(open) = self.open.as_mut().filter(|open| open.more) {
            open.more = false;
            open.quiet_since = now;
        }
    }

    /// The server answers a later request of the same stream. Nearly every server answers in order, so that it has said all that it had,
    /// if it has begun to.
    pub(super) const fn overtaken(&mut self) {
        if let Some(open) = &mut self.open {
            open.overtaken = true;
        }
    }

    /// The relay's ACKs for all responses so far are sent.
    pub(super) fn answered(&mut self, now: Instant) {
        if let Some(open) = &mut self.open
            && std::mem::take(&mut open.unanswered)
        {
            open.quiet_since = now;
        }
    }

    /// A part of a message came.
    pub(super) fn bytes(&mut self, at: Instant) {
        if let Some(open) = &mut self.open {
            open.perhaps = open.perhaps.max(at.saturating_duration_since(open.spoke));
            open.spoke = open.spoke.max(at);
            open.quiet_since = open.quiet_since.max(at);
        }
        if let Some(since) = &mut self.calm_since {
            *since = (*since).max(at);
        }
    }

    /// Returns when the wildcard becomes complete, or the unconfirmed names count as gone, if nothing happens before.
    pub(super) fn deadline(&self, quiet: Quiet) -> Option<Instant> {
        match &self.open {
            Some(open) if open.more || open.doubtful => None,
            Some(open) if open.unanswered => Some(open.first + AT_MOST),
            Some(open) => Some((open.quiet_since + open.needed(quiet)).min(open.first + AT_MOST)),
            None if self.complete && !self.over && !self.unconfirmed.is_empty() => {
                self.calm_since.map(|since| since + CALM)
            }
            None => None,
        }
    }

    /// Returns what follows from the time, if its deadline has passed.
    pub(super) fn timeout(&mut self, quiet: Quiet, now: Instant) -> Option<Settled> {
        self.deadline(quiet).filter(|at| *at <= now)?;
        if let Some(open) = self.open.take() {
            self.complete = true;
            // A server that was never quiet did not show the end of its answer.
            let needed = open.needed(quiet);
            let silent = !open.unanswered && open.quiet_since + needed <= now;
            self.guessed = (silent && needed < quiet.unknown).then_some(open.spoke);
            return Some(Settled {
                complete: true,
                pause: silent.then_some(open.pause),
                ..Settled::default()
            });
        }
        Some(Settled {
            gone: self.purge(),
            ..Settled::default()
        })
    }

    /// The first answer is over. Returns the unconfirmed names that the server would have mentioned if they existed.
    fn purge(&mut self) -> Vec<Name> {
        self.over = true;
        let (ignored, all) = (self.ignored, std::mem::take(&mut self.unconfirmed));
        let silent = |declared: &Declared| *declared != Declared::No && !ignored;
        let (silent, gone) = all.into_iter().partition(|(_, declared)| silent(declared));
        self.unconfirmed = silent;
        gone.into_keys().collect()
    }

    /// Whether the first answer has left names out, and it is not known what that means.
    pub(super) fn is_unsure(&self) -> bool {
        self.over && !self.unconfirmed.is_empty()
    }

    /// It is known now whether the server ignores the versions that it is sent. Returns the names that are gone, if it does.
    pub(super) fn tried(&mut self, ignores: bool) -> Vec<Name> {
        if !self.over {
            return Vec::new();
        }
        let silent = std::mem::take(&mut self.unconfirmed).into_keys();
        silent.filter(|_| ignores).collect()
    }
}

impl Open {
    const fn new(now: Instant) -> Self {
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

    /// How long the server must be quiet. What it has paused so far it may pause again.
    fn needed(&self, quiet: Quiet) -> Duration {
        match self.overtaken {
            true => quiet.needed.min(quiet.overtaken + self.pause * 2),
            false => quiet.needed,
        }
    }
}
