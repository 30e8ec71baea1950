//! When a wildcard is complete.
//!
//! Owns the quiet that must come before it, and what was not confirmed since a reconnect. Refuses to know content.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::xds::Name;

/// Whether a wildcard is complete, and what it waits for until it is.
///
/// Invariant: `open` is there from the first response on a stream until the wildcard is complete.
#[derive(Debug)]
pub(super) struct Completeness {
    complete: bool,
    open: Option<Open>,
    /// Names held since before this stream that it has not mentioned, and whether the server was told that we hold them.
    unconfirmed: BTreeMap<Name, bool>,
    /// Those of them that were asked for by a name of their own since: they are sent whatever the server was told.
    asked: BTreeSet<Name>,
    /// The server resent what it was told that we hold.
    ignored: bool,
    /// A response was refused on this stream: what is resent since says nothing.
    refused: bool,
    /// The last message with a name that was new or unconfirmed.
    calm_since: Option<Instant>,
    /// It counts as complete because the server was quiet for less than an unknown one must be: when it last spoke.
    guessed: Option<Instant>,
}

#[derive(Debug)]
struct Open {
    first: Instant,
    quiet_since: Instant,
    /// When the server last said more, or a part of what may be more.
    spoke: Instant,
    /// The longest time between that and the next time.
    pause: Duration,
    /// The same with parts of messages of which it is not known yet whether they say more.
    perhaps: Duration,
    /// A message with new names is not answered yet.
    unanswered: bool,
    /// The server said that more follows.
    more: bool,
    /// The last message had an entry that may have been any name.
    doubtful: bool,
}

/// What the passing of time brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) complete: bool,
    pub(super) gone: Vec<Name>,
    /// The server was seen to come to the end of its answer: how long it had been quiet before within it, at the longest.
    pub(super) pause: Option<Duration>,
}

/// How long a server must be quiet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quiet {
    /// Until its answer counts as complete.
    pub(super) needed: Duration,
    /// The same for a server of which nothing is known.
    pub(super) unknown: Duration,
}

/// However busy the server is, a first answer takes no longer than this.
const AT_MOST: Duration = Duration::from_secs(10);
/// How long it must be quiet before what was not mentioned after a clean start counts as gone.
const CALM: Duration = Duration::from_secs(5);

/// A response, as far as completeness is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// It had a name that was new, or not confirmed yet.
    pub(super) news: bool,
    pub(super) more: Option<bool>,
    pub(super) uncertain: bool,
}

impl Completeness {
    pub(super) const fn new() -> Self {
        Self {
            complete: false,
            open: None,
            unconfirmed: BTreeMap::new(),
            asked: BTreeSet::new(),
            ignored: false,
            refused: false,
            calm_since: None,
            guessed: None,
        }
    }

    pub(super) const fn complete(&self) -> bool {
        self.complete
    }

    /// Whether it waits for nothing.
    pub(super) fn rests(&self) -> bool {
        self.open.is_none() && (self.unconfirmed.is_empty() || self.calm_since.is_none())
    }

    /// A stream begins on which the server is told of the names marked so.
    pub(super) fn connected(&mut self, held: BTreeMap<Name, bool>) {
        self.unconfirmed = held;
        self.asked.clear();
        self.ignored = false;
        self.refused = false;
    }

    /// These are held since an earlier run of the relay; the server is not told of them.
    pub(super) fn restored(&mut self, names: impl Iterator<Item = Name>) {
        self.unconfirmed.extend(names.map(|name| (name, false)));
    }

    /// A stream ended; what is known stays (G-19).
    pub(super) fn disconnected(&mut self) {
        self.open = None;
        self.unconfirmed.clear();
        self.asked.clear();
        self.calm_since = None;
        self.guessed = None;
    }

    /// This is asked for by a name of its own: that the server sends it again says nothing.
    pub(super) fn asked(&mut self, name: &Name) {
        if self.unconfirmed.contains_key(name) {
            self.asked.insert(name.clone());
        }
    }

    /// The server sent this name. Whether that was still open.
    pub(super) fn confirm(&mut self, name: &Name, same_version: bool) -> bool {
        let Some(declared) = self.unconfirmed.remove(name) else {
            return false;
        };
        // It resends what it was told that we hold: it does not look at the map, and will not say what is gone.
        let asked = self.asked.remove(name);
        self.ignored |= declared && same_version && !asked && !self.refused;
        true
    }

    /// A response is refused. E-22: some servers then send all of it again.
    pub(super) const fn refuse(&mut self) {
        self.refused = true;
    }

    /// All of it came in one answer. Whether that is new.
    pub(super) fn finish(&mut self) -> bool {
        self.open = None;
        self.unconfirmed.clear();
        self.asked.clear();
        self.calm_since = None;
        !std::mem::replace(&mut self.complete, true)
    }

    /// A delta response came.
    pub(super) fn heard(&mut self, heard: Heard, quiet: Quiet, now: Instant) -> Settled {
        if heard.news || self.calm_since.is_none() {
            self.calm_since = Some(now);
        }
        if !self.complete {
            let open = self.open.get_or_insert(Open {
                first: now,
                quiet_since: now,
                spoke: now,
                pause: Duration::ZERO,
                perhaps: Duration::ZERO,
                unanswered: true,
                more: false,
                doubtful: false,
            });
            open.doubtful = heard.uncertain;
            open.more = heard.more == Some(true);
            if heard.news {
                let pause = now.saturating_duration_since(open.spoke);
                open.pause = open.pause.max(open.perhaps).max(pause);
                open.spoke = now;
                open.quiet_since = now;
                open.unanswered = true;
            }
        }
        if heard.more == Some(false) && !heard.uncertain {
            let gone = self.purge();
            let complete = self.finish();
            return Settled {
                complete,
                gone,
                pause: None,
            };
        }
        Settled {
            pause: self.pause_after_all(heard.news, quiet, now),
            ..Settled::default()
        }
    }

    /// What counts as complete was not, as far as can be known: the server paused for longer than it was given.
    fn pause_after_all(&mut self, news: bool, quiet: Quiet, now: Instant) -> Option<Duration> {
        let since = self.guessed.filter(|_| news)?;
        let pause = now.saturating_duration_since(since);
        self.guessed = (pause < quiet.unknown).then_some(now);
        self.guessed.map(|_| pause)
    }

    /// Our answers to all that came are on their way.
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

    /// When the wildcard is complete, or what was not confirmed is gone, if nothing happens before.
    pub(super) fn deadline(&self, quiet: Quiet) -> Option<Instant> {
        match &self.open {
            Some(open) if open.more || open.doubtful => None,
            Some(open) if open.unanswered => Some(open.first + AT_MOST),
            Some(open) => Some((open.quiet_since + quiet.needed).min(open.first + AT_MOST)),
            None if self.complete && !self.unconfirmed.is_empty() => self.calm_since.map(|since| since + CALM),
            None => None,
        }
    }

    pub(super) fn timeout(&mut self, quiet: Quiet, now: Instant) -> Settled {
        if self.deadline(quiet).is_none_or(|at| at > now) {
            return Settled::default();
        }
        if let Some(open) = self.open.take() {
            self.complete = true;
            // Who never ceased to speak showed no end.
            let silent = !open.unanswered && open.quiet_since + quiet.needed <= now;
            self.guessed = (silent && quiet.needed < quiet.unknown).then_some(open.spoke);
            return Settled {
                complete: true,
                gone: Vec::new(),
                pause: silent.then_some(open.pause),
            };
        }
        Settled {
            gone: self.purge(),
            ..Settled::default()
        }
    }

    /// What the server would have mentioned if it existed.
    fn purge(&mut self) -> Vec<Name> {
        let ignored = self.ignored;
        self.asked.clear();
        let unconfirmed = std::mem::take(&mut self.unconfirmed).into_iter();
        unconfirmed
            .filter(|(_, declared)| !declared || ignored)
            .map(|(name, _)| name)
            .collect()
    }
}
