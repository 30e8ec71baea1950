// SPDX-License-Identifier: Apache-2.0
//! The place of one session at a view.
//!
//! Owns the end of all its interest when it goes. Does not know what the session is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::{Rejecter, View};
use crate::interest::{Bell, Seated};
use crate::{Claims, Full};
use classes::{Marks, Node};
use xds::{Name, TypeUrl, Want};

/// One session's place at a view. Dropping it ends all that the session wants.
pub struct Seat {
    view: Arc<View>,
    number: u32,
    seated: Arc<Seated>,
    /// Whether the client has rejected anything.
    tells: AtomicBool,
}

impl View {
    /// Returns a seat for one more session, on a connection of its own.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Seat {
        self.enter_by(&Arc::default())
    }

    /// Returns a seat for one more session on the connection with these claims.
    #[must_use]
    pub fn enter_by(self: &Arc<Self>, claims: &Arc<Claims>) -> Seat {
        Seat::new(self.clone(), None, claims.clone(), None)
    }
}

impl Seat {
    pub(crate) fn new(view: Arc<View>, owner: Option<Arc<str>>, claims: Arc<Claims>, node: Option<Arc<Node>>) -> Self {
        let (number, seated) = view.demand.enter(owner, claims, node);
        view.neighbours.wake_onlookers();
        Self {
            view,
            number,
            seated,
            tells: AtomicBool::new(false),
        }
    }

    /// The view.
    #[must_use]
    pub const fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// K-25: the client has come through these relays.
    pub fn come_through(&self, marks: Option<&Arc<Marks>>) {
        self.view.mailbox.come_through(self.number, marks);
    }

    /// The client says where it stands with a name of which it has rejected something; without a name: it is a relay, and speaks for its
    /// clients. `None`: it rejects nothing of it any more.
    pub fn tell(&self, told: (&TypeUrl, Option<&Name>), rejecter: Option<Rejecter>, now: Instant) {
        self.tells.store(true, Ordering::Relaxed);
        let view = &self.view;
        let replaced = |name: &Name, version| view.head.replaced_version(told.0, name, version);
        if view.rejected.tell(self.number, told, rejecter, replaced, now) {
            view.mailbox.wake();
        }
    }

    /// The client has said for now where it stands: what it uses is published.
    pub fn rest_stances(&self) {
        if self.view.rejected.uses_others() {
            self.view.publish_older();
        }
    }

    /// The session reads another view, and says there where its client stands.
    pub fn take_back(&self) {
        if self.tells.swap(false, Ordering::Relaxed) {
            self.view.rejected.leave(self.number);
        }
    }

    /// Returns another seat at the same view, for the names of another owner.
    #[must_use]
    pub fn beside(&self, owner: Option<Arc<str>>, marks: Option<&Arc<Marks>>) -> Self {
        let seat = Self::new(
            self.view.clone(),
            owner,
            self.claims().clone(),
            self.seated.node().cloned(),
        );
        seat.come_through(marks);
        seat
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

    /// K-20: whether the bell has said, and the session has taken, all that a cut shows which it has read before it asks this. If not, the
    /// session knows a part of one change, and must take what the bell says first.
    #[must_use]
    pub fn is_told(&self) -> bool {
        !self.view.head.is_ringing() && !self.bell().has_rung()
    }

    /// Sets whether the session reads another view, and keeps this seat to move here later.
    pub fn watch(&self, watches: bool) {
        if self.seated.watch(watches) {
            self.view.neighbours.wake_onlookers();
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
        let Self {
            view, number, seated, ..
        } = self;
        view.demand.want(*number, seated, want, &view.mailbox)
    }

    /// The session is about to want the wildcard of this type: the server is asked for it now. If nobody comes to want it, it lingers and
    /// ends.
    pub fn foresee(&self, type_url: &TypeUrl) {
        self.view.demand.foresee(type_url, &self.view.mailbox);
    }

    /// The session has stated what it wants for now. Many sessions often want the same few targets, so a small set is replaced by
    /// a shared one at once: a set of its own that ends a moment later would leave a hole in the heap.
    pub fn rest(&self) {
        let Self {
            view, number, seated, ..
        } = self;
        view.demand.rest(*number, seated, &view.mailbox);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.take_back();
        self.come_through(None);
        self.view.demand.leave(self.number, &self.seated, &self.view.mailbox);
        self.view.neighbours.wake_onlookers();
    }
}
