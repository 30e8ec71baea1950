// SPDX-License-Identifier: Apache-2.0
//! Whose turn it is to take something that is large.
//!
//! Owns that each visitor has one turn at a time, and that there are few. Does not know what is taken.

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::identity::Identity;

/// The turns.
pub(super) struct Turns {
    taken: Mutex<Vec<Identity>>,
    ended: Notify,
}

/// A visitor's turn, until it is dropped.
pub(super) struct HeldTurn<'a> {
    turns: &'a Turns,
    of: Identity,
}

/// How many there are at a time. Each takes a thread.
const MOST: usize = 8;

impl Turns {
    pub(super) const fn new() -> Self {
        Self {
            taken: Mutex::new(Vec::new()),
            ended: Notify::const_new(),
        }
    }

    /// Waits until this visitor has no other turn, and there is one.
    pub(super) async fn take(&self, of: &Identity) -> HeldTurn<'_> {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // From here on no end is missed.
            ended.as_mut().enable();
            {
                let mut taken = self.taken.lock();
                if taken.len() < MOST && !taken.contains(of) {
                    taken.push(of.clone());
                    let of = of.clone();
                    return HeldTurn { turns: self, of };
                }
            }
            ended.await;
        }
    }
}

impl Drop for HeldTurn<'_> {
    fn drop(&mut self) {
        self.turns.taken.lock().retain(|of| *of != self.of);
        self.turns.ended.notify_waiters();
    }
}
