// SPDX-License-Identifier: Apache-2.0
//! Finds the patterns that a text may match, among very many.
//!
//! Owns the order by what is fixed at the beginning of a pattern. Does not match the rest of it.

use std::collections::{BTreeMap, BTreeSet};

use classes::Pattern;

/// Numbers of rules, by what is fixed in their patterns.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// By the whole text.
    whole: BTreeMap<Box<str>, Vec<u32>>,
    /// By the beginning of the text.
    begins: BTreeMap<Box<str>, Vec<u32>>,
    /// The lengths of these beginnings.
    lengths: BTreeSet<usize>,
}

impl Index {
    /// Adds a rule by one of its patterns. Rules are added in order.
    pub(super) fn add(&mut self, pattern: &Pattern, rule: u32) {
        let (fixed, whole) = pattern.fixed();
        let table = if whole {
            &mut self.whole
        } else {
            self.lengths.insert(fixed.len());
            &mut self.begins
        };
        let rules = table.entry(fixed.into()).or_default();
        if rules.last() != Some(&rule) {
            rules.push(rule);
        }
    }

    /// Returns lists of rules; every rule with a pattern that matches the text is in one of them. Each list is in order.
    pub(super) fn candidates<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a [u32]> {
        let beginnings = self
            .lengths
            .range(..=text.len())
            .filter_map(|length| text.get(..*length));
        let begins = beginnings.filter_map(|beginning| self.begins.get(beginning));
        self.whole.get(text).into_iter().chain(begins).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_match_is_found() {
        let patterns = ["a/b", "a/*", "*", "b", "a/{x}/c", "äb*", ""];
        let mut index = Index::default();
        for (rule, pattern) in (0..).zip(patterns) {
            index.add(&Pattern::read(pattern).unwrap(), rule);
        }
        let found = |text: &str| index.candidates(text).flatten().copied().collect::<BTreeSet<u32>>();
        assert_eq!(found("a/b"), BTreeSet::from([0, 1, 2, 4]));
        assert_eq!(found("b"), BTreeSet::from([2, 3]));
        assert_eq!(found("äbc"), BTreeSet::from([2, 5]));
        assert_eq!(found(""), BTreeSet::from([2, 6]));
    }
}
