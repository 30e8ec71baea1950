// SPDX-License-Identifier: Apache-2.0
//! The memory of the process for unfinished requests: those that are not complete yet, and those that are being inflated.
//!
//! Owns the sum over all connections, its bound, and the rule that the connection with the largest share gives way when another
//! one needs memory. Knows nothing of the content. Each message has a bound of its own, but clients may begin thousands of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// The sum over all connections, and its bound.
#[derive(Debug)]
pub struct Budget {
    /// The bound, if there is memory for it.
    largest: AtomicUsize,
    /// The bound now.
    bytes_max: AtomicUsize,
    numbers: AtomicU64,
    refused: AtomicU64,
    held: Mutex<HeldBytes>,
}

/// The share of one connection: as much as it needs, until a connection with a smaller share needs memory.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    number: u64,
}

/// One part of a share: what one stream holds. Dropping it subtracts it from the sum.
#[derive(Debug)]
pub struct Charge {
    share: Arc<Share>,
    /// In a box, because most streams hold nothing most of the time.
    entry: Option<Box<BudgetEntry>>,
}

/// The size of a part as last set, and the number under which the budget knows the part.
#[derive(Clone, Copy, Debug)]
struct BudgetEntry {
    number: u64,
    bytes: usize,
}

/// Why a connection cannot hold more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Short {
    /// This connection alone would exceed the bound; no other one holds anything.
    #[error(
        "the unfinished requests of this connection would take {0} bytes; the relay holds at most {1} bytes of them, four times \
         `limits.request`, or two times while `limits.memory` is short"
    )]
    Own(usize, usize),
    /// The bound is reached, and no connection that can give way holds more than this one.
    #[error(
        "the relay's memory for unfinished requests (four times `limits.request`, or two times while `limits.memory` is short) is \
         full, and this connection uses at least as much of it as the others; try again later"
    )]
    Shared,
}

#[derive(Debug, Default)]
struct HeldBytes {
    bytes: usize,
    holders: BTreeMap<u64, ByteHolder>,
    /// The holders, ordered by the bytes that they hold.
    order: BTreeSet<(usize, u64)>,
}

/// A connection that holds at least one byte.
#[derive(Debug, Default)]
struct ByteHolder {
    bytes: usize,
    parts: BTreeMap<u64, HeldPart>,
}

#[derive(Debug, Default)]
struct HeldPart {
    bytes: usize,
    /// The task that waits for the rest of the request. When it is woken and finds the part gone, it gives up the request.
    waiting: Option<Waker>,
}

impl Budget {
    /// Creates an empty budget; all connections together hold at most `bytes_max`.
    #[must_use]
    pub const fn new(bytes_max: usize) -> Self {
        Self {
            largest: AtomicUsize::new(bytes_max),
            bytes_max: AtomicUsize::new(bytes_max),
            numbers: AtomicU64::new(1),
            refused: AtomicU64::new(0),
            held: Mutex::new(HeldBytes {
                bytes: 0,
                holders: BTreeMap::new(),
                order: BTreeSet::new(),
            }),
        }
    }

    /// Returns the bytes held now, over all connections.
    pub fn bytes(&self) -> usize {
        self.held.lock().bytes
    }

    /// Returns the most bytes that all connections together may hold.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Replaces the bound if there is memory for it. It counts from the next [`Self::resize`] on.
    pub fn set_largest(&self, bytes_max: usize) {
        self.largest.store(bytes_max, Ordering::Relaxed);
    }

    /// Sets the bound now, but to no more than the largest, and no less than half of that. What is held already stays, until
    /// another connection needs memory.
    pub fn resize(&self, bytes_max: usize) {
        let largest = self.largest.load(Ordering::Relaxed);
        let bytes_max = bytes_max.clamp(largest / 2, largest);
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Returns how many requests were refused or given up for lack of memory since the last call.
    pub fn take_refused(&self) -> u64 {
        self.refused.swap(0, Ordering::Relaxed)
    }

    /// Creates the share of a new connection.
    #[must_use]
    pub fn share(self: &Arc<Self>) -> Arc<Share> {
        Arc::new(Share {
            budget: self.clone(),
            number: self.number(),
        })
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn count(&self, short: Short) -> Short {
        self.refused.fetch_add(1, Ordering::Relaxed);
        short
    }
}

impl Charge {
    /// Creates a part that holds nothing.
    #[must_use]
    pub const fn new(share: Arc<Share>) -> Self {
        Self { share, entry: None }
    }

    /// Returns the share that this is a part of.
    pub const fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// Sets how many bytes are held now. Holding fewer bytes than before always succeeds, unless the part was taken away.
    ///
    /// # Errors
    /// When there is not enough memory, or the part was taken away for another connection. The part holds nothing then.
    #[inline]
    pub fn set(&mut self, bytes: usize) -> Result<(), Short> {
        // Nearly every call ends here.
        if bytes == self.entry.as_ref().map_or(0, |entry| entry.bytes) {
            return Ok(());
        }
        self.resize(bytes)
    }

    fn resize(&mut self, bytes: usize) -> Result<(), Short> {
        let before = self.entry.as_deref().copied();
        let budget = &self.share.budget;
        let number = before.map_or_else(|| budget.number(), |entry| entry.number);
        let mut held = budget.held.lock();
        let outcome = if held.part(self.share.number, number) == before.map(|entry| entry.bytes) {
            held.grow(self.share.number, number, bytes, budget.bytes_max())
        } else {
            Err(Short::Shared)
        };
        if outcome.is_err() {
            held.put(self.share.number, number, 0);
        }
        drop(held);
        let outcome = outcome.map_err(|short| budget.count(short));
        match &mut self.entry {
            entry if outcome.is_err() || bytes == 0 => *entry = None,
            Some(entry) => entry.bytes = bytes,
            none => *none = Some(Box::new(BudgetEntry { number, bytes })),
        }
        outcome
    }

    /// Ready when the part was taken away because another connection needs the memory.
    #[inline]
    pub fn poll_given_up(&mut self, cx: &Context<'_>) -> Poll<Short> {
        match self.entry.as_deref().copied() {
            Some(entry) => self.poll_taken(entry, cx),
            None => Poll::Pending,
        }
    }

    fn poll_taken(&mut self, entry: BudgetEntry, cx: &Context<'_>) -> Poll<Short> {
        let mut held = self.share.budget.held.lock();
        let holder = held.holders.get_mut(&self.share.number);
        let Some(part) = holder.and_then(|holder| holder.parts.get_mut(&entry.number)) else {
            drop(held);
            self.entry = None;
            return Poll::Ready(self.share.budget.count(Short::Shared));
        };
        match &mut part.waiting {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(entry) = &self.entry {
            self.share.budget.held.lock().put(self.share.number, entry.number, 0);
        }
    }
}

impl HeldBytes {
    fn part(&self, holder: u64, number: u64) -> Option<usize> {
        let holder = self.holders.get(&holder)?;
        holder.parts.get(&number).map(|part| part.bytes)
    }

    /// Sets the size of the part, and takes memory from larger connections if that is necessary.
    fn grow(&mut self, holder: u64, number: u64, bytes: usize, bytes_max: usize) -> Result<(), Short> {
        let before = self.part(holder, number).unwrap_or_default();
        let more = bytes.saturating_sub(before);
        let own = self.holders.get(&holder).map_or(0, |holder| holder.bytes);
        if more > 0 && self.bytes.saturating_add(more) > bytes_max {
            let all = own.saturating_add(more);
            while self.bytes.saturating_add(more) > bytes_max {
                if !self.take_from_larger(all) {
                    let alone = self.bytes == own;
                    return Err(if alone {
                        Short::Own(all, bytes_max)
                    } else {
                        Short::Shared
                    });
                }
            }
        }
        self.put(holder, number, bytes);
        Ok(())
    }

    /// Takes away one part: the largest waiting part of the connection that holds the most, if that is more than `than`.
    fn take_from_larger(&mut self, than: usize) -> bool {
        let over = self.order.iter().rev().take_while(|(bytes, _)| *bytes > than);
        let found = over.map(|(_, number)| number).find_map(|number| {
            let parts = self.holders.get(number)?.parts.iter();
            let waiting = parts.filter(|(_, part)| part.waiting.is_some());
            let largest = waiting.max_by_key(|(_, part)| part.bytes)?;
            Some((*number, *largest.0))
        });
        let Some((holder, part)) = found else {
            return false;
        };
        let taken = self.put(holder, part, 0);
        if let Some(waker) = taken.and_then(|part| part.waiting) {
            // The waker of a task does no more than put it in a queue, so the lock may be held.
            waker.wake();
        }
        true
    }

    /// Records the size of the part. Removes and returns the part if the size is zero.
    fn put(&mut self, number: u64, part: u64, bytes: usize) -> Option<HeldPart> {
        let holder = self.holders.entry(number).or_default();
        let known = holder.parts.entry(part).or_default();
        let before = std::mem::replace(&mut known.bytes, bytes);
        let gone = (bytes == 0).then(|| holder.parts.remove(&part)).flatten();
        self.order.remove(&(holder.bytes, number));
        holder.bytes = holder.bytes - before + bytes;
        self.bytes = self.bytes - before + bytes;
        if holder.bytes > 0 {
            self.order.insert((holder.bytes, number));
        } else {
            self.holders.remove(&number);
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(share: &Arc<Share>, bytes: usize) -> Charge {
        let mut charge = Charge::new(share.clone());
        charge.set(bytes).unwrap();
        assert!(waits(&mut charge));
        charge
    }

    fn waits(charge: &mut Charge) -> bool {
        charge.poll_given_up(&Context::from_waker(Waker::noop())).is_pending()
    }

    #[test]
    fn a_connection_has_everything_while_nobody_else_needs_it() {
        let budget = Arc::new(Budget::new(4000));
        let share = budget.share();
        let mut streams: Vec<_> = (0..4).map(|_| held(&share, 900)).collect();
        let mut fifth = Charge::new(share);
        assert_eq!(fifth.set(900), Err(Short::Own(4500, 4000)));
        assert_eq!(streams[0].set(100), Ok(()), "to hold less is always allowed");
        assert_eq!(fifth.set(900), Ok(()));
        drop(fifth);
        assert_eq!(budget.bytes(), 2800);
        drop(streams);
        assert_eq!(
            (budget.bytes(), budget.take_refused(), budget.take_refused()),
            (0, 1, 0)
        );
        let held = budget.held.lock();
        assert!(held.holders.is_empty() && held.order.is_empty());
    }

    #[test]
    fn who_has_more_than_its_share_gives_way() {
        let budget = Arc::new(Budget::new(4000));
        let (greedy, modest) = (budget.share(), budget.share());
        let mut large = held(&greedy, 3000);
        let mut small = held(&greedy, 900);
        let mut other = held(&modest, 1000);
        assert!(!waits(&mut large), "the largest part is taken");
        assert!(waits(&mut small) && waits(&mut other));
        assert_eq!((budget.bytes(), budget.take_refused()), (1900, 1));
        assert_eq!(large.set(100), Ok(()), "it may begin again");
        // A connection that would hold the most takes nothing from the others.
        assert_eq!(large.set(2500), Err(Short::Shared));
        assert_eq!(other.set(3000), Ok(()));
        assert_eq!(other.set(3200), Err(Short::Shared));
        assert_eq!(budget.bytes(), 900);
    }

    /// A connection takes nothing from others that hold as much as itself, and no part is taken whose task does not wait.
    #[test]
    fn the_bound_holds() {
        let budget = Arc::new(Budget::new(4000));
        let others: Vec<_> = (0..4).map(|_| held(&budget.share(), 1000)).collect();
        let mut late = Charge::new(budget.share());
        assert_eq!(late.set(1000), Err(Short::Shared));
        drop(others);
        let mut passing = Charge::new(budget.share());
        passing.set(4000).unwrap();
        assert_eq!(late.set(10), Err(Short::Shared));
        assert!(waits(&mut passing));
        assert_eq!(late.set(10), Ok(()));
        assert_eq!(budget.bytes(), 10);
    }

    /// Nothing is taken away at once, but whoever needs memory takes it from those that hold the most, until less is held.
    #[test]
    fn a_smaller_bound() {
        let budget = Arc::new(Budget::new(4000));
        let mut large = held(&budget.share(), 3000);
        budget.resize(0);
        assert_eq!((budget.bytes_max(), budget.bytes()), (2000, 3000));
        assert!(waits(&mut large));
        let small = held(&budget.share(), 100);
        assert!(!waits(&mut large));
        assert_eq!(large.set(2000), Err(Short::Shared));
        budget.resize(usize::MAX);
        assert_eq!((budget.bytes_max(), large.set(3900)), (4000, Ok(())));
        drop(small);
    }
}
