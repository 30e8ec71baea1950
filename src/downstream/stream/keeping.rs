// SPDX-License-Identifier: Apache-2.0
//! The memory of one request until all of it was handled.
//!
//! Owns the rule for what does not fit: one request of the process is kept all the same, and all others end. Does not know what is in a
//! request.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::Status;

use crate::wire::{Charge, Share};

/// What keeps a request: a part of its connection's share, or the one place beyond all shares.
pub(super) struct Keeping {
    charge: Charge,
    beyond: Option<SemaphorePermit<'static>>,
}

/// The place beyond. Without it, no client could ask for very much while the memory for requests is small.
static BEYOND: Semaphore = Semaphore::const_new(1);

impl Keeping {
    pub(super) const fn new(share: Arc<Share>) -> Self {
        Self {
            charge: Charge::new(share),
            beyond: None,
        }
    }

    /// Keeps so many bytes while the request waits for its turn: not in the place beyond, which is for the one that is worked on.
    ///
    /// # Errors
    /// There is no memory for them.
    pub(super) fn wait(&mut self, bytes: usize) -> Result<(), Status> {
        self.charge.set(bytes).map_err(Status::from)
    }

    /// Keeps so many bytes.
    ///
    /// # Errors
    /// There is no memory for them, and another request has the place beyond.
    pub(super) fn keep(&mut self, bytes: usize) -> Result<(), Status> {
        if self.beyond.is_some() {
            return Ok(());
        }
        self.charge.set(bytes).or_else(|short| {
            self.beyond = BEYOND.try_acquire().ok();
            self.beyond.as_ref().map(drop).ok_or_else(|| short.into())
        })
    }

    /// Ready when it must be given up, because other connections need the memory.
    pub(super) fn poll_given_up(&mut self, cx: &Context<'_>) -> Poll<Status> {
        self.charge.poll_given_up(cx).map(Status::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Budget;

    /// One request is kept although there is no memory for it. The others end, and have the place when it has gone.
    #[test]
    fn one_place_beyond_all_shares() {
        let budget = Arc::new(Budget::new(1000));
        let keep = |bytes| {
            let mut kept = Keeping::new(budget.share());
            kept.keep(bytes).map(|()| kept)
        };
        let beyond = keep(2000);
        assert!(beyond.is_ok() && keep(2000).is_err());
        let others = [keep(500), keep(400)];
        assert!(others.iter().all(Result::is_ok) && budget.bytes() == 900);
        drop(beyond);
        assert!(keep(2000).is_ok());
    }
}
