// SPDX-License-Identifier: Apache-2.0
//! The command line. Owns the arguments and the exit code: 0 is a clean end, 1 a bad configuration or an error while running,
//! 2 a wrong use of the command line, or that a server which is compared was not reached. Knows nothing of xDS.

mod asked;
mod asking;
mod bootstrap;
mod compare;
mod explained;
mod get;
mod health;
mod holds;
mod orders;
mod pages;
mod reference;
mod serve;
mod shells;
mod status;
mod survey;
mod validate;
mod wait;

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::telemetry::BUILD;
use crate::xds::printable;
pub use pages::{Said, with_examples};
pub use shells::{Completions, Manual};

/// An xDS relay: many Envoys and gRPC clients, few streams to the control plane.
#[derive(Debug, Parser)]
#[command(name = "distributary", version = BUILD, arg_required_else_help = true, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Validate(validate::Validate),
    Explain(reference::Explain),
    #[command(hide = true)]
    Schema(reference::Schema),
    Bootstrap(bootstrap::BootstrapCommand),
    Get(Box<get::Get>),
    Compare(Box<compare::Compare>),
    Health(health::HealthCommand),
    Drain(orders::DrainCommand),
    Reload(orders::ReloadCommand),
    LogLevel(orders::LogLevel),
    Holds(Box<holds::HoldsCommand>),
    Status(status::StatusCommand),
    Survey(Box<survey::SurveyCommand>),
    Wait(wait::WaitCommand),
    Completions(Completions),
    Manual(Manual),
}

/// A wrong use of the command line that only several arguments together show.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Misuse(String);

/// A server that is to be compared was not reached, so nothing can be said.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unreached(String);

/// Returns an error and its causes. Most errors say their cause themselves; it is not said again.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    let lines = text.lines().map(printable).collect::<Vec<_>>();
    lines.join("\n")
}

/// A reader that has closed the pipe, for example `head`, is no error.
fn unpiped(outcome: anyhow::Result<()>) -> anyhow::Result<()> {
    let is_closed = |error: &anyhow::Error| {
        let error = error.downcast_ref::<std::io::Error>();
        error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    };
    outcome.or_else(|error| if is_closed(&error) { Ok(()) } else { Err(error) })
}

/// Runs the program with `args`, whose first element is the program's own name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command = with_examples(Arguments::command(), pages::ALL);
    let read = command.try_get_matches_from(args);
    let arguments = match read.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // If the terminal is gone, nothing can be printed.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let outcome = match arguments.command {
        Command::Serve(serve) => serve.run(),
        Command::Explain(explain) => unpiped(explain.run(&mut std::io::stdout())),
        Command::Schema(schema) => unpiped(schema.run(&mut std::io::stdout(), &mut std::io::stderr())),
        Command::Reload(reload) => reload.run(&mut std::io::stdout()),
        Command::LogLevel(level) => level.run(&mut std::io::stdout()),
        Command::Bootstrap(bootstrap) => bootstrap.run(&mut std::io::stdout(), &mut std::io::stderr()),
        Command::Get(get) => get.run(&mut std::io::stdout(), &mut std::io::stderr()),
        Command::Compare(compare) => unpiped(compare.run(&mut std::io::stdout(), &mut std::io::stderr())),
        Command::Health(health) => health.run(&mut std::io::stdout()),
        Command::Drain(drain) => drain.run(&mut std::io::stdout()),
        Command::Holds(holds) => unpiped(holds.run(&mut std::io::stdout())),
        Command::Status(status) => {
            let mut out = std::io::stdout();
            let terminal = out.is_terminal();
            unpiped(status.run(&mut out, terminal))
        }
        Command::Survey(survey) => survey.run(&mut std::io::stdout(), &mut std::io::stderr()),
        Command::Wait(wait) => wait.run(&mut std::io::stdout()),
        Command::Completions(completions) => unpiped(completions.run(Arguments::command(), &mut std::io::stdout())),
        Command::Manual(manual) => manual.run(Arguments::command(), pages::ALL),
        Command::Validate(validate) => validate.run(&mut std::io::stdout(), &mut std::io::stderr()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{}", told(&error));
            if error.is::<Misuse>() || error.is::<Unreached>() {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}
