// SPDX-License-Identifier: Apache-2.0
//! Changes that are published together.
//!
//! Owns which of them are one. Does not know what they are about.

use crate::xds::Changes;

/// Appends changes; merges them into the last ones if these are of the same half of the same type. Many wants begin or end together, and
/// each list of changes is published by itself.
pub(super) fn add(all: &mut Vec<Changes>, mut more: Changes) {
    let half = |of: &Changes| (of.type_url.clone(), of.wildcard, of.phase, of.answered);
    match all.last_mut() {
        Some(last) if half(last) == half(&more) => {
            last.updates.append(&mut more.updates);
            last.complete = last.complete.or(more.complete);
        }
        Some(_) | None => all.push(more),
    }
}
