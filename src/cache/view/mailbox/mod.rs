// SPDX-License-Identifier: Apache-2.0
//! What waits for the writer of a view: its next turn, and what it is told then.
//!
//! Owns that nothing is told twice, and that whatever waits brings a turn. Does not know what the writer does about it.

mod relay_chain;
mod words;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use relay_chain::RelayChain;
use words::Words;
pub use words::WordsQuestion;

use crate::loops::Loops;
use classes::Marks;
use xds::{HoldOrder, Name, ServerWords, TypeUrl};

/// What the writer of a view is told.
#[derive(Default)]
pub struct Mailbox {
    loops: Arc<Loops>,
    turn: Notify,
    closed: AtomicBool,
    /// Whether another server has replaced this one since its last stream began.
    superseded: AtomicBool,
    relays: RelayChain,
    words: Words,
    orders: Mutex<Vec<GivenOrder>>,
}

/// An order on its way to the writer, which drops the sender once the order is carried out and the holds are published.
type GivenOrder = (HoldOrder, oneshot::Sender<Infallible>);

/// How many orders may wait for the writer.
const ORDERS_MAX: usize = 64;

impl Mailbox {
    /// Nothing waits. Who has brought the mark of a loop is noted here.
    pub(crate) fn new(loops: Arc<Loops>) -> Self {
        Self {
            loops,
            ..Self::default()
        }
    }

    /// Waits until it is the writer's turn again. There may be nothing to do.
    pub async fn changed(&self) {
        self.turn.notified().await;
    }

    /// The writer has a turn.
    pub(crate) fn wake(&self) {
        self.turn.notify_one();
    }

    /// Whether the view has ended, and with it the writer's work.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The view has ended.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake();
    }

    /// G-12: another server has replaced this one, which must not be sent the versions of its earlier responses any more.
    pub fn supersede(&self) {
        if !self.superseded.swap(true, Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Whether another server has replaced this one since the last call.
    #[must_use]
    pub fn take_superseded(&self) -> bool {
        self.superseded.swap(false, Ordering::Relaxed)
    }

    /// K-25: the client of a session has come through these relays, and not through those that were said before.
    pub fn come_through(&self, session: u32, marks: Option<&Arc<Marks>>) {
        if self.relays.bring(session, marks) {
            self.wake();
        }
    }

    /// Returns the marks of relays that the server is told from now on, if they are others than before.
    #[must_use]
    pub fn take_relays(&self, now: Instant) -> Option<Vec<String>> {
        self.relays.take(now)
    }

    /// When [`Self::take_relays`] is due.
    #[must_use]
    pub fn relays_due(&self) -> Option<Instant> {
        self.relays.due()
    }

    /// The server refuses what has come through this relay: whoever has brought its mark is refused with it. Returns the sessions that
    /// bring it.
    pub(super) fn end_relay(&self, mark: &str, now: Instant) -> Vec<u32> {
        let (ended, senders) = self.relays.end(mark);
        self.loops.note(mark, senders.into_iter(), now);
        ended
    }

    /// Returns the questions for the writer, from now on. A view whose writer does not call this answers none.
    pub fn questions(&self) -> mpsc::Receiver<WordsQuestion> {
        self.words.questions()
    }

    /// Asks the writer what the control plane says about these names of a type. None: it has said nothing about the name.
    pub async fn words(&self, type_url: &TypeUrl, names: Vec<Name>) -> Vec<Option<ServerWords>> {
        self.words.ask(type_url, names).await
    }

    /// Takes an order for the writer. What is returned ends once the order is carried out; `None` if too many orders wait.
    pub fn order(&self, order: HoldOrder) -> Option<oneshot::Receiver<Infallible>> {
        let mut orders = self.orders.lock();
        if orders.len() >= ORDERS_MAX {
            return None;
        }
        let (doing, done) = oneshot::channel();
        orders.push((order, doing));
        drop(orders);
        self.wake();
        Some(done)
    }

    /// The writer takes the orders that have come since the last call.
    #[must_use]
    pub fn take_orders(&self) -> Vec<GivenOrder> {
        std::mem::take(&mut *self.orders.lock())
    }
}
