//! Very many held removals: what one change costs then.

use std::time::Duration;

use xds::Dialect;

use super::plane::{cluster, listener, route};
use super::stage::{Stage, USUAL};
use crate::{CDS, LDS, RDS, ms};

const ROUTES: usize = 200;

/// The least time that the guard takes for a change of one of many routes that hold one cluster each, while so many clusters more are
/// held by another route.
fn cost(others: usize) -> Duration {
    let routes: Vec<String> = (0..ROUTES).map(|n| format!("r{n}")).collect();
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
    stage.plane.content.remove(CDS);
    stage.pass(Duration::from_secs(5));
    let held = |stage: &Stage| stage.holds.iter().map(|hold| hold.removals.len()).sum::<usize>();
    assert_eq!(held(&stage), ROUTES + others);
    let turns = (0..9).map(|n| {
        let own = format!("c{n}");
        stage.put(RDS, &routes[n], route(&routes[n], &[&own, &own]));
        stage.spent = Duration::ZERO;
        stage.exchange();
        stage.spent
    });
    let least = turns.min().unwrap();
    // A route that leaves its cluster lets it go, and that only.
    stage.put(RDS, "r0", route("r0", &["c1"]));
    stage.exchange();
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
