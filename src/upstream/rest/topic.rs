//! One type that is polled.
//!
//! Owns what is asked for, with which version, and when next. H-07: there is at most one poll of a type on its way. Refuses to
//! know what answers say.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::proto::envoy::service::discovery::v3::DiscoveryResponse;
use crate::proto::google::rpc;
use crate::protocol::{Backoff, Pause};
use crate::xds::{Name, Target, Want};

#[derive(Debug)]
pub(super) struct Topic {
    wildcard: bool,
    names: BTreeSet<Name>,
    /// By which texts those are asked for that are not written in the canonical way alone (F-07).
    written: BTreeMap<Name, BTreeSet<Name>>,
    /// What the server said last, as far as that counts for what is asked now.
    pub(super) version: String,
    /// What was wrong with it.
    pub(super) fault: Option<rpc::Status>,
    /// What is wanted has changed since the last answer: many servers look at the version alone.
    pub(super) changed: bool,
    /// Whether it had changed before the last answer.
    pub(super) answers_change: bool,
    pub(super) due: Instant,
    /// News, and when they came. They wait until what belongs to them was asked for once more.
    pub(super) news: Option<(DiscoveryResponse, Instant)>,
    answered: Option<Instant>,
    /// Whether an answer is waited for.
    pub(super) asked: bool,
    backoff: Backoff,
    /// The one after the last poll, if that failed as one of any other type would have.
    pause: Option<Pause>,
    /// What was wrong with the last poll.
    trouble: Option<String>,
}

/// So long news wait at most for what belongs to them.
pub(super) const ORDER: Duration = Duration::from_millis(250);
/// Polls of many relays, and of many types, do not come together.
const SPREAD: f64 = 0.1;

impl Topic {
    /// `reconnect_max` is the longest pause after a failure.
    pub(super) fn new(reconnect_max: Duration, now: Instant) -> Self {
        Self {
            wildcard: false,
            names: BTreeSet::new(),
            written: BTreeMap::new(),
            version: String::new(),
            fault: None,
            changed: true,
            answers_change: false,
            due: now,
            news: None,
            answered: None,
            asked: false,
            backoff: Backoff::new(reconnect_max),
            pause: None,
            trouble: None,
        }
    }

    /// Something is wanted, or no more. A poll that does not ask for it is given up.
    pub(super) fn want(&mut self, want: &Want, now: Instant) {
        match (&want.target, want.wanted) {
            (Target::Wildcard, wanted) => self.wildcard = wanted,
            (Target::Name(name), true) => self.write(name, want.written.as_ref()),
            (Target::Name(name), false) => {
                self.names.remove(name);
                self.written.remove(name);
            }
        }
        if want.wanted {
            self.changed = true;
            self.asked = false;
            self.news = None;
            // What failed is not asked more often because more is wanted of it.
            if self.trouble.is_none() {
                self.due = now;
            }
        }
    }

    fn write(&mut self, name: &Name, written: Option<&Name>) {
        let known = !self.names.insert(name.clone());
        match (self.written.get_mut(name), written) {
            (Some(texts), _) => drop(texts.insert(written.unwrap_or(name).clone())),
            (None, None) => {}
            (None, Some(text)) => {
                let own = known.then(|| name.clone());
                let texts = own.into_iter().chain([text.clone()]).collect();
                self.written.insert(name.clone(), texts);
            }
        }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wildcard || !self.names.is_empty()
    }

    /// H-05, H-06: what the next poll asks for; nothing is everything.
    pub(super) fn names(&self) -> Vec<String> {
        if self.wildcard {
            return Vec::new();
        }
        let texts = self.names.iter().flat_map(|name| {
            let texts = self.written.get(name);
            let own = texts.is_none().then_some(name);
            own.into_iter().chain(texts.into_iter().flatten())
        });
        texts.map(Name::to_string).collect()
    }

    pub(super) fn answered(&mut self, interval: Duration, dice: f64, now: Instant) {
        self.asked = false;
        self.answered = Some(now);
        self.backoff.handle_response();
        self.pause = None;
        self.trouble = None;
        self.due = now + interval.mul_f64(1.0 + SPREAD * (2.0 * dice - 1.0));
    }

    /// Whether nothing is known of it that is as new as what came then, and may still come.
    pub(super) fn is_behind(&self, came: Instant) -> bool {
        let answered = self.answered.is_some_and(|answered| answered >= came);
        self.news.is_none() && self.trouble.is_none() && !answered
    }

    /// When it is to be looked at by itself.
    pub(super) fn wakes(&self) -> Option<Instant> {
        match &self.news {
            Some((_, came)) => Some(*came + ORDER),
            None => (!self.asked).then_some(self.due),
        }
    }

    /// It is tried again after a pause; whether it failed `alone`, as no other type would have.
    pub(super) fn failed(&mut self, trouble: String, alone: bool, dice: f64, now: Instant) {
        self.asked = false;
        self.trouble = Some(trouble);
        let pause = Pause::new(self.backoff.handle_failure(dice), now);
        self.due = pause.due(false);
        self.pause = (!alone).then_some(pause);
    }

    /// E-14: a client waits for an answer that nobody has.
    pub(super) fn hurry(&mut self) {
        if let Some(pause) = &self.pause {
            self.due = self.due.min(pause.due(true));
        }
    }

    /// What was wrong with the last poll, and when the next one is made.
    pub(super) fn trouble(&self) -> Option<(String, Instant)> {
        Some((self.trouble.clone()?, self.due))
    }
}
