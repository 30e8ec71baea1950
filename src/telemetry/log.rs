//! The log: lines on standard error, as text or as JSON, with times in RFC 3339 and UTC. Owns the format and the filter. Other
//! modules decide what they log.

use std::io::{self, Write};
use std::str::FromStr;

use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::util::TryInitError;

use crate::xds::printable;

/// The format of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object on a line.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(format!("`{text}` is not a log format; write text or json")),
        }
    }
}

/// Why the log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A part of the filter is neither a level nor a target with a level.
    #[error("`{0}` is not a log level; write error, warn, info, debug, trace, off or target=level,...")]
    Filter(String),
    /// Another logger is already set up in this process.
    #[error("the log is already set up: {0}")]
    Taken(#[from] TryInitError),
}

/// The transport logs a warning for each connection on which a client floods it, and every frame at `debug`. These lines appear
/// only if the filter names `h2`.
const USUAL: &str = "h2=error";

/// Starts the log of this process; `filter` is a level or a list of `target=level`.
pub fn log_to_stderr(filter: Option<&str>, format: Format) -> Result<(), LogError> {
    use tracing_subscriber::util::SubscriberInitExt as _;

    let text = filter.filter(|filter| !filter.is_empty()).unwrap_or("info");
    if let Some(wrong) = not_a_directive(text) {
        return Err(LogError::Filter(wrong.to_owned()));
    }
    let filter = EnvFilter::builder()
        .parse([USUAL, text].join(","))
        .map_err(|_| LogError::Filter(text.to_owned()))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    match format {
        Format::Text => lines.with_writer(|| Lines).finish().try_init()?,
        // JSON escapes control characters itself.
        Format::Json => {
            let lines = lines.with_writer(io::stderr);
            lines.json().flatten_event(true).finish().try_init()?;
        }
    }
    Ok(())
}

/// Returns a part of the filter that is no level and names none. The parser takes such a word for a target, and a filter with
/// only targets hides everything else, errors included.
fn not_a_directive(filter: &str) -> Option<&str> {
    // Commas within brackets and braces separate the fields of a span.
    let mut depth = 0_usize;
    let parts = filter.split(move |character| {
        match character {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    });
    let is_level = |part: &str| part.parse::<LevelFilter>().is_ok();
    let good = |part: &str| match part.rsplit_once('=') {
        Some((target, level)) if !level.ends_with('}') && !level.ends_with(']') => {
            !target.is_empty() && is_level(level)
        }
        Some(_) => true,
        None => is_level(part) || part.contains('['),
    };
    parts.map(str::trim).find(|part| !good(part))
}

/// Standard error, to which each event is written at once as one line.
struct Lines;

impl Write for Lines {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = format!("{}\n", printable(line));
        io::stderr().write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
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
