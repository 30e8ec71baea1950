// SPDX-License-Identifier: Apache-2.0
//! Very many held removals: what one change costs then.

use std::time::Duration;

use xds::Dialect;

use super::plane::{cluster, listener, route};
use super::stage::{Stage, USUAL};
use crate::{CDS, LDS, RDS, ms};

/// A stage with so many routes, each to a cluster of its own, and one more route to so many other clusters.
fn stage(routes: usize, others: usize) -> Stage {
    let routes: Vec<String> = (0..routes).map(|n| format!("r{n}")).collect();
    let mut wants = vec![(LDS, "*"), (CDS, "*"), (RDS, "all")];
    wants.extend(routes.iter().map(|name| (RDS, name.as_str())));
    let mut stage = Stage::new(Dialect::Delta, USUAL, &wants);
    stage.wanted.extend(routes.iter().cloned());
    stage.put(LDS, "l", listener("l", "all", 80));
    let names: Vec<String> = (0..others).map(|n| format!("other-{n}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    stage.put(RDS, "all", route("all", &all));
    for (n, name) in routes.iter().enumerate() {
        stage.put(RDS, name, route(name, &[&format!("c{n}")]));
        stage.put(CDS, &format!("c{n}"), cluster(&format!("c{n}")));
    }
    names.iter().for_each(|name| stage.put(CDS, name, cluster(name)));
    stage.pass(Duration::from_secs(20));
    stage
}

/// How long the relay takes for each of nine changes of one route, which lead to this cluster as well; the shortest first.
fn changes(stage: &mut Stage, to: &str) -> Vec<Duration> {
    let turns = (1..10).map(|n| {
        let (name, own) = (format!("r{n}"), format!("c{n}"));
        stage.put(RDS, &name, route(&name, &[&own, to]));
        stage.spent = Duration::ZERO;
        stage.exchange();
        stage.spent
    });
    let mut turns: Vec<Duration> = turns.collect();
    turns.sort_unstable();
    turns
}

fn held(stage: &Stage) -> usize {
    stage.holds.iter().map(|hold| hold.removals.len()).sum()
}

/// The least time for a change of one of many routes that hold one cluster each, while so many clusters more are held by another route.
fn cost(others: usize) -> Duration {
    const ROUTES: usize = 200;
    let mut stage = stage(ROUTES, others);
    stage.plane.content.remove(CDS);
    stage.pass(Duration::from_secs(5));
    assert_eq!(held(&stage), ROUTES + others);
    let least = changes(&mut stage, "c100")[0];
    // A route that leaves its cluster lets it go, and that only.
    stage.say(RDS, "r0", route("r0", &["c1"]));
    assert_eq!(held(&stage), ROUTES + others - 1);
    least
}

/// A change of one route costs what that route names, whatever else is held.
#[test]
fn a_change_of_one_route() {
    let (few, many) = (cost(100), cost(20_000));
    // A hundred times as many; what is left is noise.
    assert!(many < few * 10 + ms(1), "{few:?} with 100, {many:?} with 20,000");
}
