//! What the clients counted: one tally per thread, summed at the end.

use hdrhistogram::Histogram;

/// Counters and latencies of the clients of one thread.
#[derive(Debug)]
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
    /// From the control plane's publishing to the last byte read, in microseconds, per client and change.
    pub(crate) latency_micros: Histogram<u64>,
}

/// Longer ones count as this long.
const LATENCY_MICROS_MAX: u64 = 600_000_000;

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
            latency_micros: Histogram::new_with_bounds(1, LATENCY_MICROS_MAX, 3)?,
        })
    }

    /// Counts one measured change that took `micros` to reach a client.
    pub(crate) fn deliver(&mut self, micros: u64) {
        self.delivered += 1;
        self.latency_micros.saturating_record(micros);
    }

    pub(crate) fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        self.responses += other.responses;
        self.acknowledgements += other.acknowledgements;
        self.resources += other.resources;
        self.bytes += other.bytes;
        self.repeated += other.repeated;
        self.delivered += other.delivered;
        self.coalesced += other.coalesced;
        self.latency_micros.add(&other.latency_micros)?;
        Ok(())
    }
}
