// SPDX-License-Identifier: Apache-2.0
//! Tests that only those waits count during which there was something for the client.

use super::clusters;
use crate::measure::record::float;
use crate::story::file::{BUILT_IN, Scenario};

#[test]
fn a_client_waits_as_long_as_it_is_behind() {
    let mut bench = clusters();
    bench.feed(&bench.delta("n1", &[0, 1, 2, 3])).unwrap();
    assert_eq!(bench.client.waited(10), None);
    let _ = bench.ledger.change(1, 1, true, super::now());
    bench.feed(&bench.delta("n2", &[1])).unwrap();
    assert_eq!(bench.client.waited(20), None, "it had everything at 10");
    let _ = bench.ledger.change(1, 1, true, super::now());
    let first = bench.delta("n3", &[1]);
    let _ = bench.ledger.change(2, 1, true, super::now());
    bench.feed(&first).unwrap();
    assert_eq!(bench.client.waited(30), None);
    bench.feed(&bench.delta("n4", &[2])).unwrap();
    assert_eq!(bench.client.waited(45), Some(15));
    bench.feed(&bench.delta("n5", &[3])).unwrap();
    assert_eq!(bench.client.waited(60), None);
}

/// Without so many clients that the changes are too many, nothing was waited for, and then the assertion does not hold.
#[test]
fn the_longest_wait_is_asserted() {
    let (_, text) = BUILT_IN.iter().find(|(name, _)| *name == "shared-connections").unwrap();
    let text = text.replace("count: 5000", "count: 20").replace("3s }", "100ms }");
    let text = text.replace("times: 20, rate: 1", "times: 5, rate: 50");
    let record = super::scenarios::record_of(&Scenario::read("here", &text, None, &[]).unwrap(), "");
    let waits = record
        .assertions
        .iter()
        .find(|it| it.text.contains("in rounds"))
        .unwrap();
    let longest = record.phases.iter().map(|phase| phase.waits.max()).max().unwrap();
    match waits.measured {
        Some(measured) => assert!((measured.value - float(longest) / 1e3).abs() < f64::EPSILON),
        None => assert!(longest == 0 && !waits.held()),
    }
}
