// SPDX-License-Identifier: Apache-2.0
//! The subscription of one type on the present stream: what the server knows of it, and what it must be sent next.
//!
//! Owns the difference between the two and its form in both dialects. Knows nothing of resources.

mod requests;

pub(super) use requests::Opening;

use std::collections::BTreeSet;

use super::acks::Acks;
use super::ways::Spellings;
use crate::sorted::Sorted;
use xds::Name;

/// The subscription of one type on one stream. The wildcard is a name here, as on the wire, and each spelling of a name (F-07) is one in
/// `told`, `join` and `leave`.
///
/// Invariant: `leave` is part of `told`; what is in both `join` and `told` is in `leave`.
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
    pub(super) fn connected<'a>(&mut self, wanted: impl Iterator<Item = &'a Name>) {
        self.disconnected();
        wanted.for_each(|name| _ = self.join(name));
    }

    /// The stream ended.
    pub(super) fn disconnected(&mut self) {
        *self = Self {
            ways: std::mem::take(&mut self.ways),
            ..Self::default()
        };
    }

    pub(super) const fn is_opened(&self) -> bool {
        self.opened.is_some()
    }

    /// Returns the first request on this stream, if it was sent.
    pub(super) const fn opened(&self) -> Option<Opening> {
        self.opened
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

    /// Returns the same, for what clients write and what the server says of single spellings.
    pub(super) const fn ways_mut(&mut self) -> &mut Spellings {
        &mut self.ways
    }

    /// E-25: the same is asked for once more, without a version.
    pub(super) const fn ask_again(&mut self) {
        self.again = true;
    }

    /// A name is wanted. Returns whether the server must be asked for any spelling of it.
    pub(super) fn join(&mut self, name: &Name) -> bool {
        let before = self.join.len();
        let new = |text: &&Name| !self.told.contains(text.as_str()) || self.leave.contains(*text);
        self.join.extend(self.ways.wanted(name).filter(new).cloned());
        let more = self.join.len() > before;
        self.keeps_one &= !more;
        more
    }

    /// A name is not wanted any more. Its spellings are forgotten once the server knows that.
    pub(super) fn leave(&mut self, name: &Name) {
        let texts = self.ways.texts(name.as_str()).into_iter().flatten();
        texts.chain([name]).for_each(|text| _ = self.join.remove(text));
        let told: Vec<Name> = self.told_as(name.as_str()).cloned().collect();
        if told.is_empty() {
            self.ways.forget(name);
        }
        self.leave.extend(told);
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
            self.join(name);
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

    /// The server says that nothing exists under this spelling of the name. Returns whether that settles the name. If the name stays
    /// requested, the server must be asked for the spellings that are left. E-17: one that was requested already is unsubscribed first: the
    /// relay ignored the server's answers to it.
    pub(super) fn absent(&mut self, name: &Name, text: &str) -> bool {
        let stays = self.stays(name);
        let (settled, left) = self.ways.absent(name, text);
        if stays && !left.is_empty() {
            let told = left.into_iter().filter(|text| self.told.contains(text.as_str()));
            self.leave.extend(told);
            self.join(name);
        }
        settled
    }

    /// The content of a name is gone; another spelling may still have some.
    pub(super) fn lost(&mut self, name: &Name) {
        if let Some(text) = self.ways.answered(name).cloned() {
            self.absent(name, text.as_str());
        }
    }

    /// Returns the spellings by which the server was asked for this name.
    pub(super) fn told_as<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Name> {
        let texts = self.ways.texts(name);
        let own = texts.is_none().then(|| self.told.get(name)).flatten();
        let texts = texts.into_iter().flatten();
        own.into_iter()
            .chain(texts.filter_map(|text| self.told.get(text.as_str())))
    }

    /// Whether the server was asked for a name, and is not to be told that it is not wanted.
    pub(super) fn stays(&self, name: &Name) -> bool {
        self.told_as(name.as_str()).any(|text| !self.leave.contains(text))
    }

    /// Whether the server was asked for this name and must be sent an unsubscription, also if the name is wanted again after
    /// that.
    pub(super) fn is_leaving(&self, name: &str) -> bool {
        let leaves = |text: &Name| self.leave.contains(text);
        !self.leave.is_empty() && self.has_told(name) && self.told_as(name).all(leaves)
    }

    /// Whether the server was asked for this name.
    pub(super) fn has_told(&self, name: &str) -> bool {
        self.told_as(name).next().is_some()
    }

    pub(super) fn changed(&self) -> bool {
        self.repeat || self.again || !self.join.is_empty() || self.leaves()
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
