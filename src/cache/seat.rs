//! What one session has of a view.
//!
//! Owns the end of all its interest when it goes. Refuses to know what the session is told.

use std::sync::Arc;

use super::Full;
use super::bell::Bell;
use super::seats::Seated;
use super::view::View;
use crate::xds::Want;

/// One session's place at a view. Dropping it ends all that the session wants.
pub struct Seat {
    view: Arc<View>,
    number: u32,
    seated: Arc<Seated>,
}

impl Seat {
    pub(super) fn new(view: Arc<View>) -> Self {
        let (number, seated) = view.seats.enter();
        Self { view, number, seated }
    }

    /// The view.
    #[must_use]
    pub const fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// Its number among the view's sessions; used again after it has gone.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// What rings when something changes that this session wants.
    #[must_use]
    pub fn bell(&self) -> &Bell {
        &self.seated.bell
    }

    /// The session begins or ceases to want something; saying so twice is as good as once. It must look at the cut
    /// *after* a beginning: what was published before does not ring.
    ///
    /// # Errors
    ///
    /// More names are wanted than the view may keep; then nothing has begun.
    pub fn want(&self, want: &Want) -> Result<(), Full> {
        let view = &self.view;
        let come = if want.wanted {
            view.leases
                .begin(&want.type_url, &want.target, self.number, &self.seated)?
        } else {
            view.leases.end(&want.type_url, &want.target, &view.seats, &self.seated)
        };
        if come {
            view.interest.notify_one();
        }
        Ok(())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // What is leased knows this number, so it is given back last.
        if self.view.leases.end_all(&self.view.seats, &self.seated) {
            self.view.interest.notify_one();
        }
        self.view.seats.leave(self.number);
    }
}
