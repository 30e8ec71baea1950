//! Times and sizes as users write them in scenarios.

use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// `250ms`, `30s`, `5m`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Duration);

/// `4096`, `64KiB`, `16MiB`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl Default for Size {
    fn default() -> Self {
        Self(1024)
    }
}

const TIMES: [(&str, f64); 4] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0)];
const SIZES: [(&str, f64); 4] = [
    ("", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        amount(&text, &TIMES)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("`{text}` is not a time; write one such as 250ms, 30s or 5m")))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of bytes"
        )]
        amount(&text, &SIZES).map(|bytes| Self(bytes as u64)).ok_or_else(|| {
            D::Error::custom(format!(
                "`{text}` is not a size; write one such as 4096, 64KiB or 1.5MiB"
            ))
        })
    }
}

fn amount(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    digits.parse::<f64>().ok().map(|number| number * factor)
}
