//! `distributary explain` and `distributary schema`: what the keys of the configuration mean, for people and for editors.
//!
//! Owns the arguments. The keys and their meanings are those of `config/reference.yaml`.

use std::io::Write;

use clap::Args;

use crate::config::Reference;

/// Say what a key of the configuration means, with its default or an example
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The key, such as listeners.tls or timers.drain [default: all that are not within another one]
    key: Option<String>,
    /// Print the page of the manual that has all keys
    #[arg(long, hide = true, conflicts_with = "key")]
    markdown: bool,
}

/// Print the JSON schema of the configuration, for editors that complete and check it
#[derive(Debug, Args)]
pub(super) struct Schema {
    /// Only that of a key, such as listeners.tls
    key: Option<String>,
}

impl Explain {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let reference = Reference::read();
        let text = match self.markdown {
            true => reference.page(),
            false => reference.explain(self.key.as_deref())?,
        };
        Ok(out.write_all(text.as_bytes())?)
    }
}

impl Schema {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let schema = Reference::read().schema(self.key.as_deref())?;
        Ok(writeln!(out, "{schema:#}")?)
    }
}
