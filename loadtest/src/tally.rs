//! The counters of the clients: one tally for each thread; the recorder fetches and sums them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::record::Distribution;

/// Counters and times of the clients of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) responses: u64,
    pub(crate) acknowledgements: u64,
    pub(crate) resources: u64,
    pub(crate) bytes: u64,
    /// Resources that were sent although the client had that very content; in SotW that cannot be avoided.
    pub(crate) repeated: u64,
    /// Measured changes that reached a client.
    pub(crate) delivered: u64,
    /// Those of them that never came themselves, because a later change of the same resource took their place, or
    /// that came together with others in one response: they cost the server no response of their own.
    pub(crate) coalesced: u64,
    /// From when a change was due to the last byte read, per client and change.
    pub(crate) propagation: Distribution,
    /// From when a client was let in until it had everything.
    pub(crate) join: Distribution,
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
        })
    }

    /// Counts one measured change that took so long to reach a client.
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
        self.propagation.add(&other.propagation)?;
        self.join.add(&other.join)
    }

    /// Back to nothing, without giving memory back.
    pub(crate) fn reset(&mut self) {
        self.responses = 0;
        self.acknowledgements = 0;
        self.resources = 0;
        self.bytes = 0;
        self.repeated = 0;
        self.delivered = 0;
        self.coalesced = 0;
        self.propagation.reset();
        self.join.reset();
    }
}

/// The tally of one thread, of which others may take what has come since they last did. The thread alone writes it: but for
/// the moment in which it is emptied, once a second, nobody else wants the lock.
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

    /// Where the thread counts.
    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.0.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves what is fresh into `sum`.
    pub(crate) fn take(&self, sum: &mut Tally) -> anyhow::Result<()> {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = self.tally();
        sum.add(&fresh)?;
        taken.add(&fresh)?;
        fresh.reset();
        Ok(())
    }

    /// Adds everything since the beginning to `sum`, whether or not somebody took it meanwhile.
    pub(crate) fn total(&self, sum: &mut Tally) -> anyhow::Result<()> {
        let taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        sum.add(&taken)?;
        sum.add(&self.tally())
    }
}
