// SPDX-License-Identifier: Apache-2.0
//! What operators are told once about how clients share views.
//!
//! Owns the words, and that they are said once. Decides nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use classes::{Class, Classes, Node, Selector, Taken};

/// What was said already.
#[derive(Default)]
pub(super) struct Notices {
    shared: AtomicBool,
    passed: AtomicBool,
    /// Whether it was said that new types wait.
    waiting: AtomicBool,
}

impl Notices {
    /// Warns when new types begin to wait.
    pub(super) fn wait(&self, types: usize) {
        if !self.waiting.swap(types > 0, Ordering::Relaxed) && types > 0 {
            tracing::warn!(
                types,
                "clients ask for many types that the relay does not know; of these, it asks its control planes for at most 20 new ones a \
                 second, and for at most 1,024 at a time; those of the connections with the most types wait longest"
            );
        }
    }

    /// K-02: warns once, for all classes, if clients share a view though a control plane may want to distinguish them; and once
    /// if the node of another client differs from the first one's in what is passed on.
    pub(super) fn compare(&self, classes: &Classes, class: &Class, first: &Node, other: &Node) {
        let (one, two) = (&first.id, &other.id);
        if !self.shared.load(Ordering::Relaxed)
            && let Some(key) = Selector::between(first, other)
            && !self.shared.swap(true, Ordering::Relaxed)
        {
            let advice = classes.advice(class, &key);
            tracing::warn!(
                one = ?one,
                other = ?two,
                one_has = ?key.read(first),
                other_has = ?key.read(other),
                 "clients that differ in `{key}` share one view, so the control plane sees them as one; if it must distinguish \
                 them, write {advice}"
            );
        }
        if !self.passed.load(Ordering::Relaxed)
            && let Some(field) = Taken::difference(first.passed.as_deref(), other.passed.as_deref())
            && !self.passed.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                one = ?one,
                other = ?two,
                 "clients that differ in `{field}` share one view, and the control plane sees only the value of the first of them; \
                 if it must see every value, put the field into the `key` of their class"
            );
        }
    }
}
