//! Which client of each kind tries what is condemned for it.
//!
//! Owns that one does from time to time, until it rejects something or goes. Does not know what is condemned.

use std::time::{Duration, Instant};

use classes::ClientKind;

/// Who tries what is condemned. One client of each kind does in each [`TRIAL`].
#[derive(Default)]
pub(super) struct Trials {
    all: Vec<Trial>,
    begun: bool,
}

struct Trial {
    kind: Option<ClientKind>,
    next: Instant,
    seat: Option<u32>,
}

/// So often a client that comes tries what is condemned for its kind.
const TRIAL: Duration = Duration::from_secs(10 * 60);

impl Trials {
    /// For these kinds something is condemned from now on.
    pub(super) fn set(&mut self, kinds: impl Iterator<Item = Option<ClientKind>>, now: Instant) {
        let mut before = std::mem::take(&mut self.all);
        for kind in kinds {
            let known = before.iter().position(|trial| trial.kind == kind);
            self.all.push(match known {
                Some(at) => before.swap_remove(at),
                None => Trial {
                    kind,
                    next: now + TRIAL,
                    seat: None,
                },
            });
        }
    }

    fn of(&mut self, kind: Option<&ClientKind>) -> Option<&mut Trial> {
        self.all.iter_mut().find(|trial| trial.kind.as_ref() == kind)
    }

    /// A client of this kind comes. Returns whether it begins to try.
    pub(super) fn begin(&mut self, kind: Option<&ClientKind>, seat: u32, now: Instant) -> bool {
        let Some(trial) = self.of(kind).filter(|trial| trial.next <= now) else {
            return false;
        };
        trial.next = now + TRIAL;
        trial.seat = Some(seat);
        self.begun = true;
        true
    }

    /// Whether the client at this seat tries what is condemned for its kind.
    pub(super) fn has(&mut self, kind: Option<&ClientKind>, seat: u32) -> bool {
        self.of(kind).is_some_and(|trial| trial.seat == Some(seat))
    }

    /// The client at this seat does not try any more.
    pub(super) fn end(&mut self, seat: u32) {
        self.all.iter_mut().for_each(|trial| {
            trial.seat.take_if(|tries| *tries == seat);
        });
    }

    /// Returns whether a client has begun since the last call.
    pub(super) fn take_begun(&mut self) -> bool {
        std::mem::take(&mut self.begun)
    }
}
