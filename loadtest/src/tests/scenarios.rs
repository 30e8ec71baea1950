//! Tests that scenarios are read strictly, and that small ones hold over real sockets.

use std::time::Duration;

use crate::command::arguments::{Arguments, Overrides};
use crate::measure::record::{Assertion, Record, Recorder, Verdict};
use crate::story::file::{BUILT_IN, Scenario};
use crate::wire::kind::Dialect;

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

/// Plays a scenario directly at the control plane.
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
    let record = record_of(&scenario, words);
    assert!(record.held(), "{:#?}\n{:#?}", record.assertions, record.breaches);
    assert!(record.phases.iter().all(|phase| phase.clients > 0));
    record
}

/// Returns the record of a scenario that is played directly at the control plane.
pub(super) fn record_of(scenario: &Scenario, words: &str) -> Record {
    try_record(scenario, &format!("--direct {words}")).unwrap()
}

pub(super) fn try_record(scenario: &Scenario, words: &str) -> anyhow::Result<Record> {
    let words = ["distributary-load"].into_iter().chain(words.split_whitespace());
    played(scenario, &<Arguments as clap::Parser>::parse_from(words))
}

/// Returns the record of a scenario that is played with these arguments.
pub(super) fn played(scenario: &Scenario, arguments: &Arguments) -> anyhow::Result<Record> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let recorder = Recorder::new("here", super::now()).unwrap();
    let mut say = |_: &str| {};
    let played = crate::story::play::run(scenario, arguments, &recorder, &mut say);
    runtime.block_on(played)?;
    recorder.finish(super::now())
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
        let record = play_with(built_in(name), &flags, words);
        let changes = record.phases.iter().find(|phase| phase.name == "changes").unwrap();
        assert!(changes.propagation.count() > 0, "{name}");
        let joins: u64 = record.phases.iter().map(|phase| phase.join.count()).sum();
        assert_eq!(joins, 20, "{name}");
        let held = |it: &Assertion| it.text.contains("once") && it.verdict == Verdict::Held;
        assert!(record.assertions.iter().any(held), "{:#?}", record.assertions);
        // Without a relay there are no assertions about one.
        let about_relay = |it: &Assertion| it.text.contains("relay") || it.text.contains("streams");
        assert!(!record.assertions.iter().any(about_relay), "{:#?}", record.assertions);
        assert_eq!(
            record.notes.iter().filter(|note| note.what == "left out").count(),
            2,
            "{name}"
        );
    }
}

#[test]
fn a_mixed_fleet_holds() {
    let steady = built_in("steady").replace("3s }", "100ms }");
    let short = steady
        .replace("times: 100", "times: 10")
        .replace("count: 200", "count: 20");
    play(&short.replace("count: 50,", "count: 10,"), 28);
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

/// While a fleet grows, a change is awaited only at the clients that have joined.
#[test]
fn a_change_waits_for_those_who_joined() {
    play(
        "description: Growth.
world: { cds: { count: 5, bytes: 200 } }
clients: { count: 9, per_connection: 2, groups: [{ kind: clusters }] }
phases:
  - { name: some, do: { join: { clients: 3 } } }
  - { name: for some, do: { change: { kind: cds, pattern: one, times: 2 } }, expect: { messages_at_most: 8 } }
  - { name: all, do: { join: {} } }
  - { name: for all, do: { change: { kind: cds, pattern: one, times: 2 } }, expect: { messages_at_most: 18 } }
",
        9,
    );
}

/// A fleet can come over time: joins are counted from when each client was let in, and changes are awaited only after that.
#[test]
fn clients_come_over_time() {
    let text = "description: A ramp.
world: { cds: { count: 5, bytes: 200 } }
clients: { count: 40, per_connection: 2, groups: [{ kind: clusters }] }
phases:
  - { name: some, do: { join: { clients: 10 } } }
  - { name: ramp, do: { join: { over: 1s } }, expect: { join_p99_below: 900ms } }
  - { name: for all, do: { change: { kind: cds, pattern: one, times: 1 } }, expect: { delivered_once: true } }
";
    let record = play_with(text, &Overrides::default(), "");
    let ramp = record.phases.iter().find(|phase| phase.name == "ramp").unwrap();
    assert_eq!((ramp.join.count(), ramp.clients), (30, 40));
    assert!(ramp.length_ms >= 1000.0, "{}", ramp.length_ms);
}

/// A client that asks for one name after the other is complete with the last answer.
#[test]
fn clients_on_demand_hold() {
    let text = "description: On demand.
world: { cds: { count: 9, bytes: 200 }, vhds: { count: 9, bytes: 300 } }
clients:
  count: 8
  per_connection: 2
  groups:
    - { kind: on-demand, names: { count: 3 }, every: 10ms }
    - { kind: on-demand, names: { count: 3 }, every: 10ms, dialect: sotw, streams: per-type }
    - { kind: hosts, names: { count: 3 }, every: 10ms }
    - { kind: hosts, names: { count: 3 }, every: 10ms, streams: per-type }
phases:
  - { name: join, do: { join: {} } }
  - { name: clusters, do: { change: { kind: cds, pattern: full, times: 2 } }, expect: { delivered_once: true } }
  - { name: hosts, do: { change: { kind: vhds, pattern: full, times: 2 } }, expect: { delivered_once: true } }
";
    let record = play_with(text, &Overrides::default(), "");
    assert_eq!(record.phases.first().map(|phase| phase.join.count()), Some(8));
}

/// Each way of asking, also of types that other software does not know.
#[test]
fn every_type_holds() {
    for (name, clients) in [("ztunnels", 8), ("every-type", 16)] {
        let short = built_in(name)
            .replace("rate: 5", "rate: 100")
            .replace("count: 2000", "count: 200")
            // The control plane itself does not compare versions.
            .replace("{ resources_at_most: 0 }", "{}");
        let flags = Overrides {
            clients: Some(clients),
            ..Overrides::default()
        };
        let record = play_with(&short, &flags, "");
        let joins: u64 = record.phases.iter().map(|phase| phase.join.count()).sum();
        assert_eq!(joins, u64::from(clients), "{name}");
    }
}

/// Polls and streams side by side: every change reaches all clients.
#[test]
fn clients_that_poll_hold() {
    play(
        "description: Polls.
world:
  cds: { count: 9, bytes: 200 }
  eds: { count: 9, bytes: 500 }
  lds: { count: 3, bytes: 400 }
  rds: { count: 3, bytes: 700 }
clients:
  count: 6
  per_connection: 2
  groups: [{ kind: poller, every: 10ms, weight: 2 }, { kind: envoy }]
phases:
  - { name: join, do: { join: {} } }
  - { name: clusters, do: { change: { kind: cds, pattern: { burst: 2 }, times: 3 } }, expect: { delivered_once: true } }
  - { name: endpoints, do: { change: { kind: eds, pattern: one, times: 3 } }, expect: { delivered_once: true } }
  - { name: routes, do: { change: { kind: rds, pattern: full, times: 2 } }, expect: { delivered_once: true } }
",
        6,
    );
}

/// The clients of a connection are of one group, so that clients that flap do not disconnect awaited ones.
#[test]
fn who_comes_and_goes_keeps_nobody_waiting() {
    play(
        "description: Coming and going.
world: { cds: { count: 9, bytes: 200 }, eds: { count: 9, bytes: 200 } }
clients:
  count: 8
  per_connection: 2
  groups: [{ kind: envoy, flaps: 60ms, remembers: false }, { kind: envoy, acks: { reject-one-in: 3 } }]
phases:
  - { name: join, do: { join: {} } }
  - { name: changes, do: { change: { kind: eds, pattern: { burst: 3 }, times: 10, rate: 10 } } }
",
        8,
    );
}

/// Slow readers are not awaited, and other clients do not notice them.
#[test]
fn a_slow_reader_keeps_nobody_waiting() {
    play(
        "description: Slow.
world: { cds: { count: 20, bytes: 100KiB } }
clients: { count: 4, groups: [{ kind: clusters, weight: 3 }, { kind: clusters, reads: 64KiB }] }
phases:
  - { name: join, do: { join: {} } }
  - { name: changes, do: { change: { kind: cds, pattern: full, times: 3 } }, expect: { delivered_once: true } }
",
        4,
    );
}

/// A control plane that speaks only SotW.
#[test]
fn a_control_plane_may_know_one_dialect() {
    let flags = Overrides {
        clients: Some(4),
        control_plane_dialect: Some(Dialect::Sotw),
        dialect: Some(Dialect::Sotw),
        ..Overrides::default()
    };
    let text = "description: One dialect.
world: { cds: { count: 5, bytes: 200 } }
clients: { count: 4, groups: [{ kind: clusters }] }
phases: [{ name: join, do: { join: {} } }]
";
    let _ = play_with(text, &flags, "");
    let mut scenario = Scenario::parse("here", text).unwrap();
    scenario.override_with(&Overrides {
        dialect: Some(Dialect::Delta),
        ..flags
    });
    let record = record_of(&scenario, "");
    assert!(!record.held() && record.breached > 0, "{:#?}", record.assertions);
}

/// A floor writes the same bytes to all clients, so clients that ask for names of their own cannot have one.
#[test]
fn a_floor_is_for_clients_that_ask_for_the_same() {
    let run = |text: &str| {
        let mut scenario = Scenario::parse("here", text).unwrap();
        scenario.override_with(&Overrides {
            floor: true,
            ..Overrides::default()
        });
        try_record(&scenario, "--direct").unwrap_err().to_string()
    };
    let own = "description: Names.
world: { eds: { count: 9, bytes: 200 } }
clients: { count: 2, groups: [{ kind: endpoints, names: { count: 2 } }] }
phases: [{ name: join, do: { join: {} } }]
";
    assert!(run(own).contains("same bytes"), "{}", run(own));
    let mixed = "description: Mixed.
world: { cds: { count: 9, bytes: 200 } }
clients: { count: 2, groups: [{ kind: clusters }, { kind: clusters, dialect: sotw }] }
phases: [{ name: join, do: { join: {} } }]
";
    assert!(run(mixed).contains("same bytes"), "{}", run(mixed));
}

/// Bytes that a client does not read are in the kernel, and are measured there.
#[test]
fn what_stalled_clients_cost_is_measured() {
    let text = "description: Stalled.
world: { cds: { count: 5, bytes: 200 } }
clients: { count: 4, groups: [{ kind: clusters, weight: 3 }, { kind: clusters, stalls: true }] }
phases:
  - { name: join, do: { join: {} } }
  - { name: large, do: { change: { kind: cds, pattern: one, times: 3, bytes: 1MiB } } }
  - { name: after, do: { rest: 100ms }, expect: { each_stalled: { since: join, process: 1MiB, kernel: 64MiB } } }
";
    let record = play_with(text, &Overrides::default(), "");
    let kernel = record.assertions.iter().find(|it| it.text.contains("kernel")).unwrap();
    assert!(kernel.measured.unwrap().value > 50_000.0, "{kernel:?}");
}
