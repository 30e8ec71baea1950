// SPDX-License-Identifier: Apache-2.0
//! Processor time and memory of a process, from `/proc`. Linux only.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A process whose memory and processor time are read.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    folder: PathBuf,
}

impl Process {
    pub(crate) fn of(pid: u32) -> Self {
        Self {
            folder: PathBuf::from("/proc").join(pid.to_string()),
        }
    }

    pub(crate) fn own() -> Self {
        Self::of(std::process::id())
    }

    /// Returns the processor time of all threads.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        Ok(self.threads()?.into_values().map(|thread| thread.cpu).sum())
    }

    /// Returns the threads by number.
    fn threads(&self) -> anyhow::Result<BTreeMap<u32, Thread>> {
        let mut threads = BTreeMap::new();
        let tasks = fs::read_dir(self.folder.join("task"))
            .with_context(|| format!("cannot read the threads of {}", self.folder.display()))?;
        for task in tasks {
            let task = task?;
            let path = task.path();
            // A thread may end between the two look-ups.
            let (Some(number), Ok(name), Ok(times)) = (
                task.file_name().to_str().and_then(|number| number.parse().ok()),
                fs::read_to_string(path.join("comm")),
                fs::read_to_string(path.join("schedstat")),
            ) else {
                continue;
            };
            let nanos = times.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
            let cpu = Duration::from_nanos(
                nanos.context("this kernel gives no figures in schedstat: it needs CONFIG_SCHED_INFO")?,
            );
            threads.insert(number, Thread { name, cpu });
        }
        Ok(threads)
    }

    /// Returns the private memory that is resident now.
    pub(crate) fn resident_bytes(&self) -> anyhow::Result<u64> {
        self.status("RssAnon:")
    }

    /// Returns the peak of resident memory, including shared pages.
    pub(crate) fn peak_bytes(&self) -> anyhow::Result<u64> {
        self.status("VmHWM:")
    }

    /// Returns the number of open descriptors.
    pub(crate) fn descriptors(&self) -> anyhow::Result<u64> {
        let open = fs::read_dir(self.folder.join("fd")).context("cannot read the descriptors of a process")?;
        Ok(u64::try_from(open.count())?)
    }

    fn status(&self, key: &str) -> anyhow::Result<u64> {
        let status = fs::read_to_string(self.folder.join("status"))
            .with_context(|| format!("cannot read the memory of {}", self.folder.display()))?;
        let kib = status.lines().find_map(|line| {
            let value = line.strip_prefix(key)?;
            value.split_whitespace().next()?.parse::<u64>().ok()
        });
        Ok(kib.with_context(|| format!("/proc/PID/status has no {key}"))? * 1024)
    }
}

/// A thread and its processor time since it started.
#[derive(Clone, Debug)]
struct Thread {
    name: String,
    cpu: Duration,
}

/// Measures processor time from one reading to the next, thread by thread: the time of a thread that ended meanwhile is not
/// subtracted from the others.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    process: Process,
    seen: BTreeMap<u32, Thread>,
}

impl Meter {
    /// Takes the first reading.
    pub(crate) fn start(process: Process) -> anyhow::Result<Self> {
        let seen = process.threads()?;
        Ok(Self { process, seen })
    }

    pub(crate) const fn process(&self) -> &Process {
        &self.process
    }

    /// Returns the time used since the last reading, for each of `prefixes` by the threads whose names begin with it.
    pub(crate) fn spent<const N: usize>(&mut self, prefixes: [&str; N]) -> anyhow::Result<[Duration; N]> {
        let threads = self.process.threads()?;
        let sums = prefixes.map(|prefix| {
            let named = threads.iter().filter(|(_, thread)| thread.name.starts_with(prefix));
            named
                .map(|(number, thread)| {
                    let before = self.seen.get(number).map_or(Duration::ZERO, |seen| seen.cpu);
                    thread.cpu.saturating_sub(before)
                })
                .sum()
        });
        self.seen = threads;
        Ok(sums)
    }
}

/// Raises the limit of open files to the hard limit; fails if `needed` is more than that.
pub(crate) fn raise_open_files(needed: u64) -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).context("cannot raise the limit of open files")?;
    match limit.maximum {
        Some(maximum) if maximum < needed => {
            anyhow::bail!(
                "{needed} open files are needed, but the hard limit is {maximum}: raise it (ulimit -Hn) or use fewer --clients"
            )
        }
        Some(_) | None => Ok(()),
    }
}
