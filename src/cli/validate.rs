//! `distributary validate`: says whether a configuration file is good.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use crate::config::{Config, Flags};

/// Check a configuration file: prints OK, or every problem with its line and column
#[derive(Debug, Args)]
pub(super) struct Validate {
    /// The configuration file
    file: PathBuf,
}

impl Validate {
    pub(super) fn run(self, out: &mut impl Write, notes: &mut impl Write) -> anyhow::Result<()> {
        for warning in Config::load(Some(&self.file), &Flags::of_environment())?.warnings {
            writeln!(notes, "warning: {warning}")?;
        }
        writeln!(out, "OK")?;
        Ok(())
    }
}
