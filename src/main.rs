//! The program: hands its arguments to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    distributary::cli::main(std::env::args_os())
}
