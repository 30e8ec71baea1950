// SPDX-License-Identifier: Apache-2.0
//! How the wants of a session begin and end.
//!
//! Owns the way of a want into the set of its session, and of a set that no session has any more to its end. Wakes the writer, and does
//! not know what it does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Demand;
use crate::interest::{ENDS_IN_A_TURN, Own, Seated, Set};
use crate::view::mailbox::Mailbox;
use crate::{Claims, Full};
use xds::{Target, TypeUrl, Want};

/// What the writer learns in one turn.
pub(crate) struct WriterTurn {
    /// What it must tell upstream.
    pub(crate) wants: Vec<Want>,
    /// What nobody wants any more.
    pub(crate) ended: Vec<(TypeUrl, Target)>,
    /// Whether there is more.
    pub(crate) is_short: bool,
}

/// A set of at most so many leases is small.
const FEW: usize = 16;
/// How many leases a session that goes ends by itself.
const LEASES_AT_ONCE: usize = 1024;
/// How many leases one call of [`Demand::settle`] looks at.
const SETTLE_AT_ONCE: usize = 1 << 18;

impl Demand {
    /// Begins or ends a want of the session; a repetition changes nothing. After a beginning the session must look at the cut:
    /// what was published before does not ring.
    ///
    /// # Errors
    ///
    /// More names are wanted than the view may keep; then nothing has begun.
    pub(crate) fn want(&self, number: u32, seated: &Seated, want: &Want, mailbox: &Mailbox) -> Result<(), Full> {
        let mut review = seated.review.lock();
        review.changed = true;
        if !std::mem::replace(&mut review.noted, true) {
            self.unsettled.lock().push(number);
        }
        let come = if want.wanted {
            self.begin(number, seated.claims(), want, mailbox)?
        } else {
            self.end(number, want, mailbox)
        };
        if come {
            mailbox.wake();
        }
        Ok(())
    }

    /// Somebody is about to want the wildcard of this type: the server is asked for it now. If nobody comes to want it, it lingers and
    /// ends.
    pub(crate) fn foresee(&self, type_url: &TypeUrl, mailbox: &Mailbox) {
        if self.leases.foresee(type_url, &Target::Wildcard) {
            mailbox.wake();
        }
    }

    /// The session has stated what it wants for now. Many sessions often want the same few targets, so a small set is replaced by
    /// a shared one at once: a set of its own that ends a moment later would leave a hole in the heap.
    pub(crate) fn rest(&self, number: u32, seated: &Seated, mailbox: &Mailbox) {
        let _review = seated.review.lock();
        let (_, left) = self.sets.settle(number, FEW);
        left.iter().for_each(|set| self.dissolve(set, mailbox));
    }

    /// The session has gone, and with it all that it wants.
    pub(crate) fn leave(&self, number: u32, seated: &Seated, mailbox: &Mailbox) {
        let _review = seated.review.lock();
        let left = self.sets.leave(number);
        left.iter().for_each(|set| self.dissolve(set, mailbox));
    }

    /// Must be called about every second. Sessions whose wants have not changed since the last call get equal shared sets, if
    /// there are any. Each call does a bounded amount of work and leaves the rest to later calls.
    pub(crate) fn settle(&self, mailbox: &Mailbox) {
        let unsettled = std::mem::take(&mut *self.unsettled.lock());
        let (mut work, mut later) = (0, Vec::new());
        for seat in unsettled {
            if work >= SETTLE_AT_ONCE {
                later.push(seat);
                continue;
            }
            let Some(seated) = self.sets.read().seated(seat).cloned() else {
                continue;
            };
            let mut review = seated.review.lock();
            if std::mem::take(&mut review.changed) {
                later.push(seat);
                continue;
            }
            // While `review` is locked, nobody else changes the session's sets. But the session may have gone, and another may
            // have its number.
            let same = self
                .sets
                .read()
                .seated(seat)
                .is_some_and(|now| Arc::ptr_eq(now, &seated));
            review.noted = false;
            if same {
                let (looked_at, left) = self.sets.settle(seat, usize::MAX);
                work += looked_at;
                left.iter().for_each(|set| self.dissolve(set, mailbox));
            }
        }
        later.shrink_to_fit();
        self.unsettled.lock().append(&mut later);
    }

    /// Returns what the writer learns now. `fleeting` says what does not linger.
    pub(crate) fn turn(&self, now: Instant, fleeting: &impl Fn(&TypeUrl, &Target) -> bool) -> WriterTurn {
        let more = self.end_some();
        let mut written = self.written.lock();
        let turn = self.leases.turn(now, &self.sets, fleeting);
        let is_short = turn.is_short();
        self.behind.store(is_short, Ordering::Relaxed);
        written.forget(&turn.ended);
        WriterTurn {
            wants: written.tell(turn.wants),
            ended: turn.ended,
            is_short: more || is_short,
        }
    }

    fn begin(&self, number: u32, claims: &Claims, want: &Want, mailbox: &Mailbox) -> Result<bool, Full> {
        let set = match self.sets.find(number, &want.type_url) {
            Some((set, true)) => set,
            Some((set, false)) if self.has(&set, want) => {
                let written = self.written.of(want);
                return Ok(written.is_some_and(|mut written| written.note(want, true)));
            }
            Some(_) | None => self.own(number, &want.type_url, mailbox),
        };
        let leases = &self.leases;
        let mut written = self.written.of(want);
        let leased = written.is_some() && leases.find(&want.type_url, &want.target).is_some();
        let begun = leases.begin(&want.type_url, &want.target, &set, claims);
        let more = written.as_mut().filter(|_| begun.is_ok());
        let more = more.is_some_and(|written| written.note(want, leased));
        drop(written);
        self.drop_empty(number, &set, want);
        begun.map(|come| come | more)
    }

    fn end(&self, number: u32, want: &Want, mailbox: &Mailbox) -> bool {
        let (sets, leases) = (&self.sets, &self.leases);
        let set = match sets.find(number, &want.type_url) {
            Some((set, true)) => set,
            Some((set, false)) if self.has(&set, want) => self.own(number, &want.type_url, mailbox),
            Some(_) | None => return false,
        };
        let come = leases.end(&want.type_url, &want.target, sets, &set);
        self.drop_empty(number, &set, want);
        come
    }

    fn drop_empty(&self, number: u32, set: &Set, want: &Want) {
        if set.len() == 0 {
            let empty = self.sets.drop_set(number, &want.type_url);
            empty.into_iter().for_each(|empty| self.sets.close(&empty));
        }
    }

    fn has(&self, set: &Set, want: &Want) -> bool {
        let lease = self.leases.find(&want.type_url, &want.target);
        lease.is_some_and(|lease| set.has(lease))
    }

    /// Returns the session's set of the type, as one that no other session has.
    fn own(&self, number: u32, type_url: &TypeUrl, mailbox: &Mailbox) -> Arc<Set> {
        let (sets, leases) = (&self.sets, &self.leases);
        match sets.own(number, type_url) {
            Own::Set(set) => set,
            Own::Copy(from, copy) => {
                leases.copy(&from, &copy);
                let left = sets.take_copy(number, type_url, copy.number);
                left.iter().for_each(|left| self.dissolve(left, mailbox));
                copy
            }
        }
    }

    /// Ends all leases of a set that no session has any more. A large one is left to the writer, which ends it in slices, so that
    /// the clients on this thread have their turns.
    fn dissolve(&self, set: &Arc<Set>, mailbox: &Mailbox) {
        let large = set.len() > LEASES_AT_ONCE;
        if large {
            self.ending.lock().push(set.clone());
        }
        if large || self.leases.end_some(&self.sets, set, LEASES_AT_ONCE) {
            mailbox.wake();
        }
        if !large {
            self.sets.close(set);
        }
    }

    /// Ends some leases of the sets that no session has any more. Returns whether there are more.
    fn end_some(&self) -> bool {
        let Some(set) = self.ending.lock().last().cloned() else {
            return false;
        };
        self.leases.end_some(&self.sets, &set, ENDS_IN_A_TURN);
        let ended = set.len() == 0;
        let mut ending = self.ending.lock();
        if ended {
            self.sets.close(&set);
            ending.retain(|other| other.number != set.number);
        }
        !ending.is_empty()
    }
}
