//! What one client asks for. Plain arithmetic, so that ten thousand clients cost nothing to remember.

use crate::ledger::Ledger;

/// Everything, or a run of neighbours in the ring of all resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    All,
    Some { first: u32, count: u32 },
}

impl Want {
    /// What client `number` asks for where each asks for `count` of `resources` names: spread over the ring.
    pub(crate) fn named(number: u32, count: u32, resources: u32) -> Self {
        let first = u64::from(number) * 7919 % u64::from(resources.max(1));
        Self::Some {
            first: u32::try_from(first).unwrap_or_default(),
            count: count.min(resources),
        }
    }

    pub(crate) const fn contains(self, index: u32, resources: u32) -> bool {
        match self {
            Self::All => index < resources,
            Self::Some { first, count } => index < resources && (index + resources - first) % resources < count,
        }
    }

    pub(crate) const fn count(self, resources: u32) -> u32 {
        match self {
            Self::All => resources,
            Self::Some { count, .. } => count,
        }
    }

    /// The names to ask for; none for everything.
    pub(crate) fn names(self, ledger: &Ledger) -> Vec<String> {
        match self {
            Self::All => Vec::new(),
            Self::Some { first, count } => (0..count).map(|at| ledger.name((first + at) % ledger.len())).collect(),
        }
    }
}
