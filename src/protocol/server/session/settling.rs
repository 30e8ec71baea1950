// SPDX-License-Identifier: Apache-2.0
//! What follows when a client accepts or rejects a response (B-22, C-25).
//!
//! Owns what becomes of the rows of that response. Does not send anything.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Subscription;
use crate::server::flights::Flight;
use crate::server::ledger::Row;
use crate::server::nonce::Nonces;
use crate::server::response::{Changed, ReceiptKind, RejectedResponse};
use crate::server::waits::Wait;
use proto::google::rpc::Status as Detail;
use xds::{Answers, Item, Name, Objection, Said, Status, named_in, words_of};

/// After so long an address that a listener has given up is free.
const FREE_AFTER: Duration = Duration::from_secs(1);

/// How a response was rejected.
#[derive(Clone, Copy, Debug)]
struct Nacked<'a> {
    message: &'a str,
    /// The listeners in it that take addresses of others.
    takers: &'a [Name],
    /// Whether only one name was new in it.
    alone: bool,
    objection: &'a Arc<Objection>,
}

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
        let Some((flight, disputed)) = self.books.answer(number, error.is_none()) else {
            let is_last = self.books.flights().is_last(number);
            return match error {
                // B-08: this is neither an ACK nor a NACK, and needs no answer of its own.
                None if is_last => ReceiptKind::Update,
                Some(detail) if is_last && self.status() == Status::Synced => {
                    self.hear_of_clients(detail, answers, now)
                }
                None | Some(_) => ReceiptKind::Stale,
            };
        };
        match error {
            None => {
                self.note_free_address(&flight, now);
                ReceiptKind::Ack(self.accept(&flight, disputed))
            }
            Some(detail) => {
                self.asked.interrupted(now);
                let objection = answers.objection(&self.heard(detail, flight.sent), Some(&flight.batch));
                ReceiptKind::Nack {
                    response: RejectedResponse(Some(flight.batch.clone())),
                    given_up: self.reject(&flight, &detail.message, &objection, now),
                    objection,
                }
            }
        }
    }

    /// E-24: the client is a relay, holds the last response, and says that its own clients reject something of it.
    fn hear_of_clients(&mut self, detail: &Detail, answers: &impl Answers, now: Instant) -> ReceiptKind {
        let objection = answers.objection(&self.heard(detail, now), None);
        self.books.rejections_mut().note_relayed(objection.clone(), now);
        ReceiptKind::Nack {
            response: RejectedResponse(None),
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
        let (flight, disputed) = self.books.answer(number, true)?;
        Some(ReceiptKind::Ack(self.accept(&flight, disputed)))
    }

    /// The client has accepted a response; `disputed`: it had rejected something before. Returns what was new to it.
    fn accept(&mut self, flight: &Flight, disputed: bool) -> Option<Changed> {
        self.want.forget_version();
        self.settle_dropped(flight);
        if let Some(software) = self.reader.software() {
            flight.batch.note_accepted(software);
        }
        let removes = !flight.batch.removed().is_empty() && self.kind().listens();
        if !self.books.rejections().is_empty() && (removes || self.reader.has_aliases()) {
            self.books.try_again(false);
        }
        flight.since.map(|since| Changed {
            since,
            until: flight.batch.newest().map_or(since, |newest| newest.max(since)),
            news: flight.news,
            mends: disputed,
        })
    }

    /// B-16: an address that a listener has given up is free a moment later, for one that was rejected because of that.
    fn note_free_address(&mut self, flight: &Flight, now: Instant) {
        let listens = self.reader.full_state() && self.kind().listens();
        if listens
            && flight.before.rows.is_some()
            && self.waits.get(Wait::Again).is_none()
            && self.books.rejections().held_back().next().is_some()
        {
            self.waits.set(Wait::Again, Some(now + FREE_AFTER));
        }
    }

    /// What was given up while it was on its way, and is not wanted for another reason, the client has forgotten.
    fn settle_dropped(&mut self, flight: &Flight) {
        if !self.books.ledger().own().has_others() || self.reader.has_aliases() {
            return;
        }
        for name in flight.batch.items().iter().map(Item::name) {
            if matches!(self.books.ledger().get(name), Row::Perhaps) && !self.is_wanted(name) {
                self.drop(name);
            }
        }
    }

    /// The client has rejected a response: it may hold any part of it. Returns how many names are given up.
    fn reject(&mut self, flight: &Flight, message: &str, objection: &Arc<Objection>, now: Instant) -> usize {
        let full = self.reader.full_state();
        // A full state is the first that says what of its first version the client has.
        let brings = full && self.want.version().is_some();
        let (mut members, alone) = self.books.reject(flight, brings, now);
        self.settle_dropped(flight);
        members.retain(|name| self.is_wanted(name));
        let takers = flight.batch.last();
        let blame = Nacked {
            message,
            takers,
            alone,
            objection,
        };
        if full {
            self.books.rejections_mut().note_list(flight.batch.sum());
            self.conclude(&mut members, flight, blame);
            if !takers.is_empty() {
                self.waits.set(Wait::Again, Some(now + FREE_AFTER));
            }
        }
        self.divide(members, blame)
    }

    /// A full state is not taken apart for what the client may hold in any version: it can neither be left out, nor listed as it was. If the
    /// message names any of it, the client has taken the rest, as Envoy and gRPC do.
    fn conclude(&mut self, members: &mut Vec<Name>, flight: &Flight, blame: Nacked<'_>) {
        let words = named_in(blame.message);
        let blames = members.iter().any(|name| words.contains(name.as_str()));
        let mut held_back = Vec::new();
        members.retain(|name| {
            let dispute = self.books.rejections().dispute(name);
            let known = dispute.is_none_or(|dispute| dispute.may_be_listed());
            if !known && blames && !words.contains(name.as_str()) {
                let item = flight.batch.item(name);
                item.into_iter()
                    .for_each(|item| self.books.take_for_accepted(name, item.resource.clone()));
            } else if !known {
                held_back.push(name.clone());
            }
            known
        });
        if !held_back.is_empty() {
            self.books.try_parts(Vec::new(), held_back, blame.objection);
        }
    }

    /// B-22: the members that the message does not name go again first, then each named one alone; if it names none or all, halves.
    /// Listeners that take addresses of others count as named. What was rejected `alone` is held back; what is left of several, because the
    /// others have changed or gone meanwhile, was not.
    fn divide(&mut self, mut members: Vec<Name>, blame: Nacked<'_>) -> usize {
        if members.is_empty() {
            return 0;
        }
        // They have the order of the response, which is that of the names.
        let place = |word: &str| members.binary_search_by(|name| name.as_str().cmp(word)).ok();
        let words: BTreeSet<usize> = words_of(blame.message).filter_map(place).collect();
        let takers = blame.takers.iter().filter_map(|taker| place(taker.as_str()));
        let mut named: Vec<usize> = takers.filter(|at| !words.contains(at)).collect();
        named.extend(words);
        // B-18: secrets that it has never accepted cannot be left out, and nothing can be listed in their place.
        let accepted = |name: &Name| {
            let dispute = self.books.rejections().dispute(name);
            dispute.is_some_and(|dispute| dispute.holds().content().is_some())
        };
        let as_one = self.books.holds_back_as_one() && !members.iter().all(accepted);
        let mut groups = Vec::new();
        let mut held_back = Vec::new();
        if !named.is_empty() && named.len() < members.len() {
            let one = |at: usize| members.get(at).cloned();
            groups.push(
                (0..members.len())
                    .filter(|at| !named.contains(at))
                    .filter_map(one)
                    .collect(),
            );
            groups.extend(named.into_iter().map(|at| one(at).into_iter().collect()));
        } else if blame.alone || as_one {
            held_back = members;
        } else {
            let half = members.split_off(members.len() / 2);
            groups.extend([members, half]);
        }
        self.books.try_parts(groups, held_back, blame.objection)
    }

    /// A group would be tried in a full state that was rejected before, for this reason: that counts as its try.
    pub(super) fn repeat(&mut self, group: Vec<Name>, objection: &Arc<Objection>) {
        group.iter().for_each(|name| self.books.doubt(name));
        let blame = Nacked {
            message: "",
            takers: &[],
            alone: group.len() == 1,
            objection,
        };
        self.divide(group, blame);
    }
}
