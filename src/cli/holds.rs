//! `distributary holds`: the removals that relays do not pass on, and orders for them.
//!
//! Owns the arguments and the exit code: 1 while anything is held at which somebody should look, or clients were sent older content. The
//! relays say what that is.

use std::io::Write;

use anyhow::bail;
use clap::{Args, Subcommand};

use super::asking::{AdminAccess, Bounds, encoded};
use super::status::held_in_trouble;

/// Show which removed resources are still served, why, and until when, and which older contents clients use. Exits with 1 if much was
/// lost at once, if something that a control plane still sends has referred to a removed resource for over 15 minutes, or if a client
/// was sent older content in the place of what it rejects
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Holds {
    #[command(flatten)]
    access: AdminAccess,
    #[command(subcommand)]
    order: Option<Order>,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// Hold removals for longer
    Extend {
        #[command(flatten)]
        access: AdminAccess,
        /// The id of a hold, or TYPE/NAME of a resource, such as cds/payments
        target: String,
        /// Why; it is shown and logged
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// For how long from now on, at most 24h
        #[arg(long = "for", value_name = "TIME", default_value = "30m")]
        time: String,
    },
    /// Pass removals on at once, with what only they refer to. What a judgement or another reference holds stays. Of older content: no
    /// further client is sent it, and what it names is not kept
    Release {
        #[command(flatten)]
        access: AdminAccess,
        /// The id of a hold, or TYPE/NAME of a resource, such as cds/payments
        target: String,
        /// Why; it is logged
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

impl Holds {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        match self.order {
            Some(Order::Extend {
                access,
                target,
                reason,
                time,
            }) => {
                let path = format!(
                    "/holds/extend?target={}&reason={}&for={}",
                    encoded(&target),
                    encoded(&reason),
                    encoded(&time)
                );
                access.order("POST", &path, b"", Bounds::LINE, out)
            }
            Some(Order::Release { access, target, reason }) => {
                let path = format!("/holds/release?target={}&reason={}", encoded(&target), encoded(&reason));
                access.order("POST", &path, b"", Bounds::LINE, out)
            }
            None => show(&self.access, out),
        }
    }
}

fn show(access: &AdminAccess, out: &mut impl Write) -> anyhow::Result<()> {
    let answers = access.each(|relay| {
        let said = relay
            .text("/holds")
            .and_then(|text| Ok((text, held_in_trouble(relay)?)));
        (relay.to_string(), said)
    });
    let alone = answers.len() == 1;
    let mut wrong = Vec::new();
    for (relay, answer) in answers {
        let (text, (in_trouble, older)) = match answer {
            Ok(said) => said,
            Err(error) => {
                wrong.push(super::told(&error));
                continue;
            }
        };
        if in_trouble > 0 {
            wrong.push(format!(
                "{relay}: removed resources that are still served and need a look: {in_trouble}; send them again, or let them go with \
                 `distributary holds release ID --reason TEXT`"
            ));
        }
        if older > 0 {
            wrong.push(format!(
                "{relay}: clients that were sent older content in the place of what they reject: {older}; `distributary status --nacks` \
                 shows what to mend"
            ));
        }
        for line in text.lines() {
            // The relay has made the names safe to print.
            match alone {
                true => writeln!(out, "{line}")?,
                false => writeln!(out, "{relay}: {line}")?,
            }
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!(wrong.join("\n"))
}
