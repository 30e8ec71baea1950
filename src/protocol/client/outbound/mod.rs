// SPDX-License-Identifier: Apache-2.0
//! The subscription of one type on the present stream: what the server knows of it, and what it must be sent next.
//!
//! Owns the difference between the two and its form in both dialects. Knows nothing of resources.

mod requests;

pub(super) use requests::Opening;

use std::collections::BTreeSet;
use std::time::Instant;

use super::acks::Acks;
use super::ways::Spellings;
use crate::sorted::Sorted;
use xds::Name;

/// The subscription of one type on one stream. The wildcard is a name here, as on the wire.
///
/// Invariant: `leave` is part of `told`; a name in both `join` and `told` is in `leave`.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    /// The first request for this type on this stream, if it was sent.
    opened: Option<Opening>,
    /// The server has answered on this stream.
    answered: bool,
    acks: Acks,
    told: Sorted<Name>,
    /// SotW: the names in the first request on this stream, until a response comes; only of a type with full states.
    first: Vec<Name>,
    join: BTreeSet<Name>,
    leave: BTreeSet<Name>,
    /// The spellings of the names.
    ways: Spellings,
    /// SotW: the names were sent with a NACK, and are sent once more without one.
    repeat: bool,
    /// SotW: the list does not become empty.
    keeps_one: bool,
    /// E-25: the same is to be asked for once more, without a version.
    again: bool,
}

impl Outbound {
    /// A stream begins: everything must be sent again (E-04).
    pub(super) fn connected(&mut self, wanted: BTreeSet<Name>) {
        self.disconnected();
        self.join = wanted;
    }

    /// The stream ended.
    pub(super) fn disconnected(&mut self) {
        let mut ways = std::mem::take(&mut self.ways);
        ways.reset();
        *self = Self {
            ways,
            ..Self::default()
        };
    }

    pub(super) const fn is_opened(&self) -> bool {
        self.opened.is_some()
    }

    /// Returns when the first request was sent.
    pub(super) fn opened(&self) -> Option<Instant> {
        self.opened.map(|opening| opening.at)
    }

    /// Returns its place in the order in which types were first requested on this stream.
    pub(super) fn place(&self) -> Option<u32> {
        self.opened.map(|opening| opening.place)
    }

    pub(super) const fn is_answered(&self) -> bool {
        self.answered
    }

    /// The server has answered. Returns whether that is its first answer on this stream, and the names that a full state in SotW answers
    /// for then.
    pub(super) fn hear(&mut self) -> (bool, Vec<Name>) {
        let first = !std::mem::replace(&mut self.answered, true);
        (first, std::mem::take(&mut self.first))
    }

    pub(super) const fn acks(&self) -> &Acks {
        &self.acks
    }

    /// Returns the same, for another response.
    pub(super) const fn acks_mut(&mut self) -> &mut Acks {
        &mut self.acks
    }

    pub(super) const fn ways(&self) -> &Spellings {
        &self.ways
    }

    /// Returns the same, for what the server says of single spellings.
    pub(super) const fn ways_mut(&mut self) -> &mut Spellings {
        &mut self.ways
    }

    /// E-25: the same is asked for once more, without a version.
    pub(super) const fn ask_again(&mut self) {
        self.again = true;
    }

    pub(super) fn join(&mut self, name: Name) {
        self.keeps_one = false;
        self.join.insert(name);
    }

    /// A name is not wanted any more. Its spellings are forgotten once the server knows that.
    pub(super) fn leave(&mut self, name: &Name) {
        self.join.remove(name);
        self.ways.leave(name);
        match self.told.get(name.as_str()) {
            Some(told) => _ = self.leave.insert(told.clone()),
            None => self.ways.forget(name),
        }
    }

    /// SotW: a name leaves the list, but nothing is given up. A server may take an empty list for a question about all that it has, so
    /// the last name stays in it until another one comes.
    pub(super) fn leave_for_another(&mut self, name: &Name) {
        self.leave(name);
        self.keeps_one = true;
    }

    /// SotW: a name that has left for another comes back. Returns whether the server is to be asked for it: not if it was never told.
    pub(super) fn come_back(&mut self, name: &Name) -> bool {
        let left = !self.leave.remove(name);
        if left {
            self.join(name.clone());
        }
        left
    }

    /// Nothing of the type is wanted here any more: what the server has answered does not count, and in SotW the list may become empty.
    pub(super) const fn give_up(&mut self) {
        (self.keeps_one, self.answered) = (false, false);
    }

    /// Whether names are to leave the list of the next request.
    fn leaves(&self) -> bool {
        let all = self.keeps_one && self.join.is_empty() && self.told.len() == self.leave.len();
        !self.leave.is_empty() && !all
    }

    /// F-07: adds a spelling of a name. `known`: the name was wanted already; `held`: the server has content for it. Returns
    /// whether the server must be asked for it too.
    pub(super) fn write(&mut self, name: &Name, written: Option<&Name>, known: bool, held: bool) -> bool {
        let stays = self.stays(name);
        self.ways.add(name, written, known, held) && stays && self.ways.ask_more(name, written.unwrap_or(name))
    }

    /// The server says that nothing exists under this spelling of the name. Returns whether that settles the name.
    pub(super) fn absent(&mut self, name: &Name, text: &str) -> bool {
        let stays = self.stays(name);
        self.ways.absent(name, text, stays)
    }

    /// The content of a name is gone; another spelling may still have some.
    pub(super) fn lost(&mut self, name: &Name) {
        if let Some(text) = self.ways.answered(name).cloned() {
            self.absent(name, text.as_str());
        }
    }

    /// Whether the server was asked for a name, and is not to be told that it is not wanted.
    pub(super) fn stays(&self, name: &Name) -> bool {
        self.told.contains(name.as_str()) && !self.leave.contains(name)
    }

    /// Whether the server was asked for this name and must be sent an unsubscription, also if the name is wanted again after
    /// that.
    pub(super) fn is_leaving(&self, name: &str) -> bool {
        self.leave.contains(name)
    }

    /// Whether the server was asked for this name.
    pub(super) fn has_told(&self, name: &str) -> bool {
        self.told.contains(name)
    }

    /// Whether there is anything to send at all, now or later.
    pub(super) fn is_ready(&self) -> bool {
        !self.acks.is_empty() || self.changed()
    }

    pub(super) fn changed(&self) -> bool {
        self.repeat || self.again || !self.join.is_empty() || self.leaves() || self.ways.changed()
    }

    /// E-24: whether the server may be told what clients reject: it has got the acknowledgement of the last response on this stream, and
    /// there is nothing else to send.
    pub(super) fn is_at_rest(&self) -> bool {
        self.acks.acknowledged() && !self.changed()
    }

    /// SotW: whether the last request may be sent once more: its response was accepted, or there was none.
    pub(super) fn may_repeat(&self) -> bool {
        self.is_at_rest() || self.acks.nonce().is_empty() && self.acks.is_empty() && !self.changed()
    }
}
