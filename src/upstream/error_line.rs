// SPDX-License-Identifier: Apache-2.0
//! A server's error, for clients.
//!
//! Owns its length and its form. Does not know the error.

use crate::xds::printable;

/// How much of a server's error text is passed on to clients.
const REASON_BYTES: usize = 500;

/// Returns the server and its error in one line of bounded length: the server's own text may be long and contain anything.
pub(super) fn error_line(server: &str, error: &str) -> String {
    let said = printable(error);
    let end = said.char_indices().map(|(at, _)| at).find(|at| *at >= REASON_BYTES);
    match end.and_then(|end| said.get(..end)) {
        Some(start) => format!("{server}: {start}..."),
        None => format!("{server}: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server's error text reaches clients as one line of bounded length.
    #[test]
    fn words_of_servers_are_bounded() {
        assert_eq!(
            error_line("cp:1", "the stream ended: \u{1b}[2J\r\nno"),
            "cp:1: the stream ended: \\u{1b}[2J\\r\\nno"
        );
        let long = error_line("cp:1", &"\0ä".repeat(10_000));
        assert!(long.len() < REASON_BYTES + 50 && long.ends_with("..."), "{long}");
    }
}
