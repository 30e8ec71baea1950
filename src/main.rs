//! The program: hands its arguments to the library.

use std::process::ExitCode;

/// Gives back to the system what a burst of clients or a flood took, by threads of its own.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    distributary::cli::main(std::env::args_os())
}
