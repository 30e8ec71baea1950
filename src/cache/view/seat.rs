//! The place of one session at a view.
//!
//! Owns the end of all its interest when it goes. Does not know what the session is told.

use std::sync::Arc;
use std::time::Instant;

use super::View;
use crate::interest::{Bell, Seated};
use crate::{Claims, Full};
use classes::{Marks, Node};
use xds::{Condemned, Cut, TypeUrl, Want};

/// One session's place at a view. Dropping it ends all that the session wants.
pub struct Seat {
    view: Arc<View>,
    number: u32,
    seated: Arc<Seated>,
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
        Seat::new(self.clone(), None, claims.clone())
    }
}

impl Seat {
    pub(crate) fn new(view: Arc<View>, owner: Option<Arc<str>>, claims: Arc<Claims>) -> Self {
        let (number, seated) = view.demand.enter(owner, claims);
        view.neighbours.wake_onlookers();
        Self { view, number, seated }
    }

    /// The view.
    #[must_use]
    pub const fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// Returns what the session of a client reads. `keeps` says whether the client was sent a content and needs no other in its place.
    pub fn cut(&self, node: &Node, keeps: impl Fn(&Condemned) -> bool) -> Arc<Cut> {
        self.view.verdicts.cut_for(self.view.cut(), node, self.number, keeps)
    }

    /// Returns what is condemned for the client, unless it tries that.
    #[must_use]
    pub fn condemned(&self, node: &Node) -> Vec<Arc<Condemned>> {
        self.view.verdicts.condemned_for(node, self.number)
    }

    /// K-25: the client has come through these relays.
    pub fn come_through(&self, marks: Option<&Arc<Marks>>) {
        self.view.mailbox.come_through(self.number, marks);
    }

    /// The session of a client begins.
    pub fn come(&self, node: &Node, now: Instant) {
        if self.view.verdicts.come(node, self.number, now) {
            self.view.verdicts.docket().add(&self.view);
        }
    }

    /// The client has rejected something of this type.
    pub fn reject(&self, type_url: &TypeUrl) {
        self.view.verdicts.end_trial(self.number);
        self.view.verdicts.note_rejecting(type_url, self.number);
        self.view.note_rejection(type_url);
    }

    /// Returns another seat at the same view, for the names of another owner.
    #[must_use]
    pub fn beside(&self, owner: Option<Arc<str>>, marks: Option<&Arc<Marks>>) -> Self {
        let seat = Self::new(self.view.clone(), owner, self.claims().clone());
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
        let Self { view, number, seated } = self;
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
        let Self { view, number, seated } = self;
        view.demand.rest(*number, seated, &view.mailbox);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.view.verdicts.end_trial(self.number);
        self.come_through(None);
        self.view.demand.leave(self.number, &self.seated, &self.view.mailbox);
        self.view.neighbours.wake_onlookers();
    }
}
