// SPDX-License-Identifier: Apache-2.0
//! The type of an unquoted YAML scalar that no field determines: the core schema of YAML 1.2, so `yes`, `on` and dates are
//! strings. Knows nothing of fields.

/// A scalar with its type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plain<'a> {
    Bool(bool),
    Number(f64),
    Text(&'a str),
}

impl<'a> Plain<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        if let Some(truth) = truth(text) {
            return Self::Bool(truth);
        }
        match float(text) {
            Some(number) => Self::Number(number),
            None => Self::Text(text),
        }
    }
}

pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Parses a YAML number: as in JSON, and with a plus, leading zeros, `0x`, `0o`, `.5`, `.inf` and `.nan`.
pub(super) fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" if text.starts_with('-') => return Some(f64::NEG_INFINITY),
        ".inf" | ".Inf" | ".INF" => return Some(f64::INFINITY),
        _ => {}
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(f64::NAN);
    }
    if let Some(number) = radix(text) {
        // Beyond 53 bits the nearest float is good enough.
        return Some(number as f64);
    }
    let digits = unsigned.starts_with(|c: char| c.is_ascii_digit())
        || unsigned
            .strip_prefix('.')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if digits { text.parse().ok() } else { None }
}

/// `0x1F`, `0o17`.
pub(super) fn radix(text: &str) -> Option<u64> {
    let (digits, radix) = match (text.strip_prefix("0x"), text.strip_prefix("0o")) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) => (digits, 8),
        (None, None) => return None,
    };
    u64::from_str_radix(digits, radix)
        .ok()
        .filter(|_| !digits.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J-05: numbers and booleans of other YAML dialects are text.
    #[test]
    fn the_core_schema() {
        for (text, meant) in [
            ("true", Plain::Bool(true)),
            ("FALSE", Plain::Bool(false)),
            ("yes", Plain::Text("yes")),
            ("on", Plain::Text("on")),
            ("1", Plain::Number(1.0)),
            ("010", Plain::Number(10.0)),
            ("0x1F", Plain::Number(31.0)),
            ("0o17", Plain::Number(15.0)),
            ("1e3", Plain::Number(1000.0)),
            (".5", Plain::Number(0.5)),
            ("-.inf", Plain::Number(f64::NEG_INFINITY)),
            ("+12", Plain::Number(12.0)),
            ("1_000", Plain::Text("1_000")),
            ("0x", Plain::Text("0x")),
            ("0x+1", Plain::Text("0x+1")),
            ("inf", Plain::Text("inf")),
            ("nan", Plain::Text("nan")),
            ("infinity", Plain::Text("infinity")),
            ("2026-11-20", Plain::Text("2026-11-20")),
            ("-", Plain::Text("-")),
            (".", Plain::Text(".")),
            ("1.2.3", Plain::Text("1.2.3")),
        ] {
            assert_eq!(Plain::of(text), meant, "{text}");
        }
    }
}
