// SPDX-License-Identifier: Apache-2.0
//! `distributary validate`: checks a configuration, the files that it names, and files of resources; or has running relays say what it
//! would change. Starts nothing, changes nothing.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use super::asking::{AdminAccess, AdminTls, Bounds, RelayPlace, encoded};
use super::explained::Explain;
use crate::app::Inspection;
use crate::config::{self, Config, Flags, SENT_BYTES_MAX};

/// Check a configuration file, and files of resources: prints OK, or what is wrong, with lines and columns
#[derive(Debug, Args)]
pub(super) struct Validate {
    /// The configuration file
    #[arg(required_unless_present = "resources")]
    file: Option<PathBuf>,
    /// A file of resources, or a directory of them. With a configuration, its descriptors, types and limits count
    #[arg(long, value_name = "PATH")]
    resources: Vec<PathBuf>,
    /// The admin addresses of running relays, with commas between them: each says what the file would change there if it were its own,
    /// from when on, and how many streams of clients would end. The files that it names are looked for at the relay
    #[arg(long, value_name = "ADDRESS", value_parser = RelayPlace::parse, value_delimiter = ',', requires = "file")]
    #[arg(conflicts_with_all = ["resources", "explain"])]
    against: Vec<RelayPlace>,
    #[command(flatten)]
    tls: AdminTls,
    #[command(flatten)]
    explain: Explain,
}

impl Validate {
    pub(super) fn run(self, out: &mut impl Write, notes: &mut impl Write) -> anyhow::Result<()> {
        if let (false, Some(file)) = (self.against.is_empty(), &self.file) {
            return sent(file, &AdminAccess::of(self.against, self.tls), out);
        }
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

/// Sends a file to running relays, and prints what each says.
fn sent(file: &Path, relays: &AdminAccess, out: &mut impl Write) -> anyhow::Result<()> {
    let text = config::read(file)?;
    let name = file.display().to_string();
    if text.len() > SENT_BYTES_MAX {
        bail!("{name}: a relay takes at most {} MiB", SENT_BYTES_MAX >> 20);
    }
    let path = format!("/validate?name={}", encoded(&name));
    relays.order("POST", &path, &text, Bounds::LIST, out)
}
