// SPDX-License-Identifier: Apache-2.0
//! `distributary holds`: the removals that relays do not pass on, and orders for them.
//!
//! Owns the arguments and the exit code: 1 while anything is held at which somebody should look, or clients were sent older content. The
//! relays say what that is.

use std::io::Write;

use clap::{Args, Subcommand};

use super::asking::{AdminAccess, Bounds, Heard, Relay, encoded, tell};
use crate::answers::HoldList;

/// Show which removed resources are still served, why, and until when, and which older contents clients use. Exits with 1 if much was
/// lost at once, if something that a control plane still sends has referred to a removed resource for over 15 minutes, or if a client
/// was sent older content in the place of what it rejects
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct HoldsCommand {
    #[command(flatten)]
    access: AdminAccess,
    #[command(subcommand)]
    order: Option<HoldCommand>,
}

#[derive(Debug, Subcommand)]
enum HoldCommand {
    /// Hold removals for longer
    Extend {
        #[command(flatten)]
        what: HoldOrdered,
        /// For how long from now on, at most 24h
        #[arg(long = "for", value_name = "TIME", default_value = "30m")]
        time: String,
    },
    /// Pass removals on at once, with what only they refer to. What a judgement or another reference holds stays. Of older content: no
    /// further client is sent it, and what it names is not kept
    Release {
        #[command(flatten)]
        what: HoldOrdered,
    },
}

/// What an order is about.
#[derive(Debug, Args)]
struct HoldOrdered {
    #[command(flatten)]
    access: AdminAccess,
    /// The id of a hold, or TYPE/NAME of a resource, such as cds/payments
    target: String,
    /// Why; it is logged, and shown while it is held
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl HoldsCommand {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        match self.order {
            Some(HoldCommand::Extend { what, time }) => what.give("extend", &format!("&for={}", encoded(&time)), out),
            Some(HoldCommand::Release { what }) => what.give("release", "", out),
            None => tell(self.access.each(held), out),
        }
    }
}

impl HoldOrdered {
    fn give(&self, order: &str, more: &str, out: &mut impl Write) -> anyhow::Result<()> {
        let (target, reason) = (encoded(&self.target), encoded(&self.reason));
        let path = format!("/holds/{order}?target={target}&reason={reason}{more}");
        self.access.order("POST", &path, b"", Bounds::LINE, out)
    }
}

/// Returns what a relay holds, and what of that is wrong.
fn held(relay: Relay<'_>) -> anyhow::Result<Heard> {
    let found: HoldList = relay.json("/holds?format=json")?;
    let mut wrong = Vec::new();
    let trouble: usize = found
        .holds
        .iter()
        .filter(|hold| hold.trouble)
        .map(|hold| hold.count)
        .sum();
    let older: usize = found.older.iter().map(|older| older.clients).sum();
    if trouble > 0 {
        wrong.push(format!(
            "{relay}: removed resources that are still served and need a look: {trouble}; send them again, or let them go with \
             `distributary holds release ID --reason TEXT`"
        ));
    }
    if older > 0 {
        wrong.push(format!(
            "{relay}: clients that were sent older content in the place of what they reject: {older}; `distributary status --nacks` \
             shows what to mend"
        ));
    }
    Ok((found.text, wrong))
}
