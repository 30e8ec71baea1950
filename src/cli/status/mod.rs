// SPDX-License-Identifier: Apache-2.0
//! `distributary status`: how several relays are, and whether they have the same.
//!
//! Owns the flags, the forms of the output, and when the exit code is 1. Tables of more than a few lines are in the other files.

mod answers;
mod clients;
mod compare;
mod fault;
mod nacks;
mod overview;
mod resources;
mod screen;
mod servers;

use std::io::Write;
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::asking::{AdminAccess, share};
use crate::get::PrintedTable;
use crate::json::{Bounds, Tree};
pub(super) use compare::differs;
use fault::StatusFault;
use screen::Screen;

/// Show how relays are, and whether they have the same contents; exit code 1: one does not answer or is not ready, its
/// configuration or certificates are bad, a control plane fails, contents differ, or clients reject something, hang or wait
#[derive(Debug, Args)]
pub(super) struct StatusCommand {
    /// Show the client streams; only what clients reject is an error then
    #[arg(long, group = "table")]
    clients: bool,
    /// Show what clients reject, and why
    #[arg(long, group = "table")]
    nacks: bool,
    /// Show the control planes; only those that fail are errors then
    #[arg(long, group = "table")]
    servers: bool,
    /// Show the resources; only differences between relays are errors then
    #[arg(long, group = "table")]
    resources: bool,
    /// Without a table: more clients than this share that have not answered a response for 10 s, or have waited that long for what
    /// nobody has answered, are an error
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share)]
    lagging_over: f64,
    /// Show it again every two seconds, until interrupted
    #[arg(short, long)]
    watch: bool,
    /// table, wide: with more columns, json or yaml
    #[arg(short, long, value_name = "FORM", value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    chosen: clients::Chosen,
    #[command(flatten)]
    access: AdminAccess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Wide,
    Json,
    Yaml,
}

/// One look at all relays.
struct Report {
    table: PrintedTable,
    relays: Vec<Value>,
    json: Map<String, Value>,
    faults: Vec<StatusFault>,
}

/// What is wrong must still be wrong after this time: relays take a change one after the other.
const SECOND_LOOK: Duration = Duration::from_secs(1);
/// How long after one look the next one begins.
const PACE: Duration = Duration::from_secs(2);

impl StatusCommand {
    /// Prints the table. `terminal`: it is read by a person, and may be drawn anew.
    pub(super) fn run(self, out: &mut impl Write, terminal: bool) -> anyhow::Result<()> {
        if self.watch {
            return self.watch(out, terminal);
        }
        let mut report = self.look();
        if !report.faults.is_empty() {
            std::thread::sleep(SECOND_LOOK);
            let before = std::mem::replace(&mut report, self.look());
            fault::keep_lasting(&mut report.faults, &before.faults);
        }
        out.write_all(report.printed(self.output, None, has_colours(terminal))?.as_bytes())?;
        out.flush()?;
        match fault::lines(&report.faults) {
            none if none.is_empty() => Ok(()),
            some => bail!(some.join("\n")),
        }
    }

    fn watch(&self, out: &mut impl Write, terminal: bool) -> anyhow::Result<()> {
        let mut screen = Screen::new(terminal);
        let mut before: Option<Vec<StatusFault>> = None;
        loop {
            let mut report = self.look();
            let found = report.faults.clone();
            if let Some(before) = before.replace(found) {
                fault::keep_lasting(&mut report.faults, &before);
            }
            let mut text = report.printed(self.output, screen.width(), has_colours(terminal))?;
            if matches!(self.output, Output::Table | Output::Wide) {
                for line in fault::lines(&report.faults) {
                    text.push_str(&line);
                    text.push('\n');
                }
            }
            screen.show(&text, out)?;
            std::thread::sleep(PACE);
        }
    }

    fn look(&self) -> Report {
        let relays = self.access.relays();
        if self.clients {
            clients::report(&relays, &self.chosen)
        } else if self.nacks {
            nacks::report(&relays, self.output != Output::Table)
        } else if self.servers {
            servers::report(&relays)
        } else if self.resources {
            resources::report(&relays)
        } else {
            overview::report(&relays, self.lagging_over)
        }
    }
}

fn has_colours(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
}

impl Report {
    fn new(narrow: &'static str, wide: &'static str) -> Self {
        Self {
            table: PrintedTable::new(narrow, wide),
            relays: Vec::new(),
            json: Map::new(),
            faults: Vec::new(),
        }
    }

    /// Takes what relays answered; one that did not is a fault.
    fn answered<T>(&mut self, answers: Vec<(String, anyhow::Result<T>)>) -> Vec<(String, Option<T>)> {
        let taken = answers.into_iter().map(|(relay, answer)| {
            let answer = self.taken(&relay, answer);
            if answer.is_none() {
                self.relays.push(json!({ "relay": relay, "answers": false }));
            }
            (relay, answer)
        });
        taken.collect()
    }

    fn taken<T>(&mut self, relay: &str, answer: anyhow::Result<T>) -> Option<T> {
        let fault = |error| StatusFault::new(format!("answer {relay}"), super::told(&error));
        answer.map_err(|error| self.faults.push(fault(error))).ok()
    }

    /// `width` is how wide a table may be, if more columns may be shown than usual.
    fn printed(&self, output: Output, width: Option<usize>, colours: bool) -> anyhow::Result<String> {
        let mut text = String::new();
        match output {
            Output::Table | Output::Wide => {
                for (line, tone) in self.table.lines(output == Output::Wide, width) {
                    text.push_str(&if colours { tone.coloured(&line) } else { line });
                    text.push('\n');
                }
            }
            Output::Json | Output::Yaml => {
                let mut json = self.json.clone();
                json.insert("relays".to_owned(), self.relays.clone().into());
                json.insert("well".to_owned(), self.faults.is_empty().into());
                json.insert("faults".to_owned(), self.faults.iter().map(StatusFault::line).collect());
                let tree = Tree::json(Value::from(json).to_string().as_bytes(), Bounds::FILE);
                let tree = tree.map_err(|fault| anyhow::anyhow!("cannot be shown: {fault}"))?;
                text = if output == Output::Json {
                    tree.to_json()
                } else {
                    tree.to_yaml()
                };
            }
        }
        Ok(text)
    }
}
