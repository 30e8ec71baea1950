// SPDX-License-Identifier: Apache-2.0
//! Limits how often a server is sent the same fault.
//!
//! Owns the faults that the server was sent of one type on the present stream, and when it may be sent each again. Knows nothing
//! of responses: the same resource with the same fault counts as the same, whatever the version (E-22).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64;

/// The content of a NACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    text: String,
    /// A hash of each fault, in order.
    faults: Box<[u64]>,
}

/// The faults that the server was sent lately, within a bound.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    said: BTreeMap<u64, Said>,
}

#[derive(Debug)]
struct Said {
    /// When it may be sent again.
    next: Instant,
    /// The length of that wait.
    wait: Duration,
}

/// E-22: a fault may be sent again after this time, and then after twice as long each time.
const FIRST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(5);
/// A fault that could have been sent for this long, and was not, counts as new.
const QUIET: Duration = Duration::from_secs(10);
/// This many faults are told apart. All others count as one, so a server cannot evade the limit with a new name for each fault.
const FAULTS_MAX: usize = 64;
const OTHERS: u64 = 0;

impl Refusal {
    /// Creates a refusal for these reasons, each of which names its resource; `text` is what the server is sent.
    pub(super) fn new<'a>(text: String, reasons: impl Iterator<Item = &'a str>) -> Self {
        let mut faults: Vec<u64> = reasons.map(|reason| xxh3_64(reason.as_bytes())).collect();
        faults.sort_unstable();
        Self {
            text,
            faults: faults.into(),
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Whether it contains all faults of the other one.
    pub(super) fn covers(&self, other: &Self) -> bool {
        other
            .faults
            .iter()
            .all(|fault| self.faults.binary_search(fault).is_ok())
    }
}

impl Refusals {
    /// Returns when the refusal may be sent; `None`: at once, because it has a new fault.
    pub(super) fn at(&self, refusal: &Refusal, now: Instant) -> Option<Instant> {
        let said = |fault: &u64| {
            let said = self.said.get(&self.known_as(*fault))?;
            said.counts(now).then_some(said.next)
        };
        let all: Option<Vec<Instant>> = refusal.faults.iter().map(said).collect();
        all?.into_iter().min()
    }

    /// The refusal is sent.
    pub(super) fn said(&mut self, refusal: &Refusal, now: Instant) {
        self.said.retain(|_, said| said.counts(now));
        for fault in &refusal.faults {
            let known = self.known_as(*fault);
            let said = self.said.entry(known).or_insert(Said {
                next: now,
                wait: FIRST / 2,
            });
            if said.next <= now {
                said.wait = (said.wait * 2).min(MOST);
            }
            said.next = now + said.wait;
        }
    }

    fn known_as(&self, fault: u64) -> u64 {
        if self.said.len() < FAULTS_MAX || self.said.contains_key(&fault) {
            fault
        } else {
            OTHERS
        }
    }
}

impl Said {
    fn counts(&self, now: Instant) -> bool {
        now < self.next + QUIET
    }
}
