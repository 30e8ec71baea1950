// SPDX-License-Identifier: Apache-2.0
//! Tests that the tables agree with the record.

mod sample;

use super::{Outputs, Voice, live, table};
use crate::measure::record::{Live, Second, Verdict};
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
fn a_record_on_the_output_has_it_for_itself() {
    let voice = |json: Option<&str>, quiet| {
        let json = json.map(std::path::PathBuf::from);
        let outputs = Outputs { json, quiet };
        outputs.check().unwrap();
        outputs.voice()
    };
    assert_eq!(voice(None, false), Voice::Output);
    assert_eq!(voice(Some("record.json"), false), Voice::Output);
    assert_eq!(voice(Some("-"), false), Voice::Error);
    assert_eq!(voice(Some("-"), true), Voice::Silent);
    let failures = table::failures(&small());
    assert!(failures.contains("FAILED") && failures.contains("VOID") && failures.contains("client 17"));
    assert!(!failures.contains("all joined within"), "{failures}");
    assert!(
        failures.ends_with("2 of 4 assertions did not hold; breaches of the protocol: 3\n"),
        "{failures}"
    );
}
