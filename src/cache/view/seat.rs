//! The place of one session at a view.
//!
//! Owns the end of all its interest when it goes. Does not know what the session is told.

use std::sync::Arc;
use std::time::Instant;

use super::View;
use crate::interest::{Bell, ENDS_IN_A_TURN, Own, Seated, Set};
use crate::{Claims, Full};
use classes::Node;
use xds::{Condemned, Cut, Target, TypeUrl, Want};

/// One session's place at a view. Dropping it ends all that the session wants.
pub struct Seat {
    view: Arc<View>,
    number: u32,
    seated: Arc<Seated>,
}

/// A set of at most so many leases is small.
const FEW: usize = 16;
/// How many leases a session that goes ends by itself.
const LEASES_AT_ONCE: usize = 1024;

impl View {
    /// Returns a seat for one more session, on a connection of its own.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Seat {
        self.enter_by(&Arc::default())
    }

    /// Returns a seat for one more session on the connection with these claims.
    #[must_use]
    pub fn enter_by(self: &Arc<Self>, claims: &Arc<Claims>) -> Seat {
        Seat::new(self.clone(), None, claims.clone())
    }

    /// Ends all leases of a set that no session has any more. A large one is left to the writer, which ends it in slices, so that
    /// the clients on this thread have their turns.
    pub(super) fn dissolve(&self, set: &Arc<Set>) {
        let large = set.len() > LEASES_AT_ONCE;
        if large {
            self.ending.lock().push(set.clone());
        }
        if large || self.leases.end_some(&self.sets, set, LEASES_AT_ONCE) {
            self.interest.notify_one();
        }
        if !large {
            self.sets.close(set);
        }
    }

    /// Ends some leases of the sets that no session has any more. Returns whether there are more.
    pub(super) fn end_some(&self) -> bool {
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

impl Seat {
    pub(crate) fn new(view: Arc<View>, owner: Option<Arc<str>>, claims: Arc<Claims>) -> Self {
        let (number, seated) = view.sets.enter(owner, claims);
        view.wake_onlookers();
        Self { view, number, seated }
    }

    /// The view.
    #[must_use]
    pub const fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// Returns what the session of a client reads. `keeps` says whether the client was sent a content and needs no other in its place.
    pub fn cut(&self, node: &Node, keeps: impl Fn(&Condemned) -> bool) -> Arc<Cut> {
        self.view.cut_for(node, self.number, keeps)
    }

    /// Returns what is condemned for the client, unless it tries that.
    #[must_use]
    pub fn condemned(&self, node: &Node) -> Vec<Arc<Condemned>> {
        self.view.condemned_for(node, self.number)
    }

    /// The session of a client begins.
    pub fn come(&self, node: &Node, now: Instant) {
        self.view.come(node, self.number, now);
    }

    /// The client has rejected something of this type.
    pub fn reject(&self, type_url: &TypeUrl) {
        self.view.end_trial(self.number);
        self.view.note_rejecting(type_url, self.number);
        self.view.note_rejection(type_url);
    }

    /// Returns another seat at the same view, for the names of another owner.
    #[must_use]
    pub fn beside(&self, owner: Option<Arc<str>>) -> Self {
        Self::new(self.view.clone(), owner, self.claims().clone())
    }

    /// The claims of the session's connection.
    #[must_use]
    pub fn claims(&self) -> &Arc<Claims> {
        self.seated.claims()
    }

    /// Its number among the view's sessions; used again after it has gone.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The bell, which rings when something changes that this session wants.
    #[must_use]
    pub fn bell(&self) -> &Bell {
        &self.seated.bell
    }

    /// Sets whether the session reads another view, and keeps this seat to move here later.
    pub fn watch(&self, watches: bool) {
        if self.seated.watch(watches) {
            self.view.wake_onlookers();
        }
    }

    /// Sets whether the session has seats at the views of other servers as well. Then it is told of each change of the state of
    /// this view's server, also while it reads this view and may give up the others (G-08).
    pub fn compare(&self, compares: bool) {
        self.seated.compare(compares);
    }

    /// Begins or ends a want of the session; a repetition changes nothing. After a beginning the session must look at the cut:
    /// what was published before does not ring.
    ///
    /// # Errors
    ///
    /// More names are wanted than the view may keep; then nothing has begun.
    pub fn want(&self, want: &Want) -> Result<(), Full> {
        let mut review = self.seated.review.lock();
        review.changed = true;
        if !std::mem::replace(&mut review.noted, true) {
            self.view.unsettled.lock().push(self.number);
        }
        let come = if want.wanted { self.begin(want)? } else { self.end(want) };
        if come {
            self.view.interest.notify_one();
        }
        Ok(())
    }

    /// The session is about to want the wildcard of this type: the server is asked for it now. If nobody comes to want it, it lingers and
    /// ends.
    pub fn foresee(&self, type_url: &TypeUrl) {
        if self.view.leases.foresee(type_url, &Target::Wildcard) {
            self.view.interest.notify_one();
        }
    }

    /// The session has stated what it wants for now. Many sessions often want the same few targets, so a small set is replaced by
    /// a shared one at once: a set of its own that ends a moment later would leave a hole in the heap.
    pub fn rest(&self) {
        let _review = self.seated.review.lock();
        let (_, left) = self.view.sets.settle(self.number, FEW);
        left.iter().for_each(|set| self.view.dissolve(set));
    }

    fn begin(&self, want: &Want) -> Result<bool, Full> {
        let set = match self.view.sets.find(self.number, &want.type_url) {
            Some((set, true)) => set,
            Some((set, false)) if self.has(&set, want) => {
                let written = self.view.written.of(want);
                return Ok(written.is_some_and(|mut written| written.note(want, true)));
            }
            Some(_) | None => self.own(&want.type_url),
        };
        let leases = &self.view.leases;
        let mut written = self.view.written.of(want);
        let leased = written.is_some() && leases.find(&want.type_url, &want.target).is_some();
        let begun = leases.begin(&want.type_url, &want.target, &set, self.seated.claims());
        let more = written.as_mut().filter(|_| begun.is_ok());
        let more = more.is_some_and(|written| written.note(want, leased));
        drop(written);
        self.drop_empty(&set, want);
        begun.map(|come| come | more)
    }

    fn end(&self, want: &Want) -> bool {
        let (sets, leases) = (&self.view.sets, &self.view.leases);
        let set = match sets.find(self.number, &want.type_url) {
            Some((set, true)) => set,
            Some((set, false)) if self.has(&set, want) => self.own(&want.type_url),
            Some(_) | None => return false,
        };
        let come = leases.end(&want.type_url, &want.target, sets, &set);
        self.drop_empty(&set, want);
        come
    }

    fn drop_empty(&self, set: &Set, want: &Want) {
        if set.len() == 0 {
            let empty = self.view.sets.drop_set(self.number, &want.type_url);
            empty.into_iter().for_each(|empty| self.view.sets.close(&empty));
        }
    }

    fn has(&self, set: &Set, want: &Want) -> bool {
        let lease = self.view.leases.find(&want.type_url, &want.target);
        lease.is_some_and(|lease| set.has(lease))
    }

    /// Returns the session's set of the type, as one that no other session has.
    fn own(&self, type_url: &TypeUrl) -> Arc<Set> {
        let (sets, leases) = (&self.view.sets, &self.view.leases);
        match sets.own(self.number, type_url) {
            Own::Set(set) => set,
            Own::Copy(from, copy) => {
                leases.copy(&from, &copy);
                let left = sets.take_copy(self.number, type_url, copy.number);
                left.iter().for_each(|left| self.view.dissolve(left));
                copy
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.view.end_trial(self.number);
        let _review = self.seated.review.lock();
        let left = self.view.sets.leave(self.number);
        left.iter().for_each(|set| self.view.dissolve(set));
        self.view.wake_onlookers();
    }
}
