// SPDX-License-Identifier: Apache-2.0
//! The log: lines on standard error, as text or as JSON, with times in RFC 3339 and UTC. Owns the format and the filter, which can
//! change while the relay runs. Other modules decide what they log.

use std::io::{self, Write};
use std::str::FromStr;

use parking_lot::Mutex;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

use super::logfmt::Logfmt;
use crate::xds::{printable, printable_json};

/// The format of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object on a line.
    Json,
}

impl FromStr for LogFormat {
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
    #[error("`{0}` is not a log filter")]
    Filter(String),
    /// Another logger is already set up in this process.
    #[error("the log is already set up: {0}")]
    Taken(#[from] TryInitError),
    /// The log has ended.
    #[error("the log has ended: {0}")]
    Ended(#[from] tracing_subscriber::reload::Error),
}

/// The log of this process.
pub struct ProcessLog {
    filter: Mutex<String>,
    replace: Box<Replace>,
}

type Replace = dyn Fn(EnvFilter) -> Result<(), tracing_subscriber::reload::Error> + Send + Sync;

/// The transport logs a warning for each connection on which a client floods it, and every frame at `debug`. These lines appear
/// only if the filter names `h2`.
const USUAL: &str = "h2=error";

impl ProcessLog {
    /// Starts the log; `filter` is a level or a list of `target=level`.
    pub fn start(filter: &str, format: LogFormat) -> Result<Self, LogError> {
        let read = read(filter)?;
        let lines = tracing_subscriber::fmt().with_env_filter(read).with_ansi(false);
        let replace: Box<Replace> = match format {
            LogFormat::Text => {
                let lines = lines
                    .event_format(Logfmt)
                    .with_writer(|| StderrLines(LogFormat::Text))
                    .with_filter_reloading();
                let handle = lines.reload_handle();
                lines.finish().try_init()?;
                Box::new(move |filter| handle.reload(filter))
            }
            LogFormat::Json => {
                let lines = lines
                    .with_writer(|| StderrLines(LogFormat::Json))
                    .json()
                    .flatten_event(true);
                let lines = lines.with_filter_reloading();
                let handle = lines.reload_handle();
                lines.finish().try_init()?;
                Box::new(move |filter| handle.reload(filter))
            }
        };
        Ok(Self {
            filter: Mutex::new(filter.to_owned()),
            replace,
        })
    }

    /// Returns the filter.
    pub fn filter(&self) -> String {
        self.filter.lock().clone()
    }

    /// Replaces the filter. The lines from now on follow the new one.
    pub fn set(&self, filter: &str) -> Result<(), LogError> {
        let mut current = self.filter.lock();
        if *current != filter {
            (self.replace)(read(filter)?)?;
            filter.clone_into(&mut current);
        }
        Ok(())
    }
}

fn read(filter: &str) -> Result<EnvFilter, LogError> {
    let read = EnvFilter::builder().parse([USUAL, filter].join(","));
    read.map_err(|_| LogError::Filter(filter.to_owned()))
}

/// Standard error, to which each event is written at once as one line.
struct StderrLines(LogFormat);

impl Write for StderrLines {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = match self.0 {
            LogFormat::Text => printable(line),
            LogFormat::Json => printable_json(line),
        };
        io::stderr().write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
