// SPDX-License-Identifier: Apache-2.0
//! Durations and timestamps as text. Owns both formats. Reads no clock.

use prost_reflect::prost_types::{Duration, Timestamp};

const DURATION_SECONDS_MAX: i64 = 315_576_000_000;
const TIMESTAMP_SECONDS_MIN: i64 = -62_135_596_800;
const TIMESTAMP_SECONDS_MAX: i64 = 253_402_300_799;

/// Seconds and nanoseconds, as both messages have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Instant {
    pub(super) seconds: i64,
    pub(super) nanos: i32,
}

impl Instant {
    /// J-02: `1.5s`.
    pub(super) fn from_duration(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a duration; write seconds with a final s, such as 1.5s");
        let number = text.strip_suffix('s').ok_or_else(bad)?;
        let (negative, number) = match number.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, number),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let seconds = digits(whole).ok_or_else(bad)?;
        let nanos = nanos(fraction).ok_or_else(bad)?;
        if seconds > DURATION_SECONDS_MAX || (seconds == DURATION_SECONDS_MAX && nanos > 0) {
            return Err(format!(
                "`{text}` is out of range; durations end at {DURATION_SECONDS_MAX}s"
            ));
        }
        let sign = if negative { -1 } else { 1 };
        Ok(Self {
            seconds: sign * seconds,
            nanos: nanos * if negative { -1 } else { 1 },
        })
    }

    /// J-02: `1.500s`, with no, three, six or nine digits after the point.
    pub(super) fn to_duration(self) -> Result<String, String> {
        let Self { seconds, nanos } = self;
        let mixed = (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0);
        if seconds.unsigned_abs() > DURATION_SECONDS_MAX.unsigned_abs() || nanos.unsigned_abs() > 999_999_999 || mixed {
            return Err(format!("{seconds} s {nanos} ns is not a valid duration"));
        }
        Ok(Duration { seconds, nanos }.to_string())
    }

    /// J-02: a time in the format of RFC 3339, with any offset.
    pub(super) fn from_timestamp(text: &str) -> Result<Self, String> {
        let read = is_whole(text).and_then(|()| text.parse::<Timestamp>().ok());
        let read = read.map(|Timestamp { seconds, nanos }| Self { seconds, nanos });
        read.filter(|time| (TIMESTAMP_SECONDS_MIN..=TIMESTAMP_SECONDS_MAX).contains(&time.seconds))
            .ok_or_else(|| format!("`{text}` is not a time; write it as 2026-01-02T03:04:05.6Z"))
    }

    /// J-02: `2026-01-02T03:04:05.600Z`.
    pub(super) fn to_timestamp(self) -> Result<String, String> {
        let Self { seconds, nanos } = self;
        let whole = (TIMESTAMP_SECONDS_MIN..=TIMESTAMP_SECONDS_MAX).contains(&seconds);
        if !whole || !(0..=999_999_999).contains(&nanos) {
            return Err(format!("{seconds} s {nanos} ns is not a valid time"));
        }
        Ok(Timestamp { seconds, nanos }.to_string())
    }
}

/// Whether a time has all its parts, each with all its digits: `2026-01-02T03:04:05.6Z`, or with an offset such as `+01:00`.
fn is_whole(text: &str) -> Option<()> {
    let shape = |text: &str| text.replace(|digit: char| digit.is_ascii_digit(), "0");
    let (clock, zone) = match text.strip_suffix('Z') {
        Some(clock) => (clock, "+00:00"),
        None => text.split_at_checked(text.len().checked_sub(6)?)?,
    };
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let zoned = ["+00:00", "-00:00"].contains(&&*shape(zone));
    (zoned && shape(whole) == "0000-00-00T00:00:00" && nanos(fraction).is_some()).then_some(())
}

fn digits(text: &str) -> Option<i64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

fn nanos(fraction: &str) -> Option<i32> {
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let value = i32::try_from(digits(fraction)?).ok()?;
    let missing = u32::try_from(9 - fraction.len()).ok()?;
    Some(value * 10_i32.pow(missing))
}
