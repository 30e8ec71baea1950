// SPDX-License-Identifier: Apache-2.0
//! What is wrong with the relay's own files for as long as it is: the configuration, certificates, keys for tokens, and snapshots.
//!
//! Owns the words for it, and how many certificates are bad. Finds nothing itself.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::register;

/// What is wrong now, for as long as it is.
#[derive(Debug)]
pub struct Faults {
    all: Mutex<BTreeMap<FaultSource, Vec<String>>>,
    bad_certificates: Gauge,
}

/// Who finds faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultSource {
    /// Who reads the configuration again.
    Configuration,
    /// Who follows certificates, their keys and authorities.
    Certificates,
    /// Who follows the keys for tokens.
    Keys,
    /// Who writes snapshots.
    Snapshots,
}

impl Faults {
    #[rustfmt::skip]
    pub(super) fn register(own: &mut Registry) -> Self {
        Self {
            all: Mutex::default(),
            bad_certificates: register(own, "bad_certificates", "Sets of certificates, and files of keys for tokens, that cannot be used as they are now", Gauge::default()),
        }
    }

    /// Replaces what this source found before.
    pub fn show(&self, source: FaultSource, faults: Vec<String>) {
        let mut all = self.all.lock();
        all.insert(source, faults);
        let bad = [FaultSource::Certificates, FaultSource::Keys].map(|source| all.get(&source).map_or(0, Vec::len));
        let bad: usize = bad.into_iter().sum();
        self.bad_certificates.set(i64::try_from(bad).unwrap_or(i64::MAX));
    }

    /// Returns all of them, each in a sentence.
    pub fn all(&self) -> Vec<String> {
        self.all.lock().values().flatten().cloned().collect()
    }
}
