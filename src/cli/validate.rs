//! `distributary validate`: checks a configuration, the files that it names, and files of resources. Starts nothing.

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use super::explained::Explain;
use crate::app::Inspection;
use crate::config::{Config, Flags};

/// Check a configuration file, and files of resources: prints OK, or what is wrong, with lines and columns
#[derive(Debug, Args)]
pub(super) struct Validate {
    /// The configuration file
    #[arg(required_unless_present = "resources")]
    file: Option<PathBuf>,
    /// A file of resources, or a directory of them. With a configuration, its descriptors, types and limits count
    #[arg(long, value_name = "PATH")]
    resources: Vec<PathBuf>,
    #[command(flatten)]
    explain: Explain,
}

impl Validate {
    pub(super) fn run(self, out: &mut impl Write, notes: &mut impl Write) -> anyhow::Result<()> {
        let flags = Flags::of_environment();
        let examined = self.file.as_deref().map(|file| Config::examine(file, &flags));
        let (config, mut problems) = match examined.transpose()? {
            Some((config, problems)) => (Some(config), problems),
            None => (None, Vec::new()),
        };
        let found = Inspection::of(self.file.as_deref(), config.as_ref(), &self.resources);
        problems.extend(found.problems);
        let warnings = config.iter().flat_map(|config| &config.warnings);
        for warning in warnings.chain(&found.warnings) {
            writeln!(notes, "warning: {warning}")?;
        }
        if !problems.is_empty() {
            bail!("{}", problems.join("\n"));
        }
        let explained = config.map(|config| self.explain.run(&config, out)).transpose()?;
        if explained != Some(true) {
            writeln!(out, "OK")?;
        }
        Ok(())
    }
}
