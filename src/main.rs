// SPDX-License-Identifier: Apache-2.0
//! The program: passes its arguments to the library.

use std::process::ExitCode;

/// This allocator has background threads that return memory to the system after a burst of clients or a flood.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    distributary::cli::main(std::env::args_os())
}
