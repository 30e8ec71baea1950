// SPDX-License-Identifier: Apache-2.0
//! One type that is polled.
//!
//! Owns the names to ask for, their version, and when the next poll is due. H-07: there is at most one poll of a type under way.
//! Knows nothing of the contents of answers.

use std::time::{Duration, Instant};

use crate::proto::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use crate::protocol::{Backoff, Pause};
use crate::xds::Name;

#[derive(Debug)]
pub(super) struct Topic {
    /// What the machine has asked for last: names, the version of the last accepted response, and why the last one was rejected.
    request: DiscoveryRequest,
    /// Whether the wants have changed since the last answer, or a part of that was rejected. Then the poll has no version: many
    /// servers look at the version alone.
    changed: bool,
    due: Instant,
    /// A response and when it arrived. It waits until the types that belong to it were polled once more.
    news: Option<(DiscoveryResponse, Instant)>,
    answered: Option<Instant>,
    /// Whether a poll is under way.
    asked: bool,
    backoff: Backoff,
    /// The pause after the last poll, if it failed because of the server and not of this type.
    pause: Option<Pause>,
    /// The error of the last poll.
    trouble: Option<String>,
}

/// How long a response waits at most for the types that belong to it.
pub(super) const ORDER: Duration = Duration::from_millis(250);
/// How much the interval varies, so that polls of many relays and types do not come together.
const SPREAD: f64 = 0.1;

impl Topic {
    /// `reconnect_max` is the longest pause after a failure.
    pub(super) fn new(reconnect_max: Duration, now: Instant) -> Self {
        Self {
            request: DiscoveryRequest::default(),
            changed: true,
            due: now,
            news: None,
            answered: None,
            asked: false,
            backoff: Backoff::new(reconnect_max),
            pause: None,
            trouble: None,
        }
    }

    /// Something more is wanted. A poll under way that does not ask for it no longer counts.
    pub(super) fn want(&mut self, now: Instant) {
        self.changed = true;
        self.asked = false;
        self.news = None;
        // After a failure a new want does not shorten the pause.
        if self.trouble.is_none() {
            self.due = now;
        }
    }

    /// Returns the next poll, without node and type, if it is due.
    pub(super) fn ask(&mut self, now: Instant) -> Option<DiscoveryRequest> {
        if self.asked || self.news.is_some() || self.due > now {
            return None;
        }
        self.asked = true;
        let mut request = self.request.clone();
        request.response_nonce = String::new();
        if self.changed {
            request.version_info = String::new();
        }
        // H-05, H-06: no names mean everything.
        if request.resource_names.iter().any(|name| name == Name::WILDCARD) {
            request.resource_names = Vec::new();
        }
        Some(request)
    }

    /// Keeps what the machine asks for, until the next poll. Returns the words of its refusal.
    pub(super) fn keep_request(&mut self, request: DiscoveryRequest) -> Option<String> {
        self.request = request;
        let fault = self.request.error_detail.as_ref();
        // E-13: the sound resources of the rejected response are used, so the last accepted version is no longer that of what is held,
        // and the next poll must not state it.
        self.changed |= fault.is_some();
        fault.map(|fault| fault.message.clone())
    }

    /// Whether a poll is under way.
    pub(super) const fn is_asked(&self) -> bool {
        self.asked
    }

    /// Returns when the next poll is due.
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// The next poll is made now.
    pub(super) fn poll_now(&mut self, now: Instant) {
        self.due = self.due.min(now);
    }

    /// Keeps a response until the types that belong to it were polled once more.
    pub(super) fn keep(&mut self, response: DiscoveryResponse, now: Instant) {
        self.news = Some((response, now));
    }

    /// Returns when the response arrived that was not taken yet.
    pub(super) fn came(&self) -> Option<Instant> {
        self.news.as_ref().map(|(_, came)| *came)
    }

    /// Takes the response that was kept.
    pub(super) fn take_news(&mut self) -> Option<(DiscoveryResponse, Instant)> {
        let news = self.news.take()?;
        self.changed = false;
        Some(news)
    }

    /// The server is gone: everything is asked for anew.
    pub(super) fn forget(&mut self) {
        self.changed = true;
        self.news = None;
    }

    /// G-12: another server has stood in. A response that was not taken yet is discarded and asked for anew.
    pub(super) fn supersede(&mut self) {
        self.shorten();
        if let Some(came) = self.came() {
            self.due = came;
        }
        self.forget();
    }

    /// Replaces the longest pause after a failure.
    pub(super) fn set_most(&mut self, reconnect_max: Duration) {
        self.backoff.set_most(reconnect_max);
    }

    pub(super) fn answered(&mut self, interval: Duration, dice: f64, now: Instant) {
        self.asked = false;
        self.answered = Some(now);
        self.backoff.handle_response();
        self.pause = None;
        self.trouble = None;
        self.due = now + interval.mul_f64(1.0 + SPREAD * (2.0 * dice - 1.0));
    }

    /// Whether its last answer is older than `came`, and a newer one can be expected.
    pub(super) fn is_behind(&self, came: Instant) -> bool {
        let answered = self.answered.is_some_and(|answered| answered >= came);
        self.news.is_none() && self.trouble.is_none() && !answered
    }

    /// Returns when it needs attention without any event.
    pub(super) fn wakes(&self) -> Option<Instant> {
        match &self.news {
            Some((_, came)) => Some(*came + ORDER),
            None => (!self.asked).then_some(self.due),
        }
    }

    /// The poll failed and is repeated after a pause. With `alone`, the failure concerns this type only, not the server.
    pub(super) fn failed(&mut self, trouble: String, alone: bool, dice: f64, now: Instant) {
        self.asked = false;
        self.trouble = Some(trouble);
        let pause = Pause::new(self.backoff.handle_failure(dice), now);
        self.due = pause.due(false);
        self.pause = (!alone).then_some(pause);
    }

    /// E-14: shortens the pause, because a client waits for a resource that is not known.
    pub(super) fn hurry(&mut self) {
        if let Some(pause) = &self.pause {
            self.due = self.due.min(pause.due(true));
        }
    }

    /// G-11: makes a pause as short as the first one is.
    pub(super) fn shorten(&mut self) {
        if let Some(pause) = &mut self.pause {
            pause.shorten();
            self.due = self.due.min(pause.due(false));
        }
    }

    /// Returns the error of the last poll, and when the next one is made.
    pub(super) fn trouble(&self) -> Option<(String, Instant)> {
        Some((self.trouble.clone()?, self.due))
    }
}
