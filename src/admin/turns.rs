// SPDX-License-Identifier: Apache-2.0
//! Whose turn it is to take something that is large.
//!
//! Owns that each visitor has one turn at a time, and that there are few. Does not know what is taken.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::identity::Identity;

/// The turns.
#[derive(Default)]
pub(super) struct Turns {
    taken: Mutex<Vec<Identity>>,
    ended: Notify,
}

/// A visitor's turn, until it is dropped.
pub(super) struct HeldTurn {
    turns: Arc<Turns>,
    of: Identity,
}

/// How many there are at a time. Each takes a thread.
const MOST: usize = 8;

impl Turns {
    /// Waits until this visitor has no other turn, and there is one.
    pub(super) async fn take(self: &Arc<Self>, of: &Identity) -> HeldTurn {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // From here on no end is missed.
            ended.as_mut().enable();
            {
                let mut taken = self.taken.lock();
                if taken.len() < MOST && !taken.contains(of) {
                    taken.push(of.clone());
                    let (turns, of) = (self.clone(), of.clone());
                    return HeldTurn { turns, of };
                }
            }
            ended.await;
        }
    }
}

impl Drop for HeldTurn {
    fn drop(&mut self) {
        self.turns.taken.lock().retain(|of| *of != self.of);
        self.turns.ended.notify_waiters();
    }
}
