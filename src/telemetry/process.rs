// SPDX-License-Identifier: Apache-2.0
//! The metrics of the process, under the names that all clients of Prometheus have for them, and of the program.
//!
//! Owns these names, and the reading of what the kernel tells. Decides nothing.

use std::fs::{metadata, read_dir, read_to_string};
use std::path::Path;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::labels::{Labels, register};

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit that the program was built from; empty if it was not known there.
pub const COMMIT: &str = env!("DISTRIBUTARY_COMMIT");
/// The version, and the beginning of the commit if it is known, as `--version` prints them.
pub const BUILD: &str = env!("DISTRIBUTARY_BUILD");

/// The metrics of the process. They change when they are read.
#[derive(Debug)]
pub(super) struct ProcessMetrics {
    cpu: Counter<f64, AtomicU64>,
    started: Gauge<f64, AtomicU64>,
    virtual_bytes: Gauge,
    resident_bytes: Gauge,
    descriptors: Gauge,
    descriptors_max: Gauge,
}

/// What the kernel tells of a process.
#[derive(Debug, PartialEq)]
struct Usage {
    cpu_seconds: f64,
    /// Seconds since 1970.
    started: f64,
    virtual_bytes: u64,
    resident_bytes: u64,
    descriptors: u64,
}

impl ProcessMetrics {
    /// Adds the metrics, unless the system does not tell them.
    #[rustfmt::skip]
    pub(super) fn register(registry: &mut Registry) -> Option<Self> {
        Usage::read(Path::new("/proc"))?;
        Some(Self {
            cpu: register(registry, "process_cpu_seconds", "Seconds of processor time that the process has used", Counter::default()),
            started: register(registry, "process_start_time_seconds", "When the process started, in seconds since 1970", Gauge::default()),
            virtual_bytes: register(registry, "process_virtual_memory_bytes", "Bytes of address space of the process", Gauge::default()),
            resident_bytes: register(registry, "process_resident_memory_bytes", "Bytes of the process in memory", Gauge::default()),
            descriptors: register(registry, "process_open_fds", "Open file descriptors of the process", Gauge::default()),
            descriptors_max: register(registry, "process_max_fds", "File descriptors that the process may have", Gauge::default()),
        })
    }

    /// Reads them.
    pub(super) fn read(&self) {
        let Some(usage) = Usage::read(Path::new("/proc")) else {
            return;
        };
        self.cpu.inc_by((usage.cpu_seconds - self.cpu.get()).max(0.0));
        self.started.set(usage.started);
        self.virtual_bytes.set(shown(usage.virtual_bytes));
        self.resident_bytes.set(shown(usage.resident_bytes));
        self.descriptors.set(shown(usage.descriptors));
        // No limit at all is shown as the largest number.
        self.descriptors_max
            .set(getrlimit(Resource::Nofile).current.map_or(i64::MAX, shown));
    }
}

impl Usage {
    /// Reads what the kernel tells of this process in the file system at `root`.
    fn read(root: &Path) -> Option<Self> {
        let stat = read_to_string(root.join("self/stat")).ok()?;
        let system = read_to_string(root.join("stat")).ok()?;
        let booted = system.lines().find_map(|line| line.strip_prefix("btime "))?;
        // The name of the program may have any characters. After it, the third of all fields follows.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let seconds = |ticks: u64| ticks as f64 / clock_ticks_per_second() as f64;
        Some(Self {
            cpu_seconds: seconds(field(14)? + field(15)?),
            started: booted.trim().parse::<f64>().ok()? + seconds(field(22)?),
            virtual_bytes: field(23)?,
            resident_bytes: field(24)? * page_size() as u64,
            descriptors: descriptors(&root.join("self/fd"))?,
        })
    }
}

/// Counts the entries of the folder of descriptors. Linux says since 6.2 as its size how many there are.
fn descriptors(folder: &Path) -> Option<u64> {
    let listed = metadata(folder).ok()?.len();
    if listed > 0 {
        return Some(listed);
    }
    Some(read_dir(folder).ok()?.count() as u64)
}

fn shown(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Adds the metric whose labels say what the program is.
pub(super) fn register_build(own: &mut Registry) {
    let build: Family<Labels<2>, Gauge> = Family::default();
    let labels = [("version", VERSION.to_owned()), ("commit", COMMIT.to_owned())];
    build.get_or_create(&labels).set(1);
    drop(register(
        own,
        "build_info",
        "The program's version, and the commit it was built from",
        build,
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder in the place of `/proc`.
    fn system(name: &str, stat: &str) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("distributary-process-{name}-{}", std::process::id()));
        std::fs::create_dir_all(root.join("self")).unwrap();
        std::fs::write(root.join("self/stat"), stat).unwrap();
        std::fs::write(root.join("stat"), "cpu 1 2 3\nbtime 1700000000\nprocesses 7\n").unwrap();
        root
    }

    #[test]
    fn the_fields_are_those_that_the_kernel_documents() {
        let fields: Vec<String> = (4..=52).map(|number| (number * 100).to_string()).collect();
        let root = system("odd", &format!("17 (a) S (b) S {}\n", fields.join(" ")));
        std::fs::create_dir_all(root.join("self/fd")).unwrap();
        let usage = Usage::read(&root).unwrap();
        let ticks = clock_ticks_per_second() as f64;
        assert_eq!(usage.cpu_seconds, 2900.0 / ticks);
        assert_eq!(usage.started, 1_700_000_000.0 + 2200.0 / ticks);
        assert_eq!(usage.virtual_bytes, 2300);
        assert_eq!(usage.resident_bytes, 2400 * page_size() as u64);
        std::fs::remove_dir_all(&root).unwrap();
        let root = system("torn", "17 (a) S 1 2 3\n");
        assert_eq!(Usage::read(&root), None);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn this_process_is_real() {
        let before = Usage::read(Path::new("/proc")).unwrap();
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        let usage = Usage::read(Path::new("/proc")).unwrap();
        assert!(before.descriptors > 2 && usage.cpu_seconds >= before.cpu_seconds);
        drop(file);
        #[expect(clippy::disallowed_methods, reason = "the kernel's clock")]
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let age = now.as_secs_f64() - usage.started;
        assert!((-2.0..86_400.0).contains(&age), "{age}");
        assert!(
            usage.virtual_bytes >= usage.resident_bytes && usage.resident_bytes > 1 << 20,
            "{usage:?}"
        );
    }
}
