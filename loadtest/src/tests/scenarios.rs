// SPDX-License-Identifier: Apache-2.0
//! Tests that scenarios are read strictly, and that small ones hold over real sockets.

use crate::command::arguments::{Arguments, Setting};
use crate::measure::record::{Assertion, Record, Recorder, Verdict};
use crate::story::file::{BUILT_IN, Scenario};

#[test]
fn every_scenario_can_be_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for file in files {
        count += 1;
        let name = file.to_str().unwrap();
        if let Err(error) = Scenario::find(name, &[]) {
            panic!("{error:#}");
        }
    }
    assert!(count >= BUILT_IN.len());
}

/// Reads a scenario, with these keys set.
pub(super) fn read(text: &str, set: &[&str]) -> Scenario {
    let set: Vec<Setting> = set.iter().map(|setting| setting.parse().unwrap()).collect();
    Scenario::read("here", text, None, &set).unwrap()
}

/// Plays a scenario directly at the control plane.
fn play(text: &str, set: &[&str]) -> Record {
    let record = record_of(&read(text, set), "");
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
    for (name, kind, dialect) in [
        ("churn", "cds", "delta"),
        ("churn", "cds", "sotw"),
        ("by-name", "eds", "delta"),
        ("by-name", "eds", "sotw"),
    ] {
        let dialect = format!("clients.groups[].dialect={dialect}");
        let count = format!("world.{kind}.count=50");
        let record = play(
            built_in(name),
            &[
                "clients.count=20",
                &count,
                &dialect,
                "clients.groups[].names.count=10",
                "phases[].do.change.times=10",
                "phases[].do.change.rate=200",
                "phases[].do.idle=0s",
            ],
        );
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
    let _ = play(&short.replace("count: 50,", "count: 10,"), &["clients.count=28"]);
}

/// While a fleet grows, a change is awaited only at the clients that have joined.
#[test]
fn a_change_waits_for_those_who_joined() {
    let _ = play(
        "description: Growth.
world: { cds: { count: 5, bytes: 200 } }
clients: { count: 9, per_connection: 2, groups: [{ kind: clusters }] }
phases:
  - { name: some, do: { join: { clients: 3 } } }
  - { name: for some, do: { change: { kind: cds, pattern: one, times: 2 } }, expect: { messages_at_most: 8 } }
  - { name: all, do: { join: {} } }
  - { name: for all, do: { change: { kind: cds, pattern: one, times: 2 } }, expect: { messages_at_most: 18 } }
",
        &[],
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
    let record = play(text, &[]);
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
    let record = play(text, &[]);
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
        let record = play(&short, &[&format!("clients.count={clients}")]);
        let joins: u64 = record.phases.iter().map(|phase| phase.join.count()).sum();
        assert_eq!(joins, clients, "{name}");
    }
}

/// Polls and streams side by side: every change reaches all clients.
#[test]
fn clients_that_poll_hold() {
    let _ = play(
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
        &[],
    );
}

/// The clients of a connection are of one group, so that clients that flap do not disconnect awaited ones.
#[test]
fn who_comes_and_goes_keeps_nobody_waiting() {
    let _ = play(
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
        &[],
    );
}

/// A control plane that speaks only SotW.
#[test]
fn a_control_plane_may_know_one_dialect() {
    let text = "description: One dialect.
world: { cds: { count: 5, bytes: 200 } }
clients: { count: 4, groups: [{ kind: clusters }] }
phases: [{ name: join, do: { join: {} } }]
";
    let sotw = "control_plane.dialect=sotw";
    let _ = play(text, &[sotw, "clients.groups[].dialect=sotw"]);
    let record = record_of(&read(text, &[sotw]), "");
    assert!(!record.held() && record.breached > 0, "{:#?}", record.assertions);
}

/// A floor writes the same bytes to all clients, so clients that ask for names of their own cannot have one.
#[test]
fn a_floor_is_for_clients_that_ask_for_the_same() {
    let run = |text: &str| {
        let scenario = read(text, &["floor=true"]);
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
    let record = play(text, &[]);
    let kernel = record.assertions.iter().find(|it| it.text.contains("kernel")).unwrap();
    assert!(kernel.measured.unwrap().value > 50_000.0, "{kernel:?}");
}

/// A key is set wherever it stands; one that stands nowhere is added wherever it can. Faults have the place where it would stand.
#[test]
fn a_flag_sets_a_key() {
    let text = "description: a
world: { cds: { count: 5 }, eds: { count: 5, bytes: 1KiB } }
clients:
  count: 9
  groups: [{ kind: clusters }, { kind: envoy, dialect: sotw }]
phases:
  - { name: join, do: { join: {} } }
  - { name: change, do: { change: { kind: cds, pattern: one, times: 1 } } }
";
    let scenario = read(
        text,
        &[
            "clients.count=3",
            "world.cds.bytes=2KiB",
            "clients.groups[].dialect=delta",
            "clients.groups[].node_id=edge-{n}",
            "phases[].do.change.pattern={ burst: 2 }",
            "tls.resumes=false",
            "phases[].expect.p99_below=100ms",
        ],
    );
    let said = format!("{scenario:?}");
    assert_eq!(scenario.clients.count, 3);
    assert_eq!(said.matches("dialect: Delta").count(), 2, "{said}");
    assert_eq!(said.matches("edge-{n}").count(), 2, "{said}");
    assert_eq!(said.matches("p99_below: Some(Time(100ms))").count(), 2, "{said}");
    assert!(said.contains("Burst(2)") && said.contains("resumes: false"), "{said}");
    for (setting, told) in [
        ("clients.cuont=3", "x:4:3: unknown key `cuont`; did you mean `count`?"),
        ("clients.count=many", "x:4:10: expected a whole number"),
        ("phases[].limit[].a=1", "there is no such place in this scenario"),
        ("clients.count={", "--set clients.count={: "),
        ("clients.count=0", "x:4:3: `clients.count` is 0"),
    ] {
        let set: Setting = setting.parse().unwrap();
        let error = Scenario::read("x", text, None, &[set]).unwrap_err().to_string();
        assert!(error.contains(told), "{setting}: {error}");
    }
    assert!("clients.count".parse::<Setting>().is_err() && "=3".parse::<Setting>().is_err());
}

/// A file may have several scenarios.
#[test]
fn a_row_of_a_file_is_a_scenario() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/gate/bars.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
        .collect();
    assert!(rows.len() > 20, "{rows:?}");
    for row in rows {
        let name = format!("{file}#{}", row.trim_end_matches(':'));
        Scenario::find(&name, &[]).unwrap_or_else(|error| panic!("{error:#}"));
    }
    let error = Scenario::find(&format!("{file}#bar-0"), &[]).unwrap_err().to_string();
    assert!(error.contains("has no scenario `bar-0`; it has bar-01, "), "{error}");
}
