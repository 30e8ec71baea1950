//! What the kernel says about a process: time on a processor and memory. Linux only, from `/proc`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A process, or those of its threads whose names begin with some text.
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

    /// Time on a processor, summed over the threads whose names begin with `prefix`.
    pub(crate) fn cpu(&self, prefix: &str) -> anyhow::Result<Duration> {
        let mut sum = Duration::ZERO;
        let tasks = fs::read_dir(self.folder.join("task"))
            .with_context(|| format!("cannot read the threads of {}", self.folder.display()))?;
        for task in tasks {
            let task = task?.path();
            // A thread may end between the two look-ups.
            let (Ok(name), Ok(times)) = (
                fs::read_to_string(task.join("comm")),
                fs::read_to_string(task.join("schedstat")),
            ) else {
                continue;
            };
            if name.starts_with(prefix) {
                let nanos = times.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
                sum += Duration::from_nanos(nanos.context("schedstat has no figures in this kernel")?);
            }
        }
        Ok(sum)
    }

    /// Private memory that is resident now.
    pub(crate) fn resident_bytes(&self) -> anyhow::Result<u64> {
        self.status("RssAnon:")
    }

    /// The most memory that ever was resident, shared pages included.
    pub(crate) fn peak_bytes(&self) -> anyhow::Result<u64> {
        self.status("VmHWM:")
    }

    fn status(&self, key: &str) -> anyhow::Result<u64> {
        let status = fs::read_to_string(self.folder.join("status"))
            .with_context(|| format!("cannot read the memory of {}", self.folder.display()))?;
        let kib = status.lines().find_map(|line| {
            let value = line.strip_prefix(key)?;
            value.split_whitespace().next()?.parse::<u64>().ok()
        });
        Ok(kib.with_context(|| format!("the kernel does not tell {key}"))? * 1024)
    }
}

/// Raises the limit of open files as far as the system lets us, and fails when `needed` is still more.
pub(crate) fn raise_open_files(needed: u64) -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).context("cannot raise the limit of open files")?;
    match limit.maximum {
        Some(maximum) if maximum < needed => {
            anyhow::bail!("{needed} open files are needed but the hard limit is {maximum}: use fewer --clients")
        }
        Some(_) | None => Ok(()),
    }
}
