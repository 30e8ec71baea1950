// SPDX-License-Identifier: Apache-2.0
//! Runs one hot function a given number of times, so that its instructions can be counted from outside.
//!
//! Owns its arguments. Does not know what the function does, and does not count.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use crate::measure::hot::STEPS;

/// The hidden first argument; the name of a step and how often to take it follow.
pub(crate) const ENTRY: &str = "take-steps";

/// Takes the steps that are asked for.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let asked = match words.as_slice() {
        [name, times] => STEPS
            .iter()
            .find(|(known, _)| known == name)
            .zip(times.parse::<u32>().ok()),
        _ => None,
    };
    let Some(((_, make), times)) = asked else {
        let names = STEPS.map(|(name, _)| name).join(", ");
        // If the output is closed there is no reader to tell.
        let _ = writeln!(
            std::io::stderr(),
            "distributary-load {ENTRY} NAME TIMES, NAME one of {names}"
        );
        return ExitCode::FAILURE;
    };
    let mut step = make();
    (0..times).for_each(|_| step());
    ExitCode::SUCCESS
}
