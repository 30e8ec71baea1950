// SPDX-License-Identifier: Apache-2.0
//! What shells and `man` read about a command line: completions and manual pages, made from the definitions of its flags. Knows
//! nothing of what these do.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Command};
use clap_complete::Shell;

use super::pages::{Said, sections};

/// Print completions for a shell; `config/deploying.md` says where they go
#[derive(Clone, Debug, Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

/// Write manual pages, one for the program and one for each of its commands
#[derive(Clone, Debug, Args)]
pub struct Manual {
    /// The folder to write them to
    folder: PathBuf,
}

/// Writes the page of a command, and those of the commands below it. `path` is the command without the name of the program.
fn write(command: &Command, path: &str, said: &[Said], folder: &Path) -> std::io::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    let found = said.iter().find(|said| said.command == path);
    text.extend_from_slice(sections(command, found).as_bytes());
    std::fs::write(folder.join(page.get_filename()), text)?;
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let path = format!("{path} {}", below.get_name());
        write(below, path.trim_start(), said, folder)?;
    }
    Ok(())
}

impl Completions {
    /// Prints completions for `command`.
    pub fn run(&self, mut command: Command, out: &mut impl Write) -> anyhow::Result<()> {
        let (name, mut script) = (command.get_name().to_owned(), Vec::new());
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        Ok(out.write_all(&script)?)
    }
}

impl Manual {
    /// Writes the pages of `command`, with what is said of its commands.
    pub fn run(&self, mut command: Command, said: &[Said]) -> anyhow::Result<()> {
        let folder = &self.folder;
        command.build();
        let made = std::fs::create_dir_all(folder).and_then(|()| write(&command, "", said, folder));
        made.with_context(|| format!("cannot write manual pages to {}", folder.display()))
    }
}
