//! Tests that shares of a run add up to one run, and that records which do not belong together are refused.

use std::time::{Duration, Instant, UNIX_EPOCH};

use super::now;
use super::scenarios::{played, try_record};
use crate::command::arguments::Arguments;
use crate::measure::record::{Fleets, Record, Recorder, counter};
use crate::measure::tally::Feed;
use crate::story::file::Scenario;

/// Each phase waits for all its responses: who comes back begins anew, and is complete again with the last one.
const SCENARIO: &str = "description: Shares.
world:
  cds: { count: 9, bytes: 200 }
  eds: { count: 9, bytes: 200 }
clients:
  count: 11
  per_connection: 2
  groups:
    - { kind: envoy, remembers: false }
    - { kind: endpoints, names: { count: 3 }, weight: 2, remembers: false }
    - { kind: clusters, dialect: sotw, remembers: false }
phases:
  - { name: some, do: { join: { clients: 3 } } }
  - { name: join, do: { join: {} } }
  - { name: changes, do: { change: { kind: eds, pattern: one, times: 5 } }, expect: { delivered_once: true } }
  - { name: away, do: { reconnect: { one_in: 2, pause: 10ms } } }
";

/// Returns the record of a run at a control plane of its own.
fn run(words: &str) -> Record {
    let record = try_record(
        &Scenario::parse("here", SCENARIO).unwrap(),
        &format!("--direct {words}"),
    )
    .unwrap();
    assert!(record.held(), "{:#?}\n{:#?}", record.assertions, record.breaches);
    record
}

/// Runs a share; all of them count as begun at the same time, though they run one after the other here.
fn share(shard: &str) -> (String, Record) {
    let mut arguments = <Arguments as clap::Parser>::parse_from(["distributary-load", "--direct"]);
    arguments.sharing.shard = Some(shard.parse().unwrap());
    let mut record = played(&Scenario::parse("here", SCENARIO).unwrap(), &arguments).unwrap();
    assert!(record.held(), "{:#?}\n{:#?}", record.assertions, record.breaches);
    record.share.as_mut().unwrap().began_unix_ms = 1_000_000;
    (format!("{}.json", shard.replace('/', "-")), record)
}

#[test]
fn two_shares_are_as_much_as_one_run() {
    let whole = run("");
    let (first, second) = (share("1/2"), share("2/2"));
    let each = [&first.1, &second.1].map(|record| record.phases[1].clients);
    assert_eq!(each, [6, 5], "connections are dealt out in turn");
    let merged = Record::merged(vec![second, first]).unwrap();
    assert!(merged.held() && merged.share.is_none());
    assert!(merged.setup.ends_with(" (on 2 machines)"), "{}", merged.setup);
    assert_eq!(merged.phases.len(), whole.phases.len());
    for (sum, one) in merged.phases.iter().zip(&whole.phases) {
        let name = &one.name;
        assert_eq!(&sum.name, name);
        assert_eq!(
            (sum.clients, sum.join.count()),
            (one.clients, one.join.count()),
            "{name}"
        );
        assert_eq!(sum.propagation.count(), one.propagation.count(), "{name}");
        for counted in [
            counter::RESPONSES,
            counter::RESOURCES,
            counter::DELIVERIES,
            counter::ACKNOWLEDGEMENTS,
        ] {
            let [sum, one] = [sum, one].map(|phase| phase.counter(counted));
            assert!((sum - one).abs() < f64::EPSILON, "{name}: {counted}: {sum} {one}");
        }
    }
    let once: Vec<_> = merged
        .assertions
        .iter()
        .map(|assertion| assertion.text.as_str())
        .filter(|text| text.contains("once"))
        .collect();
    let text = "changes reach every client that wants them, once";
    assert_eq!(once, [format!("{text} (share 1/2)"), format!("{text} (share 2/2)")]);
}

/// A record of a phase with these times, which began at `began` milliseconds.
fn measured(shard: &str, began: u64, times: impl Iterator<Item = u64>) -> (String, Record) {
    let start = now();
    let at = |millis| -> Instant { start + Duration::from_millis(millis) };
    let recorder = Recorder::new("test", start).unwrap();
    recorder.describe("10 clients");
    recorder.share(shard.parse().unwrap(), UNIX_EPOCH + Duration::from_millis(began));
    let feed = Feed::new().unwrap();
    recorder.attach(vec![feed.clone()], || Fleets {
        clients: 5,
        with_stream: Some(4),
        owed: Some(1),
    });
    recorder.begin("changes", at(100)).unwrap();
    for micros in times {
        feed.tally().deliver(Duration::from_micros(micros));
    }
    recorder.tick(at(1100)).unwrap();
    recorder.end(at(2100)).unwrap();
    (
        format!("{}.json", shard.replace('/', "-")),
        recorder.finish(at(2200)).unwrap(),
    )
}

#[test]
fn percentiles_are_those_of_all_times_together() {
    let times = |odd: u64| (0..5000).map(move |turn| (2 * turn + odd) * 37 + 11);
    let (a, b) = (measured("1/2", 5000, times(0)), measured("2/2", 5400, times(1)));
    let (_, whole) = measured("1/1", 5000, (0..10_000).map(|turn| turn * 37 + 11));
    let merged = Record::merged(vec![a, b]).unwrap();
    let [sum, one] = [&merged, &whole].map(|record| &record.phases[0]);
    assert_eq!(sum.propagation, one.propagation);
    assert_eq!(sum.propagation.percentiles(), one.propagation.percentiles());
    let [second, of_one] = [&sum.series[0], &one.series[0]];
    assert_eq!((second.deliveries, second.clients, second.owed), (10_000, 10, Some(2)));
    assert_eq!((second.with_stream, sum.with_stream), (Some(8), Some(8)));
    assert_eq!(of_one.deliveries, 10_000);
    let [highest, of_one] = [second, of_one].map(|second| second.propagation_micros.unwrap());
    assert_eq!(highest.max, of_one.max);
    assert!((merged.counters["deliveries"] - 10_000.0).abs() < f64::EPSILON);
    assert_eq!(merged.machine.cores, 2 * whole.machine.cores);
    let text = serde_json::to_string(&merged).unwrap();
    assert!(serde_json::from_str::<Record>(&text).unwrap().share.is_none());
}

/// As it is used: on files, into files.
#[test]
fn shares_are_merged_from_files() {
    let folder = crate::wire::folder::Folder::new().unwrap();
    let file = |name: &str| folder.0.join(name);
    for shard in ["1/2", "2/2"] {
        let (name, record) = measured(shard, 5000, 0..20);
        std::fs::write(file(&name), serde_json::to_string(&record).unwrap()).unwrap();
    }
    let merged = file("merged.json");
    let words = ["distributary-load", "--quiet", "--json", merged.to_str().unwrap()];
    let outputs = <Arguments as clap::Parser>::parse_from(words).outputs;
    assert!(outputs.merge(&[file("1-2.json"), file("2-2.json")]).unwrap());
    let record: Record = serde_json::from_str(&std::fs::read_to_string(merged).unwrap()).unwrap();
    assert_eq!(record.phases[0].propagation.count(), 40);
    assert!(outputs.merge(&[file("1-2.json"), file("1-2.json")]).is_err());
    assert!(outputs.merge(&[file("1-2.json"), file("3-2.json")]).is_err());
}

/// Only the first phase begins at one time; how far the others are apart is told.
#[test]
fn a_phase_that_does_not_begin_together_is_told() {
    let part = |shard: &str, began: u64, next_ms: f64| {
        let (name, mut record) = measured(shard, began, 0..3);
        let mut next = record.phases[0].clone();
        next.name = "next".to_owned();
        next.start_ms += next_ms;
        record.phases.push(next);
        (name, record)
    };
    let told = |next_ms: f64| {
        let merged = Record::merged(vec![part("1/2", 5000, 4000.0), part("2/2", 5500, next_ms)]).unwrap();
        let notes = merged
            .notes
            .into_iter()
            .filter(|note| note.what.starts_with("from the first share"));
        notes.map(|note| (note.phase, note.value)).collect::<Vec<_>>()
    };
    assert_eq!(told(7000.0), [(Some("next".to_owned()), "3.50 s".to_owned())]);
    assert_eq!(told(4000.0), []);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let part = |shard: &str, began: u64| measured(shard, began, 0..3);
    let error = |records: Vec<(String, Record)>| Record::merged(records).unwrap_err().to_string();
    let late = error(vec![part("1/2", 5000), part("2/2", 17_000)]);
    assert!(
        late.starts_with("2-2.json (share 2/2) began 12000 ms after 1-2.json (share 1/2): "),
        "{late}"
    );
    let twice = error(vec![part("1/2", 5000), part("1/2", 5000)]);
    assert!(
        twice.ends_with("overlap: they ran the same clients; give each share once"),
        "{twice}"
    );
    let missing = error(vec![part("1/4", 5000), part("3/4", 5000)]);
    assert_eq!(missing, "share 2/4, 4/4 is missing: add its record");
    let other = error(vec![part("1/2", 5000), part("2/3", 5000)]);
    assert!(other.contains("one has more shares than the other"), "{other}");
    let mut another = part("2/2", 5000);
    another.1.setup = "20 clients".to_owned();
    let setup = error(vec![part("1/2", 5000), another]);
    assert!(
        setup.ends_with("run the same scenario with the same flags on all machines"),
        "{setup}"
    );
    let mut whole = part("2/2", 5000);
    whole.1.share = None;
    let whole = error(vec![part("1/2", 5000), whole]);
    assert_eq!(
        whole,
        "2-2.json is a whole run, or merged already: only runs with --shard can be added up"
    );
}

#[test]
fn a_share_needs_a_server_that_all_share() {
    let parsed = |words: &str| {
        let words = ["distributary-load"].into_iter().chain(words.split_whitespace());
        <Arguments as clap::Parser>::try_parse_from(words).map_err(|error| error.to_string())
    };
    let far = "--start-at 2026-11-23T15:00:00Z";
    let given = parsed(&format!("--server 127.0.0.1:1 --shard 2/5 {far}")).unwrap();
    assert_eq!(
        given.sharing.shard.map(|shard| shard.to_string()).as_deref(),
        Some("2/5")
    );
    for (wrong, says) in [
        ("--shard 2/5 --server 127.0.0.1:1".to_owned(), "--start-at"),
        (format!("--shard 2/5 {far}"), "--server"),
        (far.to_owned(), "--shard"),
        (format!("--shard 6/5 --server 127.0.0.1:1 {far}"), "is no share"),
        ("merge a.json".to_owned(), "2"),
    ] {
        let error = parsed(&wrong).unwrap_err();
        assert!(error.contains(says), "{wrong}: {error}");
    }
}
