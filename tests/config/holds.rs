// SPDX-License-Identifier: Apache-2.0
//! Which removals are held, and how long.

use std::time::Duration;

use distributary::xds::{GuardSettings, HoldTimes, Within};

use crate::{SERVER, good};

fn times(endpoints: u64, other: u64) -> HoldTimes {
    HoldTimes {
        endpoints: Duration::from_secs(endpoints),
        other: Duration::from_secs(other),
    }
}

/// What is not written is as it was for the relay, or as it usually is.
#[test]
fn times_of_holds() {
    for (written, expected) in [
        ("", times(120, 300)),
        ("guard: on\n", times(120, 300)),
        ("guard: {hold: {endpoints: 10s}}\n", times(10, 300)),
        ("guard: {hold: {endpoints: 10s, other: 1h}}\n", times(10, 3600)),
    ] {
        assert_eq!(good(&format!("{SERVER}{written}")).guard.all.hold, expected);
    }
    for (written, of_class, expected) in [
        ("{hold: {endpoints: 30s}}", "{within: always}", times(30, 300)),
        ("{hold: {endpoints: 30s}}", "{hold: {other: 1m}}", times(30, 60)),
        ("{hold: {endpoints: 30s}}", "on", times(30, 300)),
        ("off", "{within: first_state}", times(120, 300)),
        ("off", "{within: first_state, hold: {endpoints: 1s}}", times(1, 300)),
    ] {
        let class = format!("classes: [{{match: {{id: a}}, guard: {of_class}}}]\n");
        let config = good(&format!("{SERVER}guard: {written}\n{class}"));
        assert_eq!(config.guard.classes[0].unwrap().hold, expected, "{of_class}");
    }
}

/// A word is all or nothing, and what is written beside it is only that.
#[test]
fn a_guard_is_on_or_off() {
    let guard = |written: &str| good(&format!("{SERVER}{written}")).guard;
    assert_eq!(guard("").all, GuardSettings::default());
    for (word, expected) in [
        ("on", GuardSettings::default()),
        ("true", GuardSettings::default()),
        ("off", GuardSettings::OFF),
        ("false", GuardSettings::OFF),
    ] {
        assert_eq!(guard(&format!("guard: {word}\n")).all, expected, "{word}");
    }
    let on = guard("guard: off\nclasses: [{match: {id: a}, guard: on}, {match: {id: b}}]\n");
    assert_eq!(on.classes, [Some(GuardSettings::default()), None]);
    let parts = guard("guard: {within: never, references: off, unready: 0s}\n").all;
    assert_eq!(parts.within, Within::Never);
    assert_eq!((parts.references, parts.unready), (false, Duration::ZERO));
}
