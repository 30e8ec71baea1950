//! What shells and `man` read about a command line: completions and manual pages, made from the definitions of its flags. Knows
//! nothing of what these do.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command};
use clap_complete::Shell;

/// Print completions for a shell; `config/README.md` says where they go
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

impl Completions {
    /// Prints completions for `command`.
    pub fn run(&self, mut command: Command, out: &mut impl Write) -> anyhow::Result<()> {
        let (name, mut script) = (command.get_name().to_owned(), Vec::new());
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        Ok(out.write_all(&script)?)
    }
}

impl Manual {
    /// Writes the pages of `command`.
    pub fn run(&self, command: Command) -> anyhow::Result<()> {
        let folder = &self.folder;
        let made = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
        made.with_context(|| format!("cannot write manual pages to {}", folder.display()))
    }
}
