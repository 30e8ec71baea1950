// SPDX-License-Identifier: Apache-2.0
//! How a client handles a response: it applies or rejects it, and then acts on it.
//!
//! Owns the held content, warming, and withheld acknowledgements. Knows nothing of requests.

use std::collections::BTreeSet;
use std::time::Duration;

use xds::Dialect;

use super::{Act, Client, Do, Holding, Persona, Withheld};
use crate::body::Type;
use crate::rng::Rng;
use crate::wire::{Answer, Entry};

/// How long a cluster warms before it goes without endpoints (M-01).
const WARMING: Duration = Duration::from_secs(15);

impl Client {
    /// Takes a response to which the relay had read requests up to this number.
    pub(crate) fn receive(&mut self, stream: u64, answer: &Answer, serial: u64, rng: &mut Rng) -> Vec<Do> {
        if !self.lines.contains_key(&stream) {
            return Vec::new();
        }
        if let Some(mux) = self.mux(stream, answer.kind) {
            mux.memory.answer(answer);
        }
        if self.persona == Persona::Hostile {
            return self.react(stream, answer, rng);
        }
        let rejected = self.rejects(answer);
        let mut todo = Vec::new();
        let mut waits = BTreeSet::new();
        if let Some(mux) = self.mux(stream, answer.kind) {
            mux.memory.settle(answer, rejected);
        }
        if self.dialect == Dialect::Sotw
            && let Some(mux) = self.mux(stream, answer.kind)
        {
            mux.newest.clone_from(&answer.nonce);
            if !rejected {
                mux.version.clone_from(&answer.version);
            }
        }
        if !rejected {
            waits = self.apply(stream, answer, serial);
        }
        self.arrived(answer, &mut todo);
        let settle = Act::Settle(stream, answer.kind, answer.nonce.clone(), rejected);
        let (low, high) = if self.tame { (0, 5) } else { self.settling };
        let pause = rng.millis(low, high);
        let envoy = !matches!(self.persona, Persona::Grpc);
        match self.dialect {
            _ if waits.is_empty() || !envoy => todo.push(Do::Later(pause, settle)),
            Dialect::Sotw => {
                todo.push(Do::Later(pause, settle));
                if self.persona == Persona::Streams {
                    todo.push(Do::Reopen(Type::Eds));
                } else if let Some(request) = self.ask_again(stream, Type::Eds) {
                    todo.push(Do::Send(stream, request));
                }
            }
            Dialect::Delta if self.persona == Persona::Streams => {
                todo.push(Do::Later(pause, settle));
                todo.push(Do::Reopen(Type::Eds));
            }
            Dialect::Delta => {
                todo.push(Do::Later(WARMING, Act::Tire(stream, answer.nonce.clone())));
                self.withheld.push(Withheld {
                    stream,
                    nonce: answer.nonce.clone(),
                    waits,
                });
            }
        }
        todo.push(Do::Later(rng.millis(0, 10), Act::Sync));
        todo
    }

    /// Whether it rejects a response: if it looks closely, and something in it is bad.
    pub(crate) fn rejects(&self, answer: &Answer) -> bool {
        let bad = |entry: &Entry| entry.facts.as_ref().is_some_and(|facts| facts.bad);
        self.picky && self.persona != Persona::Hostile && answer.entries.iter().any(bad)
    }

    /// Takes over what the response says. The endpoints that its clusters now wait for.
    fn apply(&mut self, stream: u64, answer: &Answer, serial: u64) -> BTreeSet<String> {
        let Some(mux) = self.lines.get(&stream).and_then(|line| line.muxes.get(&answer.kind)) else {
            return BTreeSet::new();
        };
        let mux = mux.clone();
        let holds = self.holds.entry(answer.kind).or_default();
        if self.dialect == Dialect::Sotw && answer.kind.full_state() {
            holds.retain(|name, _| answer.entries.iter().any(|entry| entry.name == *name));
        }
        let mut waits = BTreeSet::new();
        for entry in &answer.entries {
            let Some(facts) = &entry.facts else { continue };
            // What came too late for a subscription that has ended is passed over.
            let covered = mux.wildcard && !entry.name.starts_with("xdstp:");
            if !covered && !mux.explicit(&entry.name) {
                holds.remove(&entry.name);
                continue;
            }
            let holding = Holding {
                revision: facts.revision,
                stream,
                serial,
                version: entry.version.clone(),
                refers: facts.refers.clone(),
                endpoints: facts.endpoints.clone(),
                mortal: entry.ttl.is_some(),
            };
            let old = holds.insert(entry.name.clone(), holding);
            if old.is_none_or(|old| old.revision != facts.revision) {
                waits.extend(facts.endpoints.clone());
            }
        }
        for name in &answer.removed {
            holds.remove(name);
        }
        self.warming.extend(waits.iter().cloned());
        let used: BTreeSet<String> = self.endpoints().map(str::to_owned).collect();
        self.warming.retain(|name| used.contains(name));
        waits
    }

    /// Endpoints that have come, or do not exist, are waited for no more.
    fn arrived(&mut self, answer: &Answer, todo: &mut Vec<Do>) {
        let used: BTreeSet<String> = self.endpoints().map(str::to_owned).collect();
        let eds = answer.kind == Type::Eds;
        let come: BTreeSet<&String> = answer
            .entries
            .iter()
            .map(|entry| &entry.name)
            .chain(&answer.removed)
            .filter(|_| eds)
            .collect();
        self.warming.retain(|name| !come.contains(name));
        for withheld in &mut self.withheld {
            withheld
                .waits
                .retain(|name| !come.contains(name) && used.contains(name));
        }
        let (ready, withheld) = std::mem::take(&mut self.withheld)
            .into_iter()
            .partition(|withheld| withheld.waits.is_empty());
        self.withheld = withheld;
        let ready: Vec<Withheld> = ready;
        for ready in ready {
            let settle = Act::Settle(ready.stream, Type::Cds, ready.nonce, false);
            todo.push(Do::Later(Duration::ZERO, settle));
        }
    }
}
