//! `distributary validate`: checks a configuration file, and the certificates and keys of its listeners.

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use crate::config::{Config, Flags};
use crate::tls;

/// Check a configuration file: prints OK, or what is wrong, with lines and columns
#[derive(Debug, Args)]
pub(super) struct Validate {
    /// The configuration file
    file: PathBuf,
}

impl Validate {
    pub(super) fn run(self, out: &mut impl Write, notes: &mut impl Write) -> anyhow::Result<()> {
        let config = Config::load(Some(&self.file), &Flags::of_environment())?;
        for warning in &config.warnings {
            writeln!(notes, "warning: {warning}")?;
        }
        let mut problems = Vec::new();
        for (at, listener) in config.listeners.iter().enumerate() {
            let key = format!("{}: listeners[{at}].tls", self.file.display());
            match listener.tls.as_ref().map(tls::listener).transpose() {
                Ok(offer) => {
                    if let Some(warning) = offer.and_then(|offer| offer.warning) {
                        writeln!(notes, "warning: {key}: {warning}")?;
                    }
                }
                Err(error) => problems.push(format!("{key}: {error}")),
            }
        }
        if !problems.is_empty() {
            bail!("{}", problems.join("\n"));
        }
        writeln!(out, "OK")?;
        Ok(())
    }
}
