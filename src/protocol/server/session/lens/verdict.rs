// SPDX-License-Identifier: Apache-2.0
//! What is due of one name: the one comparison of what the client was sent with what it should hold.
//!
//! Owns what must be sent of a name, and what follows for its row if that is nothing. Changes nothing.

use std::sync::{Arc, LazyLock};

use super::{Extent, Lens, Look};
use crate::server::books::NameOutcome;
use crate::server::ledger::Row;
use xds::{Dialect, Known, Name, Reason, Resource, ResourceError};

/// What a SotW client is told of a name that does not exist.
static NOT_FOUND: LazyLock<Arc<ResourceError>> = LazyLock::new(|| Arc::new(ResourceError::not_found()));

/// What must be sent of a name.
#[derive(Clone, Copy, Debug)]
pub(in crate::server::session) enum Say<'a> {
    /// The resource.
    Put(&'a Arc<Resource>),
    /// The resource, under its own name (C-20, A-09).
    Other(&'a Arc<Resource>),
    /// A heartbeat: the client holds the resource (K-17).
    Beat(&'a Arc<Resource>),
    /// That it is gone, and the client may hold it.
    Remove,
    /// That it does not exist: the client holds nothing, and waits for an answer.
    Missing,
    /// Only an error (B-31).
    Error,
    /// Older content: the client has rejected the current one, and holds nothing (K-37).
    Older,
}

impl Say<'_> {
    /// Whether it adds, changes or answers anything.
    pub(in crate::server::session) const fn adds(self) -> bool {
        self.brings() || matches!(self, Self::Missing | Self::Error)
    }

    /// Whether it is content that the client does not have.
    pub(in crate::server::session) const fn brings(self) -> bool {
        matches!(self, Self::Put(_) | Self::Other(_) | Self::Older)
    }
}

/// What must be sent of a name, or what becomes of it if that is nothing.
pub(in crate::server::session) type Due<'a> = Result<Say<'a>, NameOutcome>;

impl<'a> Lens<'_, 'a> {
    /// Returns what must be sent of a name.
    pub(in crate::server::session) fn say(&self, name: &Name) -> Option<Say<'a>> {
        self.judge(name).ok()
    }

    /// Compares what the client was sent under a name with what it should hold.
    pub(in crate::server::session) fn judge(&self, name: &Name) -> Due<'a> {
        let row = self.of.books.ledger().get(name);
        let verdict = if self.of.want.has_collection(name) {
            self.judge_collection(name, &row)
        } else {
            self.judge_single(name, &row)
        };
        match verdict {
            Err(_) if self.due_error(name).is_none() => verdict,
            Err(_) if self.of.turn.holds_errors() => Err(NameOutcome::Hidden),
            Err(_) => Ok(Say::Error),
            Ok(_) => verdict,
        }
    }

    fn judge_single(&self, name: &Name, row: &Row) -> Due<'a> {
        match self.look(name, row) {
            Look::Unknown if row.perhaps() && self.of.reader.has_aliases() => Err(NameOutcome::Hidden),
            Look::Unknown => Err(NameOutcome::Quiet),
            Look::Put(found) if self.of.reader.cannot_read(found) && matches!(row, Row::Asked) => {
                Err(NameOutcome::As(Row::Nothing))
            }
            Look::Put(found) if self.of.reader.cannot_read(found) => Err(NameOutcome::Quiet),
            Look::Put(found) if found.name() != self.of.want.meaning(name) => {
                // C-20: the resource goes as the client should hold it under its own name.
                let held = self.of.books.ledger().get(found.name());
                match self.look(found.name(), &held) {
                    Look::Put(own) if row.waits() || row.perhaps() => Ok(Say::Other(own)),
                    Look::Put(own) if !held.is(own.version()) && !self.refuses(found.name(), own) => {
                        Ok(Say::Other(own))
                    }
                    Look::Put(_) | Look::Gone | Look::Unknown => Err(NameOutcome::Quiet),
                }
            }
            Look::Put(found) if self.refuses(name, found) => match self.of.books.rejections().older(name) {
                Some(older) if !row.is(older.version()) => Ok(Say::Older),
                Some(_) | None => Err(NameOutcome::Quiet),
            },
            Look::Put(found) if !row.is(found.version()) => Ok(Say::Put(found)),
            // E-09: only the resource itself tells the client that an error is over.
            Look::Put(found) if self.of.books.marks().error(name).is_some() && self.error(name).is_none() => {
                Ok(Say::Put(found))
            }
            Look::Put(found) if self.beats(found) => Ok(Say::Beat(found)),
            // A pointer takes less memory than a version.
            Look::Put(found) if row.sent().is_none() => Err(NameOutcome::As(Row::Sent(found.clone()))),
            Look::Put(_) => Err(NameOutcome::Quiet),
            Look::Gone => match row {
                Row::Nothing => Err(NameOutcome::Quiet),
                Row::Asked if self.of.reader.dialect() == Dialect::Sotw || self.of.reader.waits_for_routes() => {
                    Err(NameOutcome::As(Row::Nothing))
                }
                Row::Asked => Ok(Say::Missing),
                // B-18: it may be listed as it was accepted.
                Row::Perhaps if self.of.reader.lists_all() && self.of.books.rejections().is_held_back(name) => {
                    Err(NameOutcome::As(Row::Perhaps))
                }
                Row::Perhaps | Row::Brought(_) | Row::Again(_) | Row::Sent(_) => self.judge_gone(name),
            },
        }
    }

    /// B-22: whether this content is held back.
    fn refuses(&self, name: &Name, found: &Resource) -> bool {
        self.of.books.rejections().refuses(name, found.version())
    }

    /// B-18: that a resource is gone cannot be said in a partial answer in SotW: the client may keep it, and if it comes back, it is
    /// sent again. Secrets are listed as long as the client asks for them: Envoy keeps and wants them, for example until a listener is
    /// drained. K-17: not if it was sent a time to live with the secret. B-31: not if the client can be told of its absence.
    fn judge_gone(&self, name: &Name) -> Due<'a> {
        if !self.of.reader.forgets() {
            return Ok(Say::Remove);
        }
        let told = self.of.reader.reads_errors() && self.error(name).is_some();
        let mortal = self.of.books.marks().beat(name).is_some();
        if self.of.reader.lists_all() && self.of.books.ledger().asks(name) && !mortal && !told {
            Err(NameOutcome::Quiet)
        } else {
            Err(NameOutcome::As(Row::Nothing))
        }
    }

    /// C-22: an empty collection is answered by its name, any other by its members.
    fn judge_collection(&self, name: &Name, row: &Row) -> Due<'a> {
        let extent = self.extent(name);
        let waits = matches!(row, Row::Asked | Row::Perhaps);
        let full = self.of.reader.full_state();
        match extent {
            Extent::Unknown => Err(NameOutcome::Quiet),
            // B-14: a full state answers it, even if the client held all of it, or it is empty.
            Extent::Empty | Extent::Some if full && waits => Ok(Say::Missing),
            Extent::Empty if self.of.reader.dialect() == Dialect::Delta => {
                // K-16: a server that did not answer in time is no reason to take away members that the client may hold.
                let silent = matches!(self.known(name), Some(Known::Absent(Reason::TimedOut)));
                let all = self.of.want.meaning(name);
                let holds = silent && self.of.books.ledger().within(all, "").any(|entry| entry.perhaps());
                if waits && !holds {
                    Ok(Say::Missing)
                } else {
                    Err(NameOutcome::Quiet)
                }
            }
            // A member answers it when it is sent, and may go before that.
            Extent::Some if waits && self.has_due_member(name) => Err(NameOutcome::Quiet),
            Extent::Empty | Extent::Some => Err(NameOutcome::As(Row::Nothing)),
        }
    }

    fn has_due_member(&self, collection: &Name) -> bool {
        let mut members = self.slot.members(self.of.want.meaning(collection));
        members.any(|member| self.say(member.name()).is_some())
    }

    /// Whether the client must be sent a heartbeat: it holds exactly this content. E-11: if the resource has no time to live any
    /// more, only the resource itself can say so.
    fn beats(&self, resource: &Resource) -> bool {
        if !self.of.reader.reads_ttl() {
            return false;
        }
        self.of.books.marks().beat(resource.name()) != self.slot.beat(resource)
    }

    /// Returns the error that the client must get for a name. K-16: in SotW, only an error can say that a name does not exist.
    pub(in crate::server::session) fn error(&self, name: &Name) -> Option<Arc<ResourceError>> {
        let meant = self.of.want.meaning(name);
        // B-31: an error has a name, so there is none for the empty name.
        let silent = || {
            let absent = || matches!(self.known(name), Some(Known::Absent(_)));
            // K-16: a server that is silent takes nothing away; and the wildcard may bring it.
            let gone = || matches!(self.look(name, &self.of.books.ledger().get(name)), Look::Gone);
            self.of.reader.dialect() == Dialect::Sotw && !meant.is_blank() && absent() && gone()
        };
        let said = self.slot.error(meant);
        said.or_else(|| silent().then_some(&NOT_FOUND)).cloned()
    }

    /// B-31: returns the error of a name if the client was not sent it yet. A full state lists what the client holds, and has no error
    /// beside it.
    pub(in crate::server::session) fn due_error(&self, name: &Name) -> Option<Arc<ResourceError>> {
        if !self.of.reader.reads_errors() || !self.of.books.ledger().asks(name) {
            return None;
        }
        if self.of.reader.full_state() && self.of.books.ledger().get(name).whole().is_some() {
            return None;
        }
        self.error(name)
            .filter(|error| self.of.books.marks().error(name) != Some(error))
    }
}
