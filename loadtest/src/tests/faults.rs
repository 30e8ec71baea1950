//! Tests that faults of a scenario are reported before it is played, and that a claim needs a measurement.

use std::time::Duration;

use super::scenarios::record_of;
use crate::arguments::Overrides;
use crate::kind::Dialect;
use crate::record::{Assertion, Verdict};
use crate::scenario::file::Scenario;

/// The scenario in the manual can be played: its clients ask for the same, because there is a floor.
#[test]
fn the_scenario_of_the_manual_can_be_played() {
    let manual = include_str!("../../README.md");
    let (_, text) = manual.split_once("```yaml\ndescription: One change").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let mut scenario = Scenario::parse("loadtest/README.md", &format!("description: One change{text}")).unwrap();
    scenario.check_cast(false).unwrap();
    let flags = Overrides {
        clients: Some(4),
        changes: Some(2),
        idle: Some(Duration::ZERO),
        dialect: Some(Dialect::Sotw),
        ..Overrides::default()
    };
    scenario.override_with(&flags);
    assert!(scenario.floor);
    (scenario.floor, scenario.phases) = (false, scenario.phases.drain(..2).collect());
    assert!(record_of(&scenario, "").held());
}

#[test]
fn a_fault_is_told_with_its_place() {
    let fault = |text: &str| format!("{:#}", Scenario::parse("x.yaml", text).unwrap_err());
    let unknown = fault("description: a\nworld:\n  cds: { count: 1, color: red }\n");
    assert!(unknown.starts_with("x.yaml:3:"), "{unknown}");
    assert!(unknown.contains("color"), "{unknown}");
    let size = fault("description: a\nworld:\n  cds: { count: 1, bytes: 5 apples }\n");
    assert!(size.starts_with("x.yaml:3:") && size.contains("5 apples"), "{size}");
    let empty = fault("description: a\n");
    assert!(empty.contains("phases"), "{empty}");
    let other = "description: a\nworld: { cds: { count: 1 } }\nclients: { count: 1, groups: [{ kind: clusters }] }\n\
                 phases: [{ name: a, do: { join: {} }, expect: { compared: [{ what: bytes, to: b, at_most: 1 }] } }]\n";
    assert!(fault(other).contains("`b`"), "{}", fault(other));
}

/// A scenario that is well-formed but makes no sense is refused before anything starts, with what to write instead.
#[test]
fn what_cannot_be_meant_is_refused() {
    let sound = "description: a
world: { cds: { count: 5, bytes: 1KiB } }
clients: { count: 9, per_connection: 1, groups: [{ kind: clusters, weight: 1 }] }
phases:
  - { name: join, do: { join: { clients: 3 } } }
  - { name: change, do: { change: { kind: cds, pattern: { only: 4 }, times: 1, rate: 2 } } }
  - { name: all, do: { join: {} } }
  - { name: removal, do: { remove: { kind: cds, count: 5 } } }
";
    assert!(Scenario::parse("x.yaml", sound).is_ok());
    for (from, to, told) in [
        ("count: 5, bytes", "count: 0, bytes", "0 clusters"),
        ("count: 5, bytes", "count: 4000000000, bytes", "4000000000 clusters"),
        ("1KiB", "900GiB", "64 MiB"),
        (
            "count: 5, bytes: 1KiB",
            "count: 1000000, bytes: 1MiB",
            "1000000 MiB in all",
        ),
        ("count: 9", "count: 0", "`clients.count`"),
        ("per_connection: 1", "per_connection: 0", "`clients.per_connection`"),
        ("weight: 1", "weight: 0", "`clients.groups[0]` (clusters)"),
        ("weight: 1", "weight: 4000000000", "`weight`"),
        ("weight: 1", "reads: 0", "`stalls: true`"),
        ("weight: 1", "flaps: 0s", "`flaps: 0s`"),
        ("weight: 1", "acks: { reject-one-in: 0 }", "`reject-one-in: 0`"),
        (
            "kind: cds, pattern",
            "kind: eds, pattern",
            "phase `change` changes endpoints",
        ),
        ("only: 4", "only: 5", "number 5 of 5"),
        ("only: 4", "burst: 0", "0 at a time"),
        ("rate: 2", "rate: 0", "`rate`"),
        ("rate: 2", "rate: .nan", "`rate`"),
        (
            "clients: 3",
            "clients: 9 } } }\n  - { name: less, do: { join: { clients: 2",
            "phase `less` lets in 2",
        ),
        ("cds, count: 5 }", "cds, count: 6 }", "6 clusters of 5"),
        (
            "remove: { kind: cds, count: 5 }",
            "reconnect: { one_in: 0, pause: 1s }",
            "`one_in: 0`",
        ),
        (
            "remove: { kind: cds, count: 5 }",
            "chaos: { time: 1s }",
            "`returns: true`",
        ),
        ("remove: { kind: cds, count: 5 }", "stop: relay", "`restart: relay`"),
        (
            "name: all,",
            "name: all, ask: [{ path: /clients, rate: 0 }],",
            "0 times a second",
        ),
        ("description: a", "description: a\nstory: chain", "`story`"),
    ] {
        assert!(sound.contains(from), "{from}");
        let error = Scenario::parse("x.yaml", &sound.replacen(from, to, 1)).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.starts_with("x.yaml: ") && error.contains(told), "{to}: {error}");
    }
}

/// A comparison needs the part to compare with, and a claim without a measurement does not hold.
#[test]
fn a_claim_needs_something_that_was_measured() {
    let text = "description: Nothing.
world: { cds: { count: 5, bytes: 200 } }
clients: { count: 2, groups: [{ kind: clusters }] }
phases:
  - { name: join, do: { join: {} } }
  - { name: rest, do: { rest: 10ms }, expect: { p99_below: 1s, join_p99_below: 1s, join_max_to_median: 9 } }
";
    let record = record_of(&Scenario::parse("here", text).unwrap(), "");
    let failed = |it: &&Assertion| it.verdict == Verdict::Failed && it.measured.is_none();
    assert_eq!(
        record.assertions.iter().filter(failed).count(),
        3,
        "{:#?}",
        record.assertions
    );
    for (expected, what) in [("p99_to_floor: 2", "--floor"), ("p99_to_calm: 2", "`calm: true`")] {
        let scenario = Scenario::parse("here", &text.replacen("p99_below: 1s", expected, 1)).unwrap();
        let error = scenario.check_cast(false).unwrap_err().to_string();
        assert!(error.contains("phase `rest`") && error.contains(what), "{error}");
    }
    // The resources of a foreign control plane are not known before.
    let scenario = Scenario::parse("here", &text.replace("kind: clusters", "kind: hosts")).unwrap();
    let error = scenario.check_cast(false).unwrap_err().to_string();
    assert!(error.contains("(hosts) asks for virtual hosts"), "{error}");
    assert!(scenario.check_cast(true).is_ok());
}
