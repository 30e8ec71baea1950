// SPDX-License-Identifier: Apache-2.0
//! The client's deadline.
//!
//! Owns the parsing of `grpc-timeout`. Does not watch the time.

use std::time::Duration;

use http::HeaderMap;
use tonic::Status;

/// Returns how long the client waits for the whole call, or none if the header is missing.
///
/// # Errors
/// When the header does not have the form that gRPC defines.
pub fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    parse(text).map(Some).ok_or_else(|| {
        let shown: String = text.chars().take(32).collect();
        Status::invalid_argument(format!(
            "grpc-timeout is `{shown}`; it is at most 8 digits and one of the units H, M, S, m, u, n"
        ))
    })
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let value: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(value * 3600)),
        "M" => Some(Duration::from_secs(value * 60)),
        "S" => Some(Duration::from_secs(value)),
        "m" => Some(Duration::from_millis(value)),
        "u" => Some(Duration::from_micros(value)),
        "n" => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_units_and_no_other_text() {
        for (text, expected) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("00000003S", Duration::from_secs(3)),
            ("99999999m", Duration::from_millis(99_999_999)),
            ("5u", Duration::from_micros(5)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        for text in ["", "S", "1", "123456789S", "-1S", "+1S", "1s", "1.5S", " 1S", "1\u{e9}"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
