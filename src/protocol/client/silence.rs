//! Questions that the server passes over while it answers for other types of the same stream (E-27).
//!
//! Owns which of them are told. Does not decide what follows: a server may just have nothing to say.

use std::time::Instant;

use super::Client;
use xds::{TypeUrl, Want};

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
        let Some(question) = feed.take_passed_over(now) else {
            return;
        };
        let mut others = self.feeds.iter().filter(|(other, _)| *other != type_url);
        let goes_on = others.any(|(_, feed)| feed.has_heard_since(question.asked));
        let stream = self.stream.as_mut();
        if let Some(stream) = stream.filter(|_| goes_on && !question.wants.is_empty()) {
            stream.passed_over.insert(type_url.clone(), question);
        }
    }
}
