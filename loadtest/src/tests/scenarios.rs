//! That scenarios are read strictly, and that small ones hold over real sockets.

use std::time::Duration;

use crate::arguments::Overrides;
use crate::kind::Dialect;
use crate::record::{Assertion, Record, Recorder, Verdict};
use crate::scenario::file::{BUILT_IN, Scenario};

#[test]
fn every_scenario_can_be_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for file in files {
        count += 1;
        let name = file.to_str().unwrap();
        if let Err(error) = Scenario::find(name) {
            panic!("{error:#}");
        }
    }
    assert!(count > BUILT_IN.len());
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

/// Plays a scenario at the control plane itself.
fn play(text: &str, clients: u32) {
    let flags = Overrides {
        clients: Some(clients),
        ..Overrides::default()
    };
    let _ = play_with(text, &flags, "");
}

fn play_with(text: &str, flags: &Overrides, words: &str) -> Record {
    let mut scenario = Scenario::parse("here", text).unwrap();
    scenario.override_with(flags);
    let words = ["distributary-load", "--direct"]
        .into_iter()
        .chain(words.split_whitespace());
    let arguments = <crate::arguments::Arguments as clap::Parser>::parse_from(words);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let recorder = Recorder::new("here", super::now()).unwrap();
    let mut say = |_: &str| {};
    let played = crate::scenario::play::run(&scenario, &arguments, &recorder, &mut say);
    runtime.block_on(played).unwrap();
    let record = recorder.finish(super::now()).unwrap();
    assert!(record.held(), "{:#?}\n{:#?}", record.assertions, record.breaches);
    assert!(record.phases.iter().all(|phase| phase.clients > 0));
    record
}

fn built_in(name: &str) -> &'static str {
    BUILT_IN.iter().find(|(built_in, _)| *built_in == name).unwrap().1
}

#[test]
fn the_usual_run_holds_in_both_dialects_and_by_name() {
    for (name, dialect, words) in [
        ("churn", Dialect::Delta, "--threads 2"),
        ("churn", Dialect::Sotw, ""),
        ("by-name", Dialect::Delta, ""),
        ("by-name", Dialect::Sotw, ""),
    ] {
        let flags = Overrides {
            clients: Some(20),
            resources: Some(50),
            changes: Some(10),
            rate: Some(200.0),
            names: Some(10),
            dialect: Some(dialect),
            idle: Some(Duration::ZERO),
            ..Overrides::default()
        };
        // At the control plane itself there are as many streams as clients.
        let text = built_in(name).replace("upstream_streams: 1", "upstream_streams: 20");
        let record = play_with(&text, &flags, words);
        let changes = record.phases.iter().find(|phase| phase.name == "changes").unwrap();
        assert!(changes.propagation.count() > 0, "{name}");
        let joins: u64 = record.phases.iter().map(|phase| phase.join.count()).sum();
        assert_eq!(joins, 20, "{name}");
        let held = |it: &Assertion| it.text.contains("once") && it.verdict == Verdict::Held;
        assert!(record.assertions.iter().any(held), "{:#?}", record.assertions);
    }
}

#[test]
fn a_mixed_fleet_holds() {
    let steady = built_in("steady");
    play(
        &steady.replace("3s }", "100ms }").replace("times: 100", "times: 10"),
        26,
    );
}

#[test]
fn one_stream_for_each_endpoint_holds() {
    play(
        "description: Streams.
world: { cds: { count: 9, bytes: 200 }, eds: { count: 9, bytes: 200 } }
clients:
  count: 4
  per_connection: 2
  groups:
    - { kind: envoy, streams: per-endpoint }
    - { kind: envoy, streams: per-endpoint, dialect: sotw }
phases:
  - { name: join, do: { join: {} } }
  - { name: changes, do: { change: { kind: eds, pattern: full, times: 3 } }, expect: { messages_at_most: 108 } }
  - { name: away, do: { reconnect: { one_in: 1, pause: 10ms } }, expect: { } }
",
        4,
    );
}

/// A fleet that grows: a change is awaited from those who are there.
#[test]
fn a_change_waits_for_those_who_joined() {
    play(
        "description: Growth.
world: { cds: { count: 5, bytes: 200 } }
clients: { count: 9, per_connection: 2, groups: [{ kind: clusters }] }
phases:
  - { name: some, do: { join: { clients: 3 } } }
  - { name: for some, do: { change: { kind: cds, pattern: one, times: 2 } }, limit: 10s, expect: { messages_at_most: 8 } }
  - { name: all, do: { join: {} } }
  - { name: for all, do: { change: { kind: cds, pattern: one, times: 2 } }, limit: 10s, expect: { messages_at_most: 18 } }
",
        9,
    );
}
