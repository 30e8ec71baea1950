// SPDX-License-Identifier: Apache-2.0
//! What is logged: a level, or levels by target. Logs nothing itself.

use std::fmt;

use tracing_subscriber::filter::{EnvFilter, LevelFilter};

use super::reading::single;

/// A filter of log lines: a level, or a list of `target=level`.
#[derive(Clone, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    /// Reads a filter.
    ///
    /// # Errors
    /// Returns what to write if the text is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = not_a_directive(text).or_else(|| EnvFilter::builder().parse(text).is_err().then_some(text));
        match wrong {
            None => Ok(Self(text.to_owned())),
            Some(part) => Err(format!(
                "`{part}` is not a log level; write error, warn, info, debug, trace, off or target=level,..."
            )),
        }
    }

    /// Returns the parts of a filter. Commas within brackets and braces separate the fields of a span.
    pub fn parts(filter: &str) -> impl Iterator<Item = &str> {
        let mut depth = 0_usize;
        let parts = filter.split(move |character| {
            match character {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            character == ',' && depth == 0
        });
        parts.map(str::trim)
    }

    /// Returns it as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

single!(LogFilter as Self: Self::parse, <String as super::reading::Shape>::kind(), |filter: &Self| filter.0.clone());

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl fmt::Debug for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns a part of the filter that is no level and names none. The parser takes such a word for a target, and a filter with
/// only targets hides everything else, errors included.
fn not_a_directive(filter: &str) -> Option<&str> {
    let is_level = |part: &str| part.parse::<LevelFilter>().is_ok();
    let good = |part: &str| match part.rsplit_once('=') {
        Some((target, level)) if !level.ends_with('}') && !level.ends_with(']') => {
            !target.is_empty() && is_level(level)
        }
        Some(_) => true,
        None => is_level(part) || part.contains('['),
    };
    LogFilter::parts(filter).find(|part| !good(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word that the parser would take for a target is an error.
    #[test]
    fn what_is_a_filter() {
        for good in [
            "info",
            "WARN",
            "off",
            "debug,h2=trace",
            "distributary::upstream=debug, h2=off",
            "a[b{c=1,d=2}]=info",
            "info,,",
        ] {
            assert_eq!(not_a_directive(good), None, "{good}");
        }
        for (bad, part) in [
            ("warning", "warning"),
            ("info,loud", "loud"),
            ("h2=loud", "h2=loud"),
            ("=info", "=info"),
        ] {
            assert_eq!(not_a_directive(bad), Some(part), "{bad}");
        }
    }
}
