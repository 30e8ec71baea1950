// SPDX-License-Identifier: Apache-2.0
//! The target of this name, led by coverage.
#![no_main]

#[path = "../../targets/poll.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|input: &[u8]| target::run(input));
