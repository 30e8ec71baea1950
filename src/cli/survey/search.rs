// SPDX-License-Identifier: Apache-2.0
//! Which fields of nodes change an answer.
//!
//! Owns which mixtures are asked, and what follows from the answers. Asks nobody itself, and does not know what an answer is.
//!
//! A relay presents some fields of a client and nothing else of it. So of each node the fields are looked for without which it is answered
//! otherwise: as long as the presented ones are not enough, half of the missing ones are added, then a half of these, until one is left
//! that changes the answer. A field costs as many questions as its place among all has bits.

use std::collections::BTreeSet;

use super::node::{NodeField, NodeFields};

/// Nodes that were asked as they are, each with its answer, and who asks mixtures.
pub(super) struct NodeSearch<A, F> {
    nodes: Vec<(NodeFields, A)>,
    ask: F,
    /// What was asked already.
    known: Vec<(NodeFields, A)>,
    found: Finding,
}

/// What changes the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Finding {
    /// The id: another one was answered otherwise.
    pub(super) id: bool,
    /// Fields whose values do.
    pub(super) key: BTreeSet<NodeField>,
    /// Fields that must be there, with any of the values that were seen.
    pub(super) there: BTreeSet<NodeField>,
}

/// The nodes that no fields explain: equal fields were answered otherwise.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unclear;

impl<A: Clone + PartialEq, E: From<Unclear>, F: FnMut(&NodeFields) -> Result<A, E>> NodeSearch<A, F> {
    pub(super) fn new(nodes: Vec<(NodeFields, A)>, ask: F) -> Self {
        Self {
            nodes,
            ask,
            known: Vec::new(),
            found: Finding::default(),
        }
    }

    /// Finds out what changes the answers. What was found before an error counts.
    pub(super) fn run(mut self) -> (Finding, Result<(), E>) {
        let done = self.search();
        if done.is_ok() {
            // What was found is enough, also where questions end here.
            drop(self.prune());
        }
        (self.found, done)
    }

    fn search(&mut self) -> Result<(), E> {
        for (fields, answer) in self.nodes.clone() {
            if self.answer(&fields)? != answer {
                self.found.id = true;
                return Ok(());
            }
        }
        loop {
            let before = self.size();
            for at in 0..self.nodes.len() {
                self.explain(at)?;
            }
            self.divide()?;
            if self.size() == before {
                return Ok(());
            }
        }
    }

    /// Finds fields until this node is answered as itself with them alone.
    fn explain(&mut self, at: usize) -> Result<(), E> {
        let Some((whole, answer)) = self.nodes.get(at).cloned() else {
            return Ok(());
        };
        loop {
            let presented = whole.only(|field| self.found.has(field));
            if self.answer(&presented)? == answer {
                return Ok(());
            }
            let missing: Vec<NodeField> = whole.names().filter(|field| !self.found.has(field)).cloned().collect();
            let with = |count: usize| {
                let later: BTreeSet<_> = missing.iter().skip(count).collect();
                whole.only(|field| !later.contains(field))
            };
            let first = self.answer(&presented)?;
            // With the first `low` of them the answer is the first one, with `high` it is not.
            let (mut low, mut high) = (0, missing.len());
            while high > low + 1 {
                let middle = low.midpoint(high);
                let mixture = with(middle);
                if self.answer(&mixture)? == first {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            let mixture = with(high);
            let Some(field) = missing.into_iter().nth(low) else {
                return Err(Unclear.into());
            };
            self.take(field, &mixture)?;
        }
    }

    /// Takes a field that has changed the answer to this mixture. If another of its values gets the same answer, it only has to be there.
    fn take(&mut self, field: NodeField, mixture: &NodeFields) -> Result<(), E> {
        let own = mixture.get(&field).cloned();
        let mut values = self.nodes.iter().map(|(fields, _)| fields.get(&field));
        let lacking = values.clone().any(|value| value.is_none());
        let other = values.find(|value| *value != own.as_ref()).flatten().cloned();
        let same = match other.filter(|_| !lacking) {
            Some(other) => {
                let with = mixture.with(&field, other);
                self.answer(&with)? == self.answer(mixture)?
            }
            None => false,
        };
        if same {
            self.found.there.insert(field);
        } else {
            self.found.key.insert(field);
        }
        Ok(())
    }

    /// Nodes that would share a view must be answered alike. Where they are not, fields that only had to be there divide them.
    fn divide(&mut self) -> Result<(), E> {
        while let Some((one, other)) = self.found.confused(&self.nodes) {
            let there = std::mem::take(&mut self.found.there).into_iter();
            let (divide, rest): (BTreeSet<_>, BTreeSet<_>) =
                there.partition(|field| one.get(field) != other.get(field));
            self.found.there = rest;
            if divide.is_empty() {
                return Err(Unclear.into());
            }
            self.found.key.extend(divide);
        }
        Ok(())
    }

    /// Leaves out what is not needed beside what was found after it: a part of a locality, say, with which there is one.
    fn prune(&mut self) -> Result<(), E> {
        for field in self
            .found
            .there
            .iter()
            .chain(&self.found.key)
            .cloned()
            .collect::<Vec<_>>()
        {
            let mut fewer = self.found.clone();
            fewer.there.remove(&field);
            fewer.key.remove(&field);
            let mut enough = fewer.confused(&self.nodes).is_none();
            for (whole, answer) in self.nodes.clone() {
                enough = enough && self.answer(&whole.only(|field| fewer.has(field)))? == answer;
            }
            if enough {
                self.found = fewer;
            }
        }
        Ok(())
    }

    fn answer(&mut self, mixture: &NodeFields) -> Result<A, E> {
        if let Some((_, answer)) = self.known.iter().find(|(asked, _)| asked == mixture) {
            return Ok(answer.clone());
        }
        let answer = (self.ask)(mixture)?;
        self.known.push((mixture.clone(), answer.clone()));
        Ok(answer)
    }

    /// What only grows: a field that had to be there may still divide.
    fn size(&self) -> usize {
        2 * self.found.key.len() + self.found.there.len()
    }
}

impl Finding {
    /// Whether a relay would present this field.
    fn has(&self, field: &NodeField) -> bool {
        self.key.contains(field) || self.there.contains(field)
    }

    /// Returns two nodes that would share a view, and were answered otherwise.
    fn confused<'a, A: PartialEq>(&self, nodes: &'a [(NodeFields, A)]) -> Option<(&'a NodeFields, &'a NodeFields)> {
        let alike =
            |one: &NodeFields, other: &NodeFields| self.key.iter().all(|field| one.get(field) == other.get(field));
        nodes.iter().enumerate().find_map(|(at, (one, answer))| {
            let mut others = nodes.iter().skip(at + 1);
            let other = others.find(|(other, said)| said != answer && alike(one, other))?;
            Some((one, &other.0))
        })
    }

    /// Returns how many views such nodes make.
    pub(super) fn views<'a>(&self, nodes: impl Iterator<Item = (&'a str, &'a NodeFields)>) -> usize {
        let mut views: Vec<(Option<&str>, Vec<_>)> = Vec::new();
        for (id, fields) in nodes {
            let key = self.key.iter().map(|field| fields.get(field)).collect();
            let view = (self.id.then_some(id), key);
            if !views.contains(&view) {
                views.push(view);
            }
        }
        views.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A node with `size` fields: the values of `special` as given, all others its own.
    fn node(number: usize, size: usize, special: &[(usize, usize)]) -> NodeFields {
        let value = |at: usize| {
            special
                .iter()
                .find(|(one, _)| *one == at)
                .map_or(100 + number, |(_, value)| *value)
        };
        let fields = (0..size).map(|at| (NodeField::of(&["metadata", &format!("k{at:03}")]), json!(value(at))));
        fields.collect()
    }

    fn value(fields: &NodeFields, at: usize) -> Option<u64> {
        fields
            .get(&NodeField::of(&["metadata", &format!("k{at:03}")]))?
            .as_u64()
    }

    type Rule = fn(&NodeFields) -> Option<u64>;

    /// Which fields are found for two nodes with 40 fields, and with how many questions.
    fn found(rule: Rule) -> (Vec<String>, Vec<String>, usize) {
        let nodes = [node(1, 40, &[]), node(2, 40, &[])];
        let nodes = nodes.map(|fields| (fields.clone(), rule(&fields))).to_vec();
        let mut asked = 0;
        let search = NodeSearch::new(nodes, |mixture: &NodeFields| {
            asked += 1;
            Ok::<_, Unclear>(rule(mixture))
        });
        let (Finding { id, key, there }, done) = search.run();
        assert_eq!((id, done), (false, Ok(())));
        let names = |fields: BTreeSet<NodeField>| fields.iter().map(ToString::to_string).collect();
        (names(key), names(there), asked)
    }

    #[test]
    fn halves_find_what_changes_an_answer() {
        let none: [&str; 0] = [];
        let rules: [(Rule, &[&str], &[&str], usize); 6] = [
            (|_| None, &none, &none, 3),
            (|fields| value(fields, 17), &["metadata.k017"], &none, 13),
            (|fields| value(fields, 39).map(|_| 1), &none, &["metadata.k039"], 13),
            (
                |fields| Some(value(fields, 3)? + value(fields, 4)?),
                &["metadata.k003", "metadata.k004"],
                &none,
                26,
            ),
            // Only both together change it, and only of one node.
            (
                |fields| (value(fields, 0) == Some(102) && value(fields, 30) == Some(102)).then_some(1),
                &["metadata.k000", "metadata.k030"],
                &none,
                26,
            ),
            // Two of three are enough.
            (
                |fields| ([5, 6, 7].iter().filter(|at| value(fields, **at) == Some(102)).count() > 1).then_some(1),
                &["metadata.k005", "metadata.k006"],
                &none,
                26,
            ),
        ];
        for (rule, key, there, most) in rules {
            let (found_key, found_there, asked) = found(rule);
            assert_eq!((found_key, found_there), (owned(key), owned(there)));
            assert!(asked <= most, "{asked} questions for {key:?} {there:?}");
        }
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    /// Another id is answered otherwise, so nothing else can be learned.
    #[test]
    fn an_id_is_all_that_is_known() {
        let nodes = vec![(node(1, 3, &[]), 1), (node(2, 3, &[]), 1)];
        let (found, done) = NodeSearch::new(nodes, |_: &NodeFields| Ok::<_, Unclear>(2)).run();
        assert!(found.id && found.key.is_empty() && done.is_ok());
    }
}
