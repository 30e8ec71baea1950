// SPDX-License-Identifier: Apache-2.0
//! The surroundings of a run: the machine, the sources, the time. Read once; what is not available is left out.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use distributary::telemetry::COMMIT;
use serde::Serialize;

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Machine {
    /// The processors that this program may use.
    pub(crate) cores: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) processor: String,
    pub(crate) kernel: String,
}

impl Machine {
    /// Reads the machine that this runs on.
    pub(crate) fn this() -> Self {
        let line = |file: &str, key: &str| {
            let text = fs::read_to_string(file).ok()?;
            let value = text.lines().find_map(|line| line.strip_prefix(key))?;
            Some(value.trim_start_matches([' ', '\t', ':']).trim().to_owned())
        };
        let memory = line("/proc/meminfo", "MemTotal").unwrap_or_default();
        let kib: u64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: kib * 1024,
            processor: line("/proc/cpuinfo", "model name").unwrap_or_default(),
            kernel: line("/proc/sys/kernel/osrelease", "").unwrap_or_default(),
        }
    }
}

/// Returns the commit of the sources beside this program, or, if they are not there, the one that it was built from.
pub(super) fn commit() -> Option<String> {
    let told = Command::new("git")
        .args(["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty"])
        .output();
    let told = told.ok().filter(|told| told.status.success());
    let name = told.and_then(|told| String::from_utf8(told.stdout).ok());
    let name = name.map_or_else(|| COMMIT.to_owned(), |name| name.trim().to_owned());
    (!name.is_empty()).then_some(name)
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "a record says when it was taken")]
pub(super) fn unix_time() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
