// SPDX-License-Identifier: Apache-2.0
//! What a client remembers of its requests and of their answers, beside what it holds.
//!
//! Owns which requests were not answered yet. Knows nothing of the relay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use peers::asked::Asked;

use crate::body::Type;
use crate::names::{covers, is_collection};
use crate::wire::{Answer, Up};

/// The memory of one type on one stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) want: Arc<Asked>,
    /// What it asked for, each with the number of the request, until it is answered.
    pub(crate) asked: BTreeMap<String, u64>,
    /// When it asked last for each name, by the number of the request.
    latest: BTreeMap<String, u64>,
    /// What it held when it asked for the wildcard again, each with the number of the request, until it comes.
    pub(crate) again: BTreeMap<String, u64>,
    /// All that ever came, by name.
    came: BTreeMap<String, BTreeSet<u64>>,
    /// What it rejected of each name since it accepted what came last; a removal is 0.
    pub(crate) refused: BTreeMap<String, BTreeSet<u64>>,
    /// Whether more of the last answer follows.
    pub(crate) goes_on: bool,
}

impl Memory {
    /// Notes a request; `held` are the names that the client holds from the same stream.
    pub(super) fn request(&mut self, kind: Type, request: &Up, held: &[String]) {
        let before = self.want.clone();
        let want = match request {
            Up::Sotw(request) => before.after_sotw(request),
            Up::Delta(request) => before.after_delta(request),
        };
        let added = want.names.difference(&before.names);
        self.latest.extend(added.map(|name| (name.clone(), want.serial)));
        let serial = want.serial;
        match request {
            Up::Sotw(_) => {
                let added = want.names.difference(&before.names).cloned();
                self.asked.extend(added.map(|name| (name, serial)));
            }
            Up::Delta(request) => {
                let subscribed = &request.resource_names_subscribe;
                // C-13: what is declared need not be sent. C-14: endpoints are sent in any case.
                let declared = |name: &&String| {
                    kind != Type::Eds && request.initial_resource_versions.contains_key(*name) && serial == 1
                };
                let again = |name: &&String| before.wildcard && *name == "*";
                let names = subscribed.iter().filter(|name| !declared(name) && !again(name));
                self.asked.extend(names.map(|name| (name.clone(), serial)));
                // C-11: who asks for the wildcard again is sent all of it again.
                if subscribed.iter().any(|name| again(&name)) {
                    let covered = held.iter().filter(|name| want.covers(name));
                    self.again.extend(covered.map(|name| (name.clone(), serial)));
                }
            }
        }
        if want.wildcard && !before.wildcard {
            self.asked.insert("*".to_owned(), serial);
        }
        // C-08: in delta, who gives up a name that its wildcard covers waits for an answer.
        let delta = matches!(request, Up::Delta(_));
        self.asked.retain(|name, _| match name.as_str() {
            "*" => want.wildcard,
            name => want.asks(name) || delta && want.covers(name),
        });
        self.again.retain(|_, _| want.wildcard);
        self.want = Arc::new(want);
    }

    /// Notes a response to which the relay had read requests up to this number.
    pub(crate) fn answered(&mut self, answer: &Answer, serial: u64, full: bool) {
        let mentioned: BTreeSet<&String> = answer.mentions().collect();
        self.asked.retain(|name, asked| {
            let member = || is_collection(name) && mentioned.iter().any(|other| covers(name, other));
            let answers = full || name == "*" || mentioned.contains(name) || member();
            serial < *asked || !answers
        });
        self.again
            .retain(|name, asked| serial < *asked || !mentioned.contains(name));
    }

    /// Notes what a response brings.
    pub(super) fn answer(&mut self, answer: &Answer) {
        self.goes_on = answer.goes_on();
        for entry in &answer.entries {
            let came = self.came.entry(entry.name.clone()).or_default();
            came.extend(entry.facts.as_ref().map(|facts| facts.revision));
        }
    }

    /// Notes what the client makes of a response.
    pub(super) fn settle(&mut self, answer: &Answer, rejected: bool) {
        let brought = answer
            .entries
            .iter()
            .map(|entry| (&entry.name, entry.facts.as_ref().map_or(0, |facts| facts.revision)));
        for (name, revision) in brought.chain(answer.removed.iter().map(|name| (name, 0))) {
            match rejected {
                true => drop(self.refused.entry(name.clone()).or_default().insert(revision)),
                // What it accepted before may be listed instead of what it has rejected since (B-18), and older content is (K-37).
                false if revision > 0 && self.refused.get(name).and_then(BTreeSet::last) > Some(&revision) => {}
                false => drop(self.refused.remove(name)),
            }
        }
    }

    /// Whether what came of a name in a response, to which the relay had read requests up to this number, answers the last question
    /// for it. Else it was on its way when the name was given up and asked for again.
    pub(crate) fn is_sure(&self, name: &str, serial: u64) -> bool {
        self.latest.get(name).is_none_or(|asked| *asked <= serial)
    }

    /// Whether it has rejected this content.
    pub(crate) fn refuses(&self, name: &str, revision: u64) -> bool {
        self.refused
            .get(name)
            .is_some_and(|refused| refused.contains(&revision))
    }

    /// Whether this content came before.
    pub(crate) fn had(&self, name: &str, revision: u64) -> bool {
        self.came.get(name).is_some_and(|came| came.contains(&revision))
    }

    /// Whether anything came of this name, or of a member of this collection.
    pub(crate) fn had_any(&self, name: &str) -> bool {
        self.came.contains_key(name) || is_collection(name) && self.came.keys().any(|other| covers(name, other))
    }
}
