// SPDX-License-Identifier: Apache-2.0
//! Numbers, sizes and durations as operators write them. Owns their syntax. Knows no settings.

use std::time::Duration;

use serde_json::json;

use super::reading::{Shape, single};
use super::rows::Kind;

const KIB: usize = 1 << 10;
pub(super) const MIB: usize = 1 << 20;

/// Bytes: none, or at least so many.
pub(super) enum Size<const LEAST: usize = 0> {}

/// A number, or `auto`.
pub(super) enum OrAuto {}

/// A part of ten thousand.
pub(super) enum Share {}

single!(
    usize as Self: count,
    Kind::Single(json!({ "type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+$" })),
    ToString::to_string
);
single!(
    OrAuto as Option<usize>: count_or_auto,
    Kind::words(&["auto"]).or(usize::kind()),
    |number: &Option<usize>| number.map_or_else(|| "auto".to_owned(), |number| number.to_string())
);
single!(
    Duration as Self: duration,
    Kind::Single(json!({ "type": ["string", "integer"], "pattern": "^(0|[0-9]+(ms|s|m|h))$", "minimum": 0, "maximum": 0 })),
    time
);
single!(
    Share as Option<u16>: |text| share(text).map(Some),
    Kind::Single(json!({
        "type": ["number", "string"], "exclusiveMinimum": 0, "maximum": 100, "pattern": "^[0-9]+([.][0-9]{1,2})?%?$",
    })),
    |_| String::new()
);

impl<const LEAST: usize> Shape<usize> for Size<LEAST> {
    fn parse(text: &str) -> Result<usize, String> {
        match size(text)? {
            bytes if bytes > 0 && bytes < LEAST => Err(format!(
                "with {bytes} bytes no peer could be served; write a unit, or at least {LEAST} (0 = off)"
            )),
            bytes => Ok(bytes),
        }
    }

    fn kind() -> Kind {
        let small = json!({ "type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": LEAST });
        Kind::Single(json!({
            "type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+(KiB|MiB|GiB)?$", "not": small,
        }))
    }

    fn text(bytes: &usize) -> String {
        match *bytes {
            0 => "0".to_owned(),
            bytes if bytes % MIB == 0 => format!("{}MiB", bytes / MIB),
            bytes if bytes % KIB == 0 => format!("{}KiB", bytes / KIB),
            bytes => bytes.to_string(),
        }
    }
}

fn count_or_auto(text: &str) -> Result<Option<usize>, String> {
    match (text, count(text)) {
        ("auto", _) => Ok(None),
        (_, count) => count
            .map(Some)
            .map_err(|message| message.replacen("write a", "write auto or a", 1)),
    }
}

/// Writes a duration in the largest unit of which it is a whole number; up to a minute in seconds.
fn time(time: &Duration) -> String {
    let (seconds, millis) = (time.as_secs(), time.subsec_millis());
    match seconds {
        _ if millis > 0 => format!("{}ms", time.as_millis()),
        60.. if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        60.. if seconds % 60 == 0 => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// `4096`
fn count(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a number; write a whole number such as 4096 (0 = off)"))
}

/// `64KiB`, `16MiB`, `4096`
fn size(text: &str) -> Result<usize, String> {
    const UNITS: [(&str, usize); 4] = [("", 1), ("KiB", KIB), ("MiB", MIB), ("GiB", 1 << 30)];
    let complaint =
        || format!("`{text}` is not a size; write bytes or a unit, such as 4096, 64KiB, 16MiB or 1GiB (0 = off)");
    let (digits, unit) = split(text);
    let factor = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(complaint)?.1;
    digits
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(complaint)
}

/// `5%`, `0.25%`, in hundredths of a percent
fn share(text: &str) -> Result<u16, String> {
    let complaint =
        || format!("`{text}` is not a share; write more than 0 and at most 100 percent, such as 5% or 0.25%");
    let digits = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_digit())
            .then(|| text.parse::<u16>().ok())
            .flatten()
    };
    let number = text.strip_suffix('%').unwrap_or(text);
    if number == text
        && let Some((of_one, of_hundred)) = either(text)
    {
        return Err(format!(
            "`{text}` may be a part of 1 or of 100; write {of_one} or {of_hundred}"
        ));
    }
    let (whole, rest) = number.split_once('.').unwrap_or((number, "0"));
    let hundredths = match rest.len() {
        1 => digits(rest).map(|tenths| tenths * 10),
        2 => digits(rest),
        _ => None,
    };
    let all = digits(whole).and_then(|whole| whole.checked_mul(100)?.checked_add(hundredths?));
    all.filter(|all| (1..=10_000).contains(all)).ok_or_else(complaint)
}

/// Returns what `0.05` may mean: `5%` and `0.05%`. Other texts mean one thing.
fn either(text: &str) -> Option<(String, String)> {
    let rest = text.strip_prefix("0.").filter(|rest| (1..=2).contains(&rest.len()))?;
    let hundredths: u16 = format!("{rest:0<2}").parse().ok().filter(|all| *all > 0)?;
    Some((format!("{hundredths}%"), format!("{text}%")))
}

/// `250ms`, `30s`, `5m`, `1h`, and 0
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60 * 1000), ("h", 60 * 60 * 1000)];
    /// Longer than any useful timer, but short enough that adding it to a clock never overflows.
    const LONGEST: u64 = 365 * 24 * 60 * 60 * 1000;
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let complaint = || {
        format!(
            "`{text}` is not a duration; write a whole number and a unit, such as 250ms, 30s, 5m or 1h (0 = off, at most 8760h)"
        )
    };
    let (digits, unit) = split(text);
    let factor = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(complaint)?.1;
    let millis = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let millis = millis.filter(|millis| *millis <= LONGEST).ok_or_else(complaint)?;
    Ok(Duration::from_millis(millis))
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_binary_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("64KiB"), Ok(65_536));
        assert_eq!(size("16MiB"), Ok(16_777_216));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("0"), Ok(0));
        assert_eq!(size("0MiB"), Ok(0));
        for bad in [
            "",
            "MiB",
            "-1",
            "1.5MiB",
            "16 MiB",
            "16MB",
            "18446744073709551616",
            "17179869184GiB",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_need_a_unit_unless_zero() {
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("8760h"), Ok(Duration::from_secs(31_536_000)));
        for bad in [
            "",
            "30",
            "s",
            "-1s",
            "1.5s",
            "30 s",
            "30S",
            "8761h",
            "18446744073709551616ms",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_are_of_ten_thousand() {
        for (text, hundredths) in [
            ("5%", 500),
            ("5", 500),
            ("100%", 10_000),
            ("0.01%", 1),
            ("0.5%", 50),
            ("33.3", 3330),
        ] {
            assert_eq!(share(text), Ok(hundredths), "{text}");
        }
        for bad in [
            "", "%", "0", "0%", "0.00%", "100.01%", "101%", "-5%", "5.%", ".5%", "5.125%", "5 %", "65536%", "+5",
        ] {
            assert!(share(bad).is_err(), "{bad}");
        }
        for (either, said) in [
            ("0.05", "5% or 0.05%"),
            ("0.5", "50% or 0.5%"),
            ("0.50", "50% or 0.50%"),
        ] {
            let told = share(either).unwrap_err();
            assert!(told.ends_with(&format!("write {said}")), "{told}");
        }
    }

    #[test]
    fn counts_are_whole() {
        assert_eq!(count("7"), Ok(7));
        assert_eq!(count("0"), Ok(0));
        for bad in ["", "-1", "1e3", "many"] {
            assert!(count(bad).is_err(), "{bad}");
        }
    }
}
