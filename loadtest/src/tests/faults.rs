// SPDX-License-Identifier: Apache-2.0
//! Tests that faults of a scenario are reported before it is played, and that a claim needs a measurement.

use super::scenarios::{read, record_of};
use crate::measure::record::{Assertion, Verdict};
use crate::story::file::Scenario;

/// The scenario in the manual can be played: its clients ask for the same, because there is a floor.
#[test]
fn the_scenario_of_the_manual_can_be_played() {
    let manual = include_str!("../../README.md");
    let (_, text) = manual.split_once("```yaml\ndescription: One change").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let set = [
        "clients.count=4",
        "phases[].do.change.times=2",
        "phases[].do.idle=0s",
        "clients.groups[].dialect=sotw",
    ];
    let mut scenario = read(&format!("description: One change{text}"), &set);
    assert_eq!(scenario.missing(false), []);
    assert!(scenario.floor);
    (scenario.floor, scenario.phases) = (false, scenario.phases.drain(..2).collect());
    assert!(record_of(&scenario, "").held());
}

#[test]
fn a_fault_is_told_with_its_place() {
    let fault = |text: &str| format!("{:#}", Scenario::read("x.yaml", text, None, &[]).unwrap_err());
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

/// All faults of the form are found at once, and all of the sense once the form is good. What lacks something that was wrong is not
/// blamed for that.
#[test]
fn all_faults_are_told_at_once() {
    let text = "descripton: a
world: { cds: { count: many, colour: red, bytes: 3 apples }, dcs: { count: 1 } }
clients:
  count: 9
  groups:
    - { kind: cluster, weigth: 2 }
    - { dialect: sotw }
phases:
  - { name: join, do: { jion: {} } }
  - name: change
    do: { change: { kind: cds, pattern: onee, times: 1 } }
    expect: { p99_bellow: 1s, compared: [{ what: p98, to: join }] }
  - { name: \"5\", do: { rest: a while } }
";
    let faults = Scenario::read("x.yaml", text, None, &[]).unwrap_err().to_string();
    let places: Vec<_> = faults.lines().map(|line| line.split_once(": ").unwrap().0).collect();
    assert_eq!(faults.lines().count(), 14, "{faults}");
    for said in [
        "x.yaml:2:24: expected a whole number",
        "x.yaml:1:1: unknown key `descripton`; did you mean `description`?",
        "x.yaml:2:30: unknown key `colour`, expected one of count, bytes, extras",
        "x.yaml:6:15: unknown word `cluster`; did you mean `clusters`?",
        "x.yaml:6:24: unknown key `weigth`; did you mean `weight`?",
        "x.yaml:7:7: the key `kind` is missing; add it",
        "x.yaml:9:25: unknown word `jion`; did you mean `join`?",
        "x.yaml:11:41: unknown word `onee`; did you mean `one`?",
        "x.yaml:12:15: unknown key `p99_bellow`; did you mean `p99_below`?",
        "x.yaml:12:50: unknown word `p98`; did you mean `p99`?",
        "x.yaml:1:1: the key `description` is missing; add it",
    ] {
        assert!(faults.lines().any(|line| line == said), "{said} is not in\n{faults}");
    }
    for place in ["x.yaml:2:50", "x.yaml:2:62", "x.yaml:13:30"] {
        assert!(places.contains(&place), "{place} is not in\n{faults}");
    }
    let senseless = "description: a
world: { cds: { count: 0, bytes: 1KiB } }
clients:
  count: 0
  groups: [{ kind: clusters, weight: 0 }]
phases:
  - { name: join, do: { join: {} } }
  - name: join
    do: { change: { kind: eds, pattern: one, times: 1 } }
    expect: { compared: [{ what: bytes, to: jion, at_most: 1 }] }
";
    assert_eq!(
        Scenario::read("x.yaml", senseless, None, &[]).unwrap_err().to_string(),
        "x.yaml:2:17: `world` has 0 clusters: use 1 to 1000000
x.yaml:4:3: `clients.count` is 0: use 1 or more
x.yaml:5:12: `clients.groups[0]` (clusters) has `weight: 0` and therefore no clients: leave it out, or use 1 or more
x.yaml:8:5: phase `join` has the name of an earlier phase: rename one
x.yaml:8:5: phase `join` is compared with `jion`, but no earlier phase has that name; did you mean `join`?
x.yaml:8:5: phase `join` changes endpoints, but `world` has none"
    );
    let endless = format!("description: a\nphases: [{}]\n", "{ x: 1 }, ".repeat(1_000));
    let faults = Scenario::read("x.yaml", &endless, None, &[]).unwrap_err().to_string();
    assert_eq!(faults.lines().count(), 100);
}

const SOUND: &str = "description: a
world: { cds: { count: 5, bytes: 1KiB } }
clients: { count: 9, per_connection: 1, groups: [{ kind: clusters, weight: 1 }] }
phases:
  - { name: join, do: { join: { clients: 3 } } }
  - { name: change, do: { change: { kind: cds, pattern: { only: 4 }, times: 1, rate: 2 } } }
  - { name: all, do: { join: {} } }
  - { name: removal, do: { remove: { kind: cds, count: 5 } } }
";

/// A scenario that is well-formed but makes no sense is refused before anything starts, with what to write instead.
#[test]
fn what_cannot_be_meant_is_refused() {
    assert!(Scenario::read("x.yaml", SOUND, None, &[]).is_ok());
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
        (
            "remove: { kind: cds, count: 5 }",
            "restart: relay-above",
            "`relay: { above: true }`",
        ),
        (
            "remove: { kind: cds, count: 5 }",
            "stop: fallback",
            "`control_plane: { fallback: true }`",
        ),
        (
            "remove: { kind: cds, count: 5 }",
            "kill: control-plane",
            "only another part can",
        ),
    ] {
        assert!(SOUND.contains(from), "{from}");
        let error = Scenario::read("x.yaml", &SOUND.replacen(from, to, 1), None, &[]).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.starts_with("x.yaml:") && error.contains(told), "{to}: {error}");
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
    let record = record_of(&Scenario::read("here", text, None, &[]).unwrap(), "");
    let failed = |it: &&Assertion| it.verdict == Verdict::Failed && it.measured.is_none();
    assert_eq!(
        record.assertions.iter().filter(failed).count(),
        3,
        "{:#?}",
        record.assertions
    );
    for (expected, what) in [("p99_to_floor: 2", "`floor: true`"), ("p99_to_calm: 2", "`calm: true`")] {
        let scenario = Scenario::read("here", &text.replacen("p99_below: 1s", expected, 1), None, &[]).unwrap();
        let error = scenario.missing(false).pop().unwrap().what;
        assert!(error.contains("phase `rest`") && error.contains(what), "{error}");
    }
    // The resources of a foreign control plane are not known before.
    let scenario = Scenario::read("here", &text.replace("kind: clusters", "kind: hosts"), None, &[]).unwrap();
    let error = scenario.missing(false).pop().unwrap().what;
    assert!(error.contains("(hosts) asks for virtual hosts"), "{error}");
    assert!(scenario.missing(true).is_empty());
}
