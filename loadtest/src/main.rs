//! A load test for xDS servers. It is control plane, relay and fleet in one program: the control plane keeps a ledger of
//! what it said, the clients check against it every byte that the relay makes of it, and the report says what it cost.
//!
//! - [`arguments`], [`scenario`], [`report`], [`findings`], [`outcome`]: what is asked for, what is done, what was found
//! - [`ledger`], [`control_plane`]: what there is to know, and who serves it
//! - [`fleet`], [`life`], [`client`], [`checker`], [`wire`]: who asks for it, and checks it
//! - [`relay`], [`process`], [`scrape`]: the child under test, and what can be seen of it from outside

mod arguments;
mod checker;
mod client;
mod control_plane;
mod findings;
mod fleet;
mod held;
mod ledger;
mod life;
mod outcome;
mod process;
mod relay;
mod report;
mod response;
mod scenario;
mod scrape;
mod tally;
#[cfg(test)]
mod tests;
mod violation;
mod want;
mod wire;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;

use arguments::Arguments;
use outcome::Outcome;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == relay::ENTRY) {
        return relay::run(words);
    }
    let arguments = Arguments::parse();
    let outcome = measure(&arguments).and_then(|report| {
        let mut out = std::io::stdout().lock();
        write!(out, "\n{report}")?;
        if let Some(file) = &arguments.json {
            let json = serde_json::to_vec_pretty(&report)?;
            std::fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(report.held())
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nothing is left to tell when the terminal itself is gone.
            let _ = writeln!(std::io::stderr(), "distributary-load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the scenario to its end, or to Ctrl-C; either way everything that it started ends with it.
fn measure(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut say = |text: &str| {
            let _ = writeln!(std::io::stdout(), "{text}");
        };
        tokio::select! {
            outcome = scenario::play(arguments, &mut say) => outcome,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                anyhow::bail!("interrupted")
            }
        }
    })
}
