// SPDX-License-Identifier: Apache-2.0
//! What is wrong, so that the exit code is 1.
//!
//! Owns that what was only wrong for a moment does not count. Does not find faults.

use crate::xds::printable;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatusFault {
    /// What is wrong, in a form that is equal at the next look.
    key: String,
    words: String,
}

/// How many faults are listed; the others are counted.
const LISTED_MAX: usize = 20;

impl StatusFault {
    pub(super) fn new(key: impl Into<String>, words: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            words: words.into(),
        }
    }

    /// Returns it in one line.
    pub(super) fn line(&self) -> String {
        printable(&self.words).into_owned()
    }
}

/// Keeps the faults that were there at an earlier look, too.
pub(super) fn keep_lasting(faults: &mut Vec<StatusFault>, earlier: &[StatusFault]) {
    faults.retain(|fault| earlier.iter().any(|before| before.key == fault.key));
}

/// Returns the faults, a line for each, but not too many.
pub(super) fn lines(faults: &[StatusFault]) -> Vec<String> {
    let mut lines: Vec<String> = faults.iter().take(LISTED_MAX).map(StatusFault::line).collect();
    let more = faults.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        lines.push(format!("... and {more} more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_does_not_count() {
        let fault = |key: &str, words: &str| StatusFault::new(key, words);
        let mut now = vec![fault("a", "since 12:01"), fault("b", "new")];
        keep_lasting(&mut now, &[fault("a", "since 12:00"), fault("c", "over")]);
        assert_eq!(now, [fault("a", "since 12:01")]);
        let many: Vec<StatusFault> = (0..100).map(|at| fault("k", &format!("{at}\n"))).collect();
        let listed = lines(&many);
        assert_eq!((listed.len(), listed[0].as_str()), (21, "0\\n"));
        assert_eq!(listed[20], "... and 80 more");
    }
}
