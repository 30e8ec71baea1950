// SPDX-License-Identifier: Apache-2.0
//! `distributary explain`: what the keys of the configuration mean, for people and for editors.
//!
//! Owns the arguments. The keys and their meanings are those of `config`.

use std::io::Write;

use clap::Args;

use crate::config::Reference;

/// Say what a key of the configuration means, with its default or an example
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The key, such as listeners.tls or timers.drain [default: all that are not within another one]
    key: Option<String>,
    /// Print the JSON schema of it instead, for editors that complete and check the file
    #[arg(long)]
    schema: bool,
    /// Print a file with all keys
    #[arg(long, conflicts_with_all = ["key", "schema"])]
    file: bool,
}

/// The same as `explain --schema`, which stands in its place
#[derive(Debug, Args)]
pub(super) struct Schema {
    /// The key
    key: Option<String>,
}

impl Explain {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let reference = Reference::default();
        let text = match (self.file, self.schema) {
            (true, _) => reference.file(),
            (_, true) => format!("{:#}\n", reference.schema(self.key.as_deref())?),
            (false, false) => reference.explain(self.key.as_deref())?,
        };
        Ok(out.write_all(text.as_bytes())?)
    }
}

impl Schema {
    pub(super) fn run(self, out: &mut impl Write, said: &mut impl Write) -> anyhow::Result<()> {
        writeln!(said, "`schema` goes with the next version; write `explain --schema`")?;
        let explain = Explain {
            key: self.key,
            schema: true,
            file: false,
        };
        explain.run(out)
    }
}
