//! The way of what clients reject to the server (E-24): a question to the clients, their answer, and one request.
//!
//! Owns which types have something to ask or to say. Does not know how clients are asked.

use std::collections::BTreeSet;
use std::time::Instant;

use super::complaint::complaint;
use super::feed::Feed;
use super::{Client, Request};
use xds::{Name, Rejection, TypeUrl, Version};

/// What passes between the machine and those who ask the clients.
#[derive(Debug, Default)]
pub(super) struct Reporting {
    questions: BTreeSet<TypeUrl>,
    /// The types with something to say.
    unsaid: BTreeSet<TypeUrl>,
    reported: Option<Reported>,
}

/// What the server was told in one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The type.
    pub type_url: TypeUrl,
    /// The contents that clients reject. Those of the clients of a relay are not known.
    pub contents: Vec<(Name, Version)>,
    /// When it was told.
    pub at: Instant,
}

impl Reporting {
    /// Asks the clients, if it is time.
    pub(super) fn ask(&mut self, feed: &mut Feed, now: Instant) {
        if feed.late(true).is_some_and(|(late, _)| late.asks(now)) {
            self.questions.insert(feed.type_url().clone());
        }
    }

    /// Records whether a type has something to say.
    fn note(&mut self, feed: &Feed) {
        if feed.has_unsaid() {
            self.unsaid.insert(feed.type_url().clone());
        } else {
            self.unsaid.remove(feed.type_url());
        }
    }
}

impl Client {
    /// E-24: a client has rejected something of this type.
    pub fn handle_rejected(&mut self, type_url: &TypeUrl, now: Instant) {
        if let Some(feed) = self.feeds.get_mut(type_url) {
            feed.rejected(now);
            self.note(type_url);
        }
    }

    /// Returns the types of which it is to be found out what clients reject, each once: see [`Self::handle_rejections`].
    pub fn take_questions(&mut self) -> BTreeSet<TypeUrl> {
        std::mem::take(&mut self.reporting.questions)
    }

    /// Takes all that clients reject of a type.
    pub fn handle_rejections(&mut self, type_url: &TypeUrl, rejections: &[Rejection]) {
        if let Some(feed) = self.feeds.get_mut(type_url) {
            if let Some((late, kept)) = feed.late(false) {
                late.answer(rejections, kept);
            }
            self.reporting.note(feed);
            self.note(type_url);
        }
    }

    /// Returns what the last request told the server, once.
    pub const fn take_reported(&mut self) -> Option<Reported> {
        self.reporting.reported.take()
    }

    /// Returns the next request that tells the server what clients reject.
    pub(super) fn report(&mut self, now: Instant) -> Option<Request> {
        let types: Vec<TypeUrl> = self.reporting.unsaid.iter().cloned().collect();
        types.iter().find_map(|type_url| self.report_of(type_url, now))
    }

    fn report_of(&mut self, type_url: &TypeUrl, now: Instant) -> Option<Request> {
        let asks = self.asks(type_url);
        let Some(feed) = self.feeds.get_mut(type_url).filter(|_| asks) else {
            self.reporting.unsaid.remove(type_url);
            return None;
        };
        let told = feed.late(true);
        let rejections = told.map_or_else(Vec::new, |(late, kept)| late.take(now, kept));
        self.reporting.note(feed);
        if rejections.is_empty() {
            return None;
        }
        let rejected = complaint(type_url, &rejections);
        let request = feed.outbound().report(type_url, self.dialect, rejected);
        self.reporting.reported = Some(Reported {
            type_url: type_url.clone(),
            contents: rejections.into_iter().filter_map(|one| one.content).collect(),
            at: now,
        });
        self.note(type_url);
        Some(request)
    }
}
