// SPDX-License-Identifier: Apache-2.0
//! Heartbeats: equal resources whose time to live was confirmed, or that have none any more (K-17).
//!
//! Owns the comparison. Does not know who reads them.

use std::sync::Arc;

use imbl::ordmap::DiffItem;

use crate::{Resource, State};

/// Returns the resources that are the same in both states, and of which the time to live differs.
pub(super) fn beats(from: &State, to: &State) -> Vec<Arc<Resource>> {
    if from.expiries().is_empty() && to.expiries().is_empty() {
        return Vec::new();
    }
    let mut beats = Vec::new();
    for item in from.expiries().diff(to.expiries()) {
        let (DiffItem::Add(name, _) | DiffItem::Update { new: (name, _), .. } | DiffItem::Remove(name, _)) = item;
        if let (Some(old), Some(new)) = (from.entries().get(name), to.resource(name))
            && old.is(new.version())
        {
            beats.push(new.clone());
        }
    }
    beats
}
