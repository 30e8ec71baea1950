//! The way of what clients reject to the server (E-24): a question to the clients, their answer, and one request.
//!
//! Owns which types have something to ask or to say. Does not know how clients are asked.

use std::collections::BTreeSet;
use std::time::Instant;

use super::Request;
use super::complaint::complaint;
use super::feed::Feed;
use xds::{Dialect, Name, Rejection, TypeUrl, Version};

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

    /// Returns the types of which it is to be found out what clients reject, each once.
    pub(super) fn take_questions(&mut self) -> BTreeSet<TypeUrl> {
        std::mem::take(&mut self.questions)
    }

    /// Takes all that clients reject of a type.
    pub(super) fn answer(&mut self, feed: &mut Feed, rejections: &[Rejection]) {
        if let Some((late, kept)) = feed.late(false) {
            late.answer(rejections, kept);
        }
        self.note(feed);
    }

    /// Returns the types with something to say.
    pub(super) fn unsaid(&self) -> Vec<TypeUrl> {
        self.unsaid.iter().cloned().collect()
    }

    /// Nothing is said of a type.
    pub(super) fn forget(&mut self, type_url: &TypeUrl) {
        self.unsaid.remove(type_url);
    }

    /// Returns the request that tells the server what clients reject of a type, if it may be told now.
    pub(super) fn tell(&mut self, feed: &mut Feed, dialect: Dialect, now: Instant) -> Option<Request> {
        let told = feed.late(true);
        let rejections = told.map_or_else(Vec::new, |(late, kept)| late.take(now, kept));
        self.note(feed);
        if rejections.is_empty() {
            return None;
        }
        let type_url = feed.type_url();
        let request = feed
            .outbound()
            .report(type_url, dialect, complaint(type_url, &rejections));
        self.reported = Some(Reported {
            type_url: type_url.clone(),
            contents: rejections.into_iter().filter_map(|one| one.content).collect(),
            at: now,
        });
        Some(request)
    }

    /// Returns what the last request told the server, once.
    pub(super) const fn take_reported(&mut self) -> Option<Reported> {
        self.reported.take()
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
