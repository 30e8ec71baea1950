// SPDX-License-Identifier: Apache-2.0
//! A load test for xDS servers: control plane, relay and fleet of clients in one program. The control plane keeps a ledger of
//! what it sent, the clients check every byte from the relay against it, and the report shows what it cost.
//!
//! The rooms, each of which uses only those above it:
//!
//! - [`measure`](mod@measure): what is measured, and the record of a run
//! - [`wire`]: bytes and addresses: protobuf, HTTP/2, TLS
//! - [`origin`]: the resources, and the control plane that serves them
//! - [`fleet`]: the clients, which ask for resources and check them, and their connections
//! - [`subject`]: the relay under test as a child process, the floor, and the networks around them
//! - [`dump`]: what one client is given, written down
//! - [`report`]: the results, for people and for other programs
//! - [`command`]: the command line and its help
//! - [`story`]: what happens, and what must hold

mod command;
mod dump;
mod fleet;
mod measure;
mod origin;
mod report;
mod story;
mod subject;
#[cfg(test)]
mod tests;
mod wire;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser as _};
use command::arguments::{Arguments, Command, Program};
use command::pages;
use measure::counted;
use measure::now;
use measure::record::{Live, Record, Recorder};
use report::Progress;
use report::exposition::Exposition;
use story::keys;
use subject::{floor, relay};

/// The relay's allocator, because this program can run as the relay.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let first = words.next();
    if first.as_ref().is_some_and(|word| word == relay::ENTRY) {
        return relay::run(words);
    }
    if first.as_ref().is_some_and(|word| word == counted::ENTRY) {
        return counted::run(words);
    }
    if first.is_some_and(|word| word == floor::server::ENTRY) {
        return floor::server::run(words);
    }
    let matches = pages::command().get_matches();
    let program = Program::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match act(program.command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NOT_HELD),
        Err(error) => {
            // If the terminal is closed there is no reader to tell.
            let _ = writeln!(std::io::stderr(), "distributary-load: {error:#}");
            ExitCode::from(NOT_RUN)
        }
    }
}

/// The exit code if an assertion did not hold.
const NOT_HELD: u8 = 1;
/// The exit code if the run did not complete.
const NOT_RUN: u8 = 2;

/// Does what is asked. Returns whether everything held.
fn act(command: Option<Command>) -> anyhow::Result<bool> {
    match command {
        Some(Command::Run(arguments)) => measure(&arguments).map(|record| record.held()),
        None => measure(&Arguments::parse_from([""])).map(|record| record.held()),
        Some(Command::List) => print(&story::listing()?),
        Some(Command::Explain { key: None }) => print(keys::PAGE),
        Some(Command::Explain { key: Some(key) }) => print(&keys::explain(&key)?),
        Some(Command::Dump(dump)) => print(&runtime()?.block_on(dump.run())?),
        Some(Command::Completions(completions)) => {
            let mut script = Vec::new();
            completions.run(pages::command(), &mut script)?;
            print(&String::from_utf8(script)?)
        }
        Some(Command::Manual(manual)) => manual.run(pages::command(), pages::ALL).map(|()| true),
    }
}

/// Prints an answer. If its reader has closed the pipe, for example `head`, that is no error.
fn print(text: &str) -> anyhow::Result<bool> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(true),
    }
}

/// Runs the scenario and writes the report.
fn measure(arguments: &Arguments) -> anyhow::Result<Record> {
    arguments.outputs.check()?;
    let recorder = Recorder::new(arguments.scenario(), now())?;
    let played = play(arguments, &recorder);
    if let Err(error) = &played {
        recorder.fail("the run completes", Some(format!("{error:#}")));
    }
    let record = recorder.finish(now())?;
    // What was measured before a failure is reported all the same.
    if played.is_ok() || !record.setup.is_empty() {
        arguments.outputs.tell(&record)?;
    }
    played.map(|()| record)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Plays the scenario to its end or until Ctrl-C. In both cases everything that it started stops too.
fn play(arguments: &Arguments, recorder: &Recorder) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let progress = Progress::new(arguments.outputs.voice());
        let mut say = |text: &str| progress.say(text);
        let exposition = match arguments.prometheus {
            Some(address) => Some(Exposition::bind(address).await?),
            None => None,
        };
        let visited = async {
            if let Some(exposition) = &exposition {
                exposition.run().await;
            }
            std::future::pending().await
        };
        if let Some(exposition) = &exposition {
            say(&exposition.describe()?);
        }
        let tell = |live: &Live| {
            progress.tell(live);
            exposition.iter().for_each(|exposition| exposition.tell(live));
        };
        tokio::select! {
            never = visited => never,
            outcome = story::play(arguments, recorder, &mut say) => outcome,
            broken = recorder.run(tell) => Err(broken),
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                anyhow::bail!("interrupted")
            }
        }
    })
}
