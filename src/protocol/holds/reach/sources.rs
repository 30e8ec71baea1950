// SPDX-License-Identifier: Apache-2.0
//! What names one thing.
//!
//! Owns that a single source, which is what most have, takes no memory of its own: beside a large source of clusters, each of very many
//! views has an index of it.

use std::collections::BTreeSet;

use super::Source;

#[derive(Debug)]
pub(super) enum Sources {
    One(Source),
    /// Two or more, or what is left of them.
    Many(BTreeSet<Source>),
}

impl Sources {
    pub(super) fn add(&mut self, source: Source) {
        match self {
            Self::One(one) if *one == source => {}
            Self::One(one) => *self = Self::Many(BTreeSet::from([one.clone(), source])),
            Self::Many(all) => drop(all.insert(source)),
        }
    }

    /// Returns whether none is left.
    pub(super) fn remove(&mut self, source: &Source) -> bool {
        match self {
            Self::One(one) => one == source,
            Self::Many(all) => {
                all.remove(source);
                all.is_empty()
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Source> {
        let (one, many) = match self {
            Self::One(one) => (Some(one), None),
            Self::Many(all) => (None, Some(all)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}
