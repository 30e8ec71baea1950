//! That scenarios are read strictly, and that small ones hold over real sockets.

use crate::arguments::Overrides;
use crate::record::Recorder;
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

/// Plays a scenario at the control plane itself, or in front of it.
fn play(text: &str, clients: u32) {
    let mut scenario = Scenario::parse("here", text).unwrap();
    scenario.override_with(&Overrides {
        clients: Some(clients),
        ..Overrides::default()
    });
    let arguments = <crate::arguments::Arguments as clap::Parser>::parse_from(["distributary-load", "--direct"]);
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
}

#[test]
fn a_mixed_fleet_holds() {
    let steady = BUILT_IN.iter().find(|(name, _)| *name == "steady").unwrap().1;
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
