// SPDX-License-Identifier: Apache-2.0
//! Whoever asks is answered: at rest no question is open to which the views have an answer (B-14, B-20, C-11, C-15), and no cluster
//! warms for endpoints that exist (M-01).
//!
//! Owns the judgement of open questions. Which are open the client knows.

use std::collections::BTreeSet;

use xds::{Dialect, Reason};

use crate::body::Type;
use crate::client::{Client, Mux, Persona};
use crate::names::{canonical, covers, is_collection};
use crate::reading::{Reading, Seen};
use crate::tally::{Broken, Rule, Tally};

pub(super) fn check(
    client: &Client,
    kind: Type,
    mux: &Mux,
    reading: &Reading,
    tally: &mut Tally,
) -> Result<(), Broken> {
    let (memory, want) = (&mux.memory, &mux.memory.want);
    // C-15: an Envoy is not told that routes do not exist.
    let told = client.dialect == Dialect::Delta && !(client.is_undeclared_envoy() && kind == Type::Rds);
    let all = want.wildcard.then(|| "*".to_owned());
    let names: BTreeSet<&String> = want.names.iter().chain(memory.asked.keys()).chain(&all).collect();
    for name in names {
        let open = memory.asked.contains_key(name);
        let mut held = client.held(kind).keys();
        let has = |held: &String| held == name || is_collection(name) && covers(name, &canonical(kind, held));
        let known = held.any(has) || memory.had_any(name);
        let rule = match reading.seen(kind, name, want) {
            _ if name == "*" && reading.is_certain(kind) => Rule::B20,
            _ if name == "*" => continue,
            // The members of a collection are compared one by one.
            Seen::Present(_) if is_collection(name) => continue,
            Seen::Present(_) => Rule::B14,
            Seen::Absent(Reason::Said | Reason::Expired) if told => Rule::C15,
            // K-16: who may hold it is told nothing.
            Seen::Absent(Reason::TimedOut) if told && !known => Rule::C15,
            Seen::Absent(_) | Seen::Unwanted | Seen::Uncovered | Seen::Unknown => continue,
        };
        tally.hit(rule);
        if open {
            let seen = reading.seen(kind, name, want);
            let what = format!("{kind:?} {name} was asked for and never answered, and the view has {seen:?}");
            return Err(Broken::new(rule, what));
        }
    }
    match memory.again.keys().find(|name| reading.covers(kind, name)) {
        Some(name) => broken!(B14, "{kind:?} {name} was asked for again with all others"),
        None => Ok(()),
    }
}

/// M-01: no cluster warms for endpoints that exist.
pub(super) fn check_warming(client: &Client, mux: &Mux, reading: &Reading, tally: &mut Tally) -> Result<(), Broken> {
    tally.hit(Rule::M01);
    let (memory, want) = (&mux.memory, &mux.memory.want);
    // B-22: what it has rejected does not come again.
    let exists = |name: &&String| match reading.seen(Type::Eds, name, want) {
        Seen::Present(revision) => want.names.contains(*name) && !memory.refuses(name, revision),
        Seen::Absent(_) | Seen::Unwanted | Seen::Uncovered | Seen::Unknown => false,
    };
    let mut waits = client.warming.iter().filter(|_| client.persona != Persona::Grpc);
    match waits.find(exists) {
        Some(name) => broken!(M01, "it still waits for endpoints {name}"),
        None => Ok(()),
    }
}
