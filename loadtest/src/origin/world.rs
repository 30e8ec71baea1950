// SPDX-License-Identifier: Apache-2.0
//! All resources: a ledger for each type, and which resource refers to which. Plain arithmetic on top of the ledgers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use crate::origin::ledger::{Bell, Ledger, Spec};
use crate::wire::kind::Kind;

/// The ledgers of all types that the control plane serves.
#[derive(Debug)]
pub(crate) struct World {
    ledgers: Vec<Arc<Ledger>>,
    pub(crate) bell: Arc<Bell>,
}

impl World {
    pub(crate) fn with(ledgers: Vec<Arc<Ledger>>, bell: Arc<Bell>) -> Arc<Self> {
        Arc::new(Self { ledgers, bell })
    }

    /// Creates a world whose resources refer to each other: a listener to the route with its number, a cluster to its endpoints,
    /// and the routes to all clusters in turn.
    pub(crate) fn new(specs: &[Spec], now: Instant) -> Arc<Self> {
        let bell = Arc::<Bell>::default();
        let count = |kind| {
            specs
                .iter()
                .find(|spec| spec.kind == kind)
                .map_or(0, |spec| spec.resources)
        };
        let counts = Kind::ALL.map(count);
        let mut ledgers: Vec<_> = specs
            .iter()
            .filter(|spec| spec.resources > 0)
            .map(|spec| Arc::new(Ledger::of(spec, counts, Arc::clone(&bell), now)))
            .collect();
        ledgers.sort_by_key(|ledger| ledger.kind());
        Self::with(ledgers, bell)
    }

    /// Creates the world of a foreign control plane, whose resources are learned as they come.
    pub(crate) fn learning() -> Arc<Self> {
        Self::learning_also([])
    }

    /// Creates such a world with more than the types that lead an Envoy to each other.
    pub(crate) fn learning_also(more: impl IntoIterator<Item = Kind>) -> Arc<Self> {
        let bell = Arc::<Bell>::default();
        let learning = |kind| Arc::new(Ledger::learning(kind, Arc::clone(&bell)));
        let kinds: BTreeSet<_> = Kind::ROUTING.into_iter().chain(more).collect();
        Self::with(kinds.into_iter().map(learning).collect(), Arc::clone(&bell))
    }

    /// Creates such a world that keeps the newest content of each resource.
    pub(crate) fn keeping() -> Arc<Self> {
        let bell = Arc::<Bell>::default();
        let keeping = |kind| Arc::new(Ledger::keeping(kind, Arc::clone(&bell)));
        Self::with(Kind::ROUTING.map(keeping).to_vec(), Arc::clone(&bell))
    }

    /// Whether the resources are those of a control plane that is not part of this program.
    pub(crate) fn is_foreign(&self) -> bool {
        self.ledgers.iter().any(|ledger| ledger.is_learning())
    }

    pub(crate) fn ledger(&self, kind: Kind) -> Option<&Arc<Ledger>> {
        self.ledgers.iter().find(|ledger| ledger.kind() == kind)
    }

    /// Returns the ledgers in the order of types.
    pub(crate) fn ledgers(&self) -> &[Arc<Ledger>] {
        &self.ledgers
    }

    /// Returns the number of all resources and their bytes.
    pub(crate) fn size(&self) -> (u64, u64) {
        self.ledgers.iter().fold((0, 0), |(count, bytes), ledger| {
            let resources = u64::from(ledger.len());
            let size = u64::try_from(ledger.bytes()).unwrap_or(u64::MAX);
            (count + resources, bytes.saturating_add(resources.saturating_mul(size)))
        })
    }
}

/// How many resources there are of each type.
pub(crate) type Counts = [u32; Kind::ALL.len()];

/// Returns the resources of another type that resource `index` refers to.
pub(crate) fn refers(kind: Kind, index: u32, counts: &Counts) -> Option<(Kind, std::ops::Range<u32>)> {
    let count = |kind: Kind| counts.get(kind as usize).copied().unwrap_or_default();
    let to = kind.leads()?;
    let of = count(to);
    if of == 0 {
        return None;
    }
    let many = matches!(to, Kind::Cds | Kind::CdsV2);
    let share = if many {
        of.div_ceil(count(kind).max(1)).min(REFERENCES_MAX)
    } else {
        1
    };
    let first = index.saturating_mul(share);
    Some((to, first.min(of)..(first.saturating_add(share)).min(of)))
}

/// A route refers to at most so many clusters.
const REFERENCES_MAX: u32 = 16;
