// SPDX-License-Identifier: Apache-2.0
//! Times and sizes as users write them, in scenarios and flags.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// `250ms`, `30s`, `5m`, `1h`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Duration);

/// `4096`, `512B`, `64KiB`, `16MiB`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl Default for Size {
    fn default() -> Self {
        Self(1024)
    }
}

/// The largest size of one resource.
pub(crate) const BYTES_MAX: u64 = 64 << 20;

const TIMES: [(&str, f64); 5] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
const SIZES: [(&str, f64); 5] = [
    ("", 1.0),
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        amount(text, &TIMES)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not a time; write one such as 250ms, 30s, 5m or 1h"))
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of bytes"
        )]
        amount(text, &SIZES)
            .map(|bytes| Self(bytes as u64))
            .ok_or_else(|| format!("`{text}` is not a size; write one such as 4096, 512B, 64KiB or 1.5MiB"))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Reads a flag for a time: as in a scenario, or a bare number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let bare = text.ends_with(|last: char| last.is_ascii_digit() || last == '.');
    let unit = if bare { "s" } else { "" };
    let Time(time) = format!("{text}{unit}").parse().map_err(|_| {
        format!("`{text}` is not a time; write one such as 250ms, 30s, 5m or 1h, or a number of seconds")
    })?;
    Ok(time)
}

fn amount(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    digits.parse::<f64>().ok().map(|number| number * factor)
}
