//! The log: lines on standard error, as text or as JSON, with times in RFC 3339 and UTC. Owns the format and the filter. Other
//! modules decide what they log.

use std::str::FromStr;

use tracing_subscriber::filter::{EnvFilter, ParseError};
use tracing_subscriber::util::TryInitError;

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
    /// The filter cannot be read.
    #[error("`{filter}` is not a log level: {source}; write error, warn, info, debug, trace or target=level,...")]
    Filter {
        /// The filter as given.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },
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
    let filter = EnvFilter::builder()
        .parse([USUAL, text].join(","))
        .map_err(|source| LogError::Filter {
            filter: text.to_owned(),
            source,
        })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    match format {
        Format::Text => lines.finish().try_init()?,
        Format::Json => lines.json().flatten_event(true).finish().try_init()?,
    }
    Ok(())
}
