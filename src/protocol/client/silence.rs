//! Questions that the server passes over while it answers for other types of the same stream (E-27).
//!
//! Owns when a question counts as passed over. Does not decide what follows: a server may just have nothing to say.

use std::time::{Duration, Instant};

use super::Client;
use xds::{TypeUrl, Want};

/// When the server was heard last for a type on the present stream, and since when a question waits.
#[derive(Debug, Default)]
pub(super) struct Silence {
    heard: Option<Instant>,
    asked: Option<Instant>,
}

/// A question that the server has passed over.
#[derive(Debug)]
pub struct PassedOver {
    /// The type.
    pub type_url: TypeUrl,
    /// Some of what the server was asked for, which nothing is known of.
    pub wants: Vec<Want>,
    /// When it was asked.
    pub asked: Instant,
}

/// So many names of a question that was passed over are told.
pub(super) const TOLD_MAX: usize = 64;

impl Silence {
    /// The server was asked for something that nothing is known of.
    pub(super) fn ask(&mut self, now: Instant) {
        self.asked.get_or_insert(now);
    }

    /// The server has said something about the type.
    pub(super) const fn hear(&mut self, now: Instant) {
        self.heard = Some(now);
        self.asked = None;
    }

    pub(super) fn has_heard_since(&self, then: Instant) -> bool {
        self.heard.is_some_and(|heard| heard > then)
    }

    pub(super) fn deadline(&self, patience: Duration) -> Option<Instant> {
        self.asked.map(|asked| asked + patience)
    }

    /// Takes the question, if it has waited for so long.
    pub(super) fn take_overdue(&mut self, patience: Duration, now: Instant) -> Option<Instant> {
        self.asked.take_if(|asked| *asked + patience <= now)
    }
}

impl Client {
    /// Returns a question that the server has passed over since the last call, once.
    pub fn take_passed_over(&mut self) -> Option<PassedOver> {
        Some(self.stream.as_mut()?.passed_over.pop_first()?.1)
    }

    /// Whether the type is still wanted on this stream, and the server has said nothing about it since the question.
    #[must_use]
    pub fn waits_for(&self, question: &PassedOver) -> bool {
        let feed = self.feeds.get(&question.type_url);
        feed.is_some_and(|feed| feed.wanted() && !feed.has_heard_since(question.asked))
    }

    /// The time of a type has come. To be called before its names stop waiting.
    pub(super) fn note_silence(&mut self, type_url: &TypeUrl, now: Instant) {
        let Some(feed) = self.feeds.get_mut(type_url) else {
            return;
        };
        let Some(asked) = feed.take_overdue_question(now) else {
            return;
        };
        let wants = feed.lacked();
        let others = self.feeds.iter().filter(|(other, _)| *other != type_url);
        let goes_on = others.into_iter().any(|(_, feed)| feed.has_heard_since(asked));
        if let Some(stream) = self.stream.as_mut().filter(|_| goes_on && !wants.is_empty()) {
            let type_url = type_url.clone();
            let passed_over = PassedOver {
                type_url: type_url.clone(),
                wants,
                asked,
            };
            stream.passed_over.insert(type_url, passed_over);
        }
    }
}
