//! Whoever asks is answered: at rest no question is open to which the views have an answer (B-14, B-20, C-11, C-15), and no cluster
//! warms for endpoints that exist (M-01).
//!
//! Owns the judgement of open questions. Which are open the client knows.

use xds::{Dialect, Reason};

use crate::body::Type;
use crate::client::{Client, Mux, Persona};
use crate::names::{covers, is_alias, is_collection};
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
    for name in memory.asked.keys() {
        tally.hit(Rule::B14);
        let owes = |rule, what: Seen| {
            let what = format!("{kind:?} {name} was asked for and never answered, and the view has {what:?}");
            Err(Broken::new(rule, what))
        };
        if name == "*" {
            if reading.is_complete(kind) {
                return owes(Rule::B20, Seen::Unwanted);
            }
            continue;
        }
        let mut held = client.held(kind).keys();
        let known = held.any(|held| held == name || covers(name, held)) || memory.had_any(name) || is_alias(name);
        match reading.seen(kind, name, want) {
            // The members of a collection are compared one by one.
            Seen::Present(_) if is_collection(name) => {}
            seen @ Seen::Present(_) => return owes(Rule::B14, seen),
            seen @ Seen::Absent(Reason::Said | Reason::Expired) if told => return owes(Rule::C15, seen),
            // K-16: who may hold it is told nothing.
            seen @ Seen::Absent(Reason::TimedOut) if told && !known => return owes(Rule::C15, seen),
            Seen::Absent(_) | Seen::Unwanted | Seen::Uncovered | Seen::Unknown => {}
        }
    }
    match memory.again.keys().find(|name| reading.covers(kind, name)) {
        Some(name) => Err(Broken::new(
            Rule::B14,
            format!("{kind:?} {name} was asked for again with all others"),
        )),
        None => Ok(()),
    }
}

/// M-01: no cluster warms for endpoints that exist.
pub(super) fn check_warming(client: &Client, mux: &Mux, reading: &Reading, tally: &mut Tally) -> Result<(), Broken> {
    tally.hit(Rule::M01);
    let exists = |name: &&String| {
        let asked = mux.memory.want.names.contains(*name);
        asked && matches!(reading.seen(Type::Eds, name, &mux.memory.want), Seen::Present(_))
    };
    let mut waits = client.warming.iter().filter(|_| client.persona != Persona::Grpc);
    match waits.find(exists) {
        Some(name) => Err(Broken::new(Rule::M01, format!("it still waits for endpoints {name}"))),
        None => Ok(()),
    }
}
