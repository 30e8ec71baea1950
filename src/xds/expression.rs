// SPDX-License-Identifier: Apache-2.0
//! Regular expressions, as operators and programs write them.
//!
//! Owns how large one may be. A match takes time in proportion to the text, never more.

use regex::{Regex, RegexBuilder};

use super::printable;

/// A regular expression.
#[derive(Clone, Debug)]
pub struct Expression(Regex);

/// The most bytes of the text of an expression.
const TEXT_BYTES_MAX: usize = 4096;
/// The most bytes of an expression in memory: short texts such as `(a{99}){99}` can stand for very large ones.
const BYTES_MAX: usize = 256 << 10;

impl Expression {
    /// Reads an expression that fits a text if it fits a part of it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn part(text: &str) -> Result<Self, String> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(format!("a regular expression has at most {TEXT_BYTES_MAX} bytes"));
        }
        Self::build(text).map_err(|error| {
            // A fault in the text is shown below the text, and only the last line says what it is.
            let words = error.to_string();
            let last = words.lines().last().unwrap_or_default();
            let last = last.strip_prefix("error: ").unwrap_or(last);
            format!(
                "`{}` is not a regular expression that can be used: {last}",
                printable(text)
            )
        })
    }

    /// Reads an expression that fits a text only as a whole.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn whole(text: &str) -> Result<Self, String> {
        // Alone first: a bracket too many must not end the group.
        drop(Self::part(text)?);
        Self::build(&format!("\\A(?:{text})\\z")).map_err(|error| error.to_string())
    }

    fn build(text: &str) -> Result<Self, regex::Error> {
        let mut built = RegexBuilder::new(text);
        built.size_limit(BYTES_MAX).dfa_size_limit(BYTES_MAX);
        built.build().map(Self)
    }

    /// Whether it fits a text.
    pub fn fits(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_or_the_whole() {
        let part = Expression::part("b|bc").unwrap();
        assert!(part.fits("abcd") && part.fits("b") && !part.fits("acd"));
        let whole = Expression::whole("b|bc").unwrap();
        assert!(whole.fits("b") && whole.fits("bc") && !whole.fits("abcd") && !whole.fits("bc\n"));
        assert!(Expression::part("(?i)EDGE-\\w+").unwrap().fits("edge-ä"));
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        for (text, why) in [
            ("a(", "unclosed group"),
            ("a)|(b", "unopened group"),
            ("((a{99}){99}){99}", "size limit"),
            ("(?=a)b", "look-around"),
            (&"a".repeat(5000), "at most 4096 bytes"),
        ] {
            let fault = Expression::whole(text).unwrap_err();
            assert!(fault.contains(why) && fault.lines().count() == 1, "{fault}");
        }
    }
}
