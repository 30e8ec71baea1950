// SPDX-License-Identifier: Apache-2.0
//! The counters of the clients: one tally for each thread; the recorder fetches and sums them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::measure::loss::Loss;
use crate::measure::record::Distribution;

/// Counters and times of the clients of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) responses: u64,
    pub(crate) acknowledgements: u64,
    pub(crate) resources: u64,
    pub(crate) bytes: u64,
    /// Resources that were sent although the client already had this content; in SotW that cannot be avoided.
    pub(crate) repeated: u64,
    /// Measured changes that reached a client.
    pub(crate) delivered: u64,
    /// Those of them without a response of their own: a later change of the same resource replaced them, or they came with others
    /// in one response.
    pub(crate) coalesced: u64,
    /// The time from when a change was due to the last byte read, for each client and change.
    pub(crate) propagation: Distribution,
    /// The time from when a client was let in until it had everything.
    pub(crate) join: Distribution,
    /// How long clients for which there was something all the time waited for a response, in rounds: the responses to all
    /// meanwhile, divided by the number of clients. In thousandths.
    pub(crate) waits: Distribution,
    /// How often streams ended and connections failed.
    pub(crate) losses: BTreeMap<Loss, u64>,
}

impl Tally {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            responses: 0,
            acknowledgements: 0,
            resources: 0,
            bytes: 0,
            repeated: 0,
            delivered: 0,
            coalesced: 0,
            propagation: Distribution::new()?,
            join: Distribution::new()?,
            waits: Distribution::new()?,
            losses: BTreeMap::new(),
        })
    }

    /// Counts one measured change and the time that it took to reach a client.
    pub(crate) fn deliver(&mut self, taken: Duration) {
        self.delivered += 1;
        self.propagation.record(taken);
    }

    pub(crate) fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        self.responses += other.responses;
        self.acknowledgements += other.acknowledgements;
        self.resources += other.resources;
        self.bytes += other.bytes;
        self.repeated += other.repeated;
        self.delivered += other.delivered;
        self.coalesced += other.coalesced;
        for (loss, count) in &other.losses {
            *self.losses.entry(*loss).or_default() += count;
        }
        self.propagation.add(&other.propagation)?;
        self.join.add(&other.join)?;
        self.waits.add(&other.waits)
    }

    /// Resets all to zero, and keeps the memory.
    pub(crate) fn reset(&mut self) {
        self.responses = 0;
        self.acknowledgements = 0;
        self.resources = 0;
        self.bytes = 0;
        self.repeated = 0;
        self.delivered = 0;
        self.coalesced = 0;
        self.losses.clear();
        self.propagation.reset();
        self.join.reset();
        self.waits.reset();
    }
}

/// The tally of one thread, from which others take what is new. Only the thread writes it, and others take the lock only once a
/// second, so the lock is nearly always free.
#[derive(Clone, Debug)]
pub(crate) struct Feed(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    fresh: Mutex<Tally>,
    taken: Mutex<Tally>,
}

impl Feed {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let empty = Tally::new()?;
        Ok(Self(Arc::new(Parts {
            fresh: Mutex::new(empty.clone()),
            taken: Mutex::new(empty),
        })))
    }

    /// Returns the tally that the thread counts into.
    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.0.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves what is new into `sum`.
    pub(crate) fn take(&self, sum: &mut Tally) -> anyhow::Result<()> {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = self.tally();
        sum.add(&fresh)?;
        taken.add(&fresh)?;
        fresh.reset();
        Ok(())
    }

    /// Adds everything since the start to `sum`, including what was taken.
    pub(crate) fn total(&self, sum: &mut Tally) -> anyhow::Result<()> {
        let taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        sum.add(&taken)?;
        sum.add(&self.tally())
    }
}
