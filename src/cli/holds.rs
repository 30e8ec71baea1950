//! `distributary holds`: the removals that relays do not pass on, and orders for them.
//!
//! Owns the arguments and the exit code: 1 while anything is held. The relays say what is held.

use std::io::Write;

use anyhow::bail;
use clap::{Args, Subcommand};

use super::asking::{AdminAccess, Bounds, encoded};

/// Show which removed resources are still served, why, and until when. Exits with 1 if there are any
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
    /// Pass removals on at once, with what only they refer to
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
                access.order("POST", &path, Bounds::LINE, out)
            }
            Some(Order::Release { access, target, reason }) => {
                let path = format!("/holds/release?target={}&reason={}", encoded(&target), encoded(&reason));
                access.order("POST", &path, Bounds::LINE, out)
            }
            None => show(&self.access, out),
        }
    }
}

/// What `/holds` says when nothing is held.
const NOTHING: &str = "nothing is held";

fn show(access: &AdminAccess, out: &mut impl Write) -> anyhow::Result<()> {
    let answers = access.each(|relay| (relay.to_string(), relay.text("/holds")));
    let alone = answers.len() == 1;
    let (mut held, mut wrong) = (0, Vec::new());
    for (relay, answer) in answers {
        let text = match answer {
            Ok(text) => text,
            Err(error) => {
                wrong.push(super::told(&error));
                continue;
            }
        };
        held += usize::from(text.trim_end() != NOTHING);
        for line in text.lines() {
            // The relay has made the names safe to print.
            match alone {
                true => writeln!(out, "{line}")?,
                false => writeln!(out, "{relay}: {line}")?,
            }
        }
    }
    if held > 0 {
        wrong.push("removed resources are still served".to_owned());
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!(wrong.join("\n"))
}
