//! What follows when a client accepts or rejects a response (B-22, C-25).
//!
//! Owns what becomes of the rows of that response. Does not send anything.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::Subscription;
use crate::server::flights::Flight;
use crate::server::ledger::Row;
use crate::server::nonce::Nonces;
use crate::server::response::{Changed, ReceiptKind, Rejected};
use proto::google::rpc::Status as Detail;
use xds::{Answers, Item, Kind, Name, Objection, Said, Version, words_of};

impl Subscription {
    /// B-05, C-02: the nonce says which response is meant, and only `error_detail` says that it was rejected (B-06, B-07).
    pub(super) fn settle(
        &mut self,
        nonce: &str,
        error: Option<&Detail>,
        nonces: Nonces,
        answers: &impl Answers,
        now: Instant,
    ) -> ReceiptKind {
        if nonce.is_empty() {
            return ReceiptKind::Update;
        }
        let Some(number) = nonces.number(nonce.as_bytes()) else {
            return ReceiptKind::Stale;
        };
        let Some((flight, again)) = self.books.answer(number, error.is_none()) else {
            let is_last = self.books.flights().is_last(number);
            return match error {
                // B-08: this is neither an ACK nor a NACK, and needs no answer of its own.
                None if is_last => ReceiptKind::Update,
                Some(detail) if is_last && self.accepts_all() => self.hear_of_clients(detail, answers, now),
                None | Some(_) => ReceiptKind::Stale,
            };
        };
        let kind = match error {
            None => ReceiptKind::Ack(self.accept(&flight)),
            Some(detail) => {
                self.asked.interrupted(now);
                let objection = answers.objection(&self.heard(detail, flight.sent), Some(&flight.batch));
                ReceiptKind::Nack {
                    response: Rejected(Some(flight.batch.clone())),
                    given_up: self.reject((&flight, again), &detail.message, &objection, now),
                    objection,
                }
            }
        };
        self.want.forget_version();
        kind
    }

    /// Whether the client has accepted every response and rejects nothing.
    fn accepts_all(&self) -> bool {
        let books = &self.books;
        books.flights().is_empty() && books.rejections().is_empty() && self.notes.refused().is_none()
    }

    /// E-24: the client is a relay, holds the last response, and says that its own clients reject something of it.
    fn hear_of_clients(&mut self, detail: &Detail, answers: &impl Answers, now: Instant) -> ReceiptKind {
        let objection = answers.objection(&self.heard(detail, now), None);
        self.notes.note_relayed(objection.clone());
        ReceiptKind::Nack {
            response: Rejected(None),
            given_up: 0,
            objection,
        }
    }

    fn heard<'a>(&'a self, detail: &'a Detail, sent: Instant) -> Said<'a> {
        Said {
            type_url: self.type_url(),
            code: detail.code,
            words: &detail.message,
            sent,
        }
    }

    /// Takes a response that the client acknowledges, if it is on its way.
    pub(in crate::server) fn acknowledge(&mut self, number: u64) -> Option<ReceiptKind> {
        let (flight, _) = self.books.answer(number, true)?;
        Some(ReceiptKind::Ack(self.accept(&flight)))
    }

    /// The client has accepted a response. Returns what was new to it.
    fn accept(&mut self, flight: &Flight) -> Option<Changed> {
        self.notes.forget_relayed();
        self.settle_dropped(flight);
        if self.reader.full_state() {
            self.notes.forget_refused();
        }
        let removes = !flight.batch.removed().is_empty() && self.reader.traits().kind == Kind::Lds;
        if !self.books.rejections().is_empty() && (removes || self.reader.has_aliases()) {
            self.books.try_again();
        }
        flight.since.map(|since| Changed {
            since,
            until: flight.batch.newest().map_or(since, |newest| newest.max(since)),
            news: flight.news,
        })
    }

    /// What was given up while it was on its way, and is not wanted for another reason, the client has forgotten.
    fn settle_dropped(&mut self, flight: &Flight) {
        if self.books.ledger().is_shared() || self.reader.has_aliases() {
            return;
        }
        for name in flight.batch.items().iter().map(Item::name) {
            if matches!(self.books.ledger().get(name), Row::Perhaps) && !self.is_wanted(name) {
                self.drop(name);
            }
        }
    }

    /// The client has rejected a response, in which something was tried `again`: it may hold any part of it. Returns how many names are given up.
    fn reject(
        &mut self,
        (flight, again): (&Flight, bool),
        message: &str,
        objection: &Arc<Objection>,
        now: Instant,
    ) -> usize {
        if self.reader.full_state() {
            self.refuse(flight, objection, now);
            return 0;
        }
        let members = self.books.reject(flight);
        self.settle_dropped(flight);
        self.divide(members, flight.fresh().count() == 1, message, again, objection)
    }

    /// B-22: the members that the message does not name go again first, then each named one alone; if it names none or all, halves.
    /// What was rejected `alone` is held back; what is left of several, because the others have changed or gone meanwhile, was not.
    fn divide(
        &mut self,
        mut members: Vec<(Name, Version)>,
        alone: bool,
        message: &str,
        again: bool,
        objection: &Arc<Objection>,
    ) -> usize {
        members.retain(|(name, _)| self.is_wanted(name));
        if members.is_empty() {
            return 0;
        }
        // They have the order of the response, which is that of the names.
        let place = |word: &str| members.binary_search_by(|(name, _)| name.as_str().cmp(word)).ok();
        let named: BTreeSet<usize> = words_of(message).filter_map(place).collect();
        // B-18: secrets that it has never accepted cannot be left out, and nothing can be listed in their place.
        let accepted = |(name, _): &(Name, Version)| self.books.marks().accepted(name).is_some();
        let as_one = self.books.holds_back_as_one() && !members.iter().all(accepted);
        let mut groups = Vec::new();
        let mut held_back = Vec::new();
        if !named.is_empty() && named.len() < members.len() {
            let mut others = Vec::new();
            for (at, member) in members.into_iter().enumerate() {
                if named.contains(&at) {
                    groups.push(vec![member]);
                } else {
                    others.push(member);
                }
            }
            groups.insert(0, others);
        } else if alone || as_one {
            held_back = members;
        } else {
            let half = members.split_off(members.len() / 2);
            groups.extend([members, half]);
        }
        self.books.try_parts(groups, held_back, again, objection)
    }
}
