//! How long losses are held.

use std::time::Duration;

use distributary::xds::HoldTimes;

use crate::{SERVER, good};

fn times(endpoints: u64, other: u64) -> HoldTimes {
    HoldTimes {
        endpoints: Duration::from_secs(endpoints),
        other: Duration::from_secs(other),
    }
}

/// One time is for all types; of two, what is not written is as it was for the relay, or as it usually is.
#[test]
fn one_time_or_two() {
    for (written, expected) in [
        ("", times(120, 300)),
        ("guard: {mass: {hold: 30s}}\n", times(30, 30)),
        ("guard: {mass: {hold: {endpoints: 10s}}}\n", times(10, 300)),
        ("guard: {mass: {hold: {endpoints: 10s, other: 1h}}}\n", times(10, 3600)),
    ] {
        assert_eq!(good(&format!("{SERVER}{written}")).guard.all.mass.hold, expected);
    }
    for (written, of_class, expected) in [
        ("{mass: {hold: 30s}}", "{mass: {share: 20%}}", times(30, 30)),
        ("{mass: {hold: 30s}}", "{mass: {hold: {other: 1m}}}", times(30, 60)),
        ("off", "{mass: {within: first_state}}", times(120, 300)),
        (
            "off",
            "{mass: {within: first_state, hold: {endpoints: 1s}}}",
            times(1, 300),
        ),
    ] {
        let class = format!("classes: [{{match: {{id: a}}, guard: {of_class}}}]\n");
        let config = good(&format!("{SERVER}guard: {written}\n{class}"));
        assert_eq!(config.guard.classes[0].unwrap().mass.hold, expected, "{of_class}");
    }
}
