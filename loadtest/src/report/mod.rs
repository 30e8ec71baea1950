// SPDX-License-Identifier: Apache-2.0
//! The reports: a record as a table or JSON, and live progress.
//!
//! Owns how figures are shown. Refuses to know how they were measured.

mod columns;
pub(crate) mod exposition;
pub(crate) mod grid;
mod live;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

pub(crate) use live::Progress;

use crate::measure::record::Record;

/// The heading of these flags in the help.
pub(crate) const REPORT: &str = "Reports";

/// Where the report goes besides the terminal.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = REPORT)]
pub(crate) struct Outputs {
    /// Write the record of the run to this file: everything that was measured. With `-` it goes to the standard output, and everything
    /// else to the standard error.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print no progress and no tables; at the end, only what did not hold, to the standard error.
    #[arg(long)]
    quiet: bool,
}

/// Where progress and tables go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    Output,
    /// The output is for the record alone.
    Error,
    Silent,
}

impl Voice {
    /// Writes a text. If its reader is gone, the run goes on for its files.
    fn say(self, text: &str) -> std::io::Result<()> {
        match self {
            Self::Output => write!(std::io::stdout().lock(), "{text}"),
            Self::Error => write!(std::io::stderr().lock(), "{text}"),
            Self::Silent => Ok(()),
        }
    }
}

/// The name of a file that means the standard output.
const STDOUT: &str = "-";

impl Outputs {
    /// Returns where progress and tables go.
    pub(crate) fn voice(&self) -> Voice {
        match self.json.as_deref() {
            _ if self.quiet => Voice::Silent,
            Some(file) if file == Path::new(STDOUT) => Voice::Error,
            Some(_) | None => Voice::Output,
        }
    }

    /// Writes the report: the record, and the table; if nothing is to be printed, what did not hold all the same.
    pub(crate) fn tell(&self, record: &Record) -> anyhow::Result<()> {
        let written = self.json.as_deref().map_or(Ok(()), |file| {
            write(file, &(serde_json::to_string_pretty(record)? + "\n"))
        });
        // Last, so that the file is written even if the terminal is closed.
        let said = match self.voice() {
            Voice::Silent if record.held() => Ok(()),
            Voice::Silent => Voice::Error.say(&table::failures(record)),
            voice @ (Voice::Output | Voice::Error) => voice.say(&format!("\n{}", table::table(record))),
        };
        said.context("cannot write the table")?;
        written
    }

    /// Checks, before the run, that there is a folder for the file that will be written.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let Some(file) = self.json.as_deref().filter(|file| *file != Path::new(STDOUT)) else {
            return Ok(());
        };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let there = folder.is_none_or(Path::is_dir) && !file.is_dir() && file.file_name().is_some();
        anyhow::ensure!(
            there,
            "--json {}: the folder does not exist, or this is itself a folder; name a file in a folder that exists",
            file.display()
        );
        Ok(())
    }
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    if file == Path::new(STDOUT) {
        return Voice::Output.say(text).context("cannot write the record");
    }
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
