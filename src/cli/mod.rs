//! The command line. It owns the arguments and the exit code, and knows nothing of xDS.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

/// An xDS relay: many Envoys and gRPC clients, few streams to the control plane.
#[derive(Debug, Parser)]
#[command(name = "distributary", version)]
struct Arguments {}

/// Runs the program with `args`, whose first element is the program's own name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match Arguments::try_parse_from(args) {
        Ok(Arguments {}) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to tell when the terminal itself is gone.
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { 2 } else { 0 })
        }
    }
}
