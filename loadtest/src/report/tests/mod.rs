//! Tests that the tables agree with the record.

mod gate;
mod sample;

use super::compare::Comparison;
use super::{live, table};
use crate::measure::record::{Live, Record, Second, Verdict};
use sample::small;

/// A difference is either a fault or an intended change of the report; then copy the new text into the file.
fn same(answer: &str, golden: &str, file: &str) {
    for (at, (is, was)) in answer.lines().zip(golden.lines()).enumerate() {
        assert_eq!(is, was, "line {} of {file}; all of it is now:\n{answer}", at + 1);
    }
    assert_eq!(answer.lines().count(), golden.lines().count(), "{file}:\n{answer}");
}

#[test]
fn a_small_record_as_a_table() {
    same(&table::table(&small()), include_str!("small.txt"), "small.txt");
}

#[test]
fn two_records_side_by_side() {
    let (a, mut b) = (small(), small());
    let changes = &mut b.phases[2];
    changes.counters.insert("bytes".to_owned(), 2_048_000.0);
    changes.figures.cpu_micros_per_delivery = Some(31.5);
    b.phases[1].name = "storm".to_owned();
    let comparison = Comparison::of(&a, &b);
    same(&comparison.table(), include_str!("two.txt"), "two.txt");
}

#[test]
fn a_record_holds_when_all_of_it_does() {
    let mut record = small();
    assert!(!record.held());
    record.assertions.retain(|assertion| assertion.verdict == Verdict::Held);
    assert!(!record.held(), "a client saw a breach");
    record.breaches.clear();
    record.breached = 0;
    assert!(record.held());
    record.assertions = small().assertions;
    record
        .assertions
        .retain(|assertion| assertion.verdict != Verdict::Failed);
    assert!(!record.held(), "what is void did not hold");
}

#[test]
fn a_second_is_one_line() {
    let second = small().phases[2].series[0].clone();
    let phase = Some("changes".to_owned());
    let line = live::sentence(&Live {
        phase,
        second,
        joins_micros: None,
        counters: [].into(),
    });
    let wanted = "changes | 8.00 s | 100 clients, 3 deliveries to come | 400 deliveries, p50 4.00 ms, p99 9.00 ms | 400 KiB/s | server 10.0 %, 5.00 MiB | tool 15.0 %";
    assert_eq!(line, wanted);
    let second = Second {
        clients: 200,
        with_stream: Some(198),
        owed: Some(132),
        ..Second::default()
    };
    let line = live::sentence(&Live {
        phase: None,
        second,
        joins_micros: None,
        counters: [].into(),
    });
    assert!(
        line.contains("| 200 clients, 198 with a stream, 132 deliveries to come |"),
        "{line}"
    );
    let second = Second::default();
    assert_eq!(
        live::sentence(&Live {
            phase: None,
            second,
            joins_micros: None,
            counters: [].into(),
        }),
        "between phases | 0 ms | 0 clients | 0 B/s | tool 0 %"
    );
}

#[test]
fn dates_are_those_of_the_calendar() {
    assert_eq!(table::date(0), "1970-01-01 00:00:00 UTC");
    assert_eq!(table::date(951_827_696), "2000-02-29 12:34:56 UTC");
    assert_eq!(table::date(1_795_189_616), "2026-11-20 15:46:56 UTC");
}

#[test]
fn a_record_survives_its_file() {
    let record = small();
    let text = serde_json::to_string_pretty(&record).unwrap();
    let back: Record = serde_json::from_str(&text).unwrap();
    assert_eq!(table::table(&back), table::table(&record));
}
