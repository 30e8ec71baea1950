//! The memory of the process, and how much of it there may be.
//!
//! Reads both from the system. Decides nothing.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use crate::config::MemoryLimit;
use crate::downstream::Used;

/// The part of the limit of a cgroup that is the budget, in percent. The rest is for what the kernel counts as well: sockets, files.
const OUR_PART: usize = 80;
/// A limit of the first version of cgroups that is none.
const UNLIMITED: usize = 1 << 62;

/// Where the memory and the limits of the system are read.
#[derive(Debug)]
pub(super) struct Memory {
    root: PathBuf,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self {
            root: PathBuf::from("/"),
        }
    }

    /// Returns the bytes that the process uses now, and its budget; 0 means no budget. Both may change at any time. This reads
    /// some files that the kernel makes up, which takes a fraction of a millisecond.
    pub(super) fn used(&self, limit: MemoryLimit) -> Used {
        let max = match limit {
            MemoryLimit::Bytes(bytes) => bytes,
            MemoryLimit::Auto => self.limit_of_groups().map_or(0, |limit| limit / 100 * OUR_PART),
        };
        Used {
            used: self.resident().unwrap_or_default(),
            max,
        }
    }

    /// Returns the bytes that the process has for itself in memory, which are what the kernel cannot take back. What the allocator
    /// has not given back to the system is part of it.
    pub(super) fn resident(&self) -> Option<usize> {
        // Each field counts pages: all of the process, those in memory, and those in memory that are of files or shared.
        let pages = read_to_string(self.root.join("proc/self/statm")).ok()?;
        let mut pages = pages.split_ascii_whitespace().skip(1).map(str::parse::<usize>);
        let (resident, shared) = (pages.next()?.ok()?, pages.next()?.ok()?);
        resident.checked_sub(shared)?.checked_mul(rustix::param::page_size())
    }

    /// Returns the smallest limit of the process's cgroup and of those around it.
    fn limit_of_groups(&self) -> Option<usize> {
        let groups = read_to_string(self.root.join("proc/self/cgroup")).ok()?;
        groups.lines().filter_map(|line| self.limit_of_group(line)).min()
    }

    /// Reads a line of three parts: number, controllers, path. The second version of cgroups has no controllers there.
    fn limit_of_group(&self, line: &str) -> Option<usize> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let (base, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let base = self.root.join(base);
        let group = base.join(path.trim_start_matches('/'));
        // In a container the path may be that of the host, and only the outermost folder is there.
        let folders = group.ancestors().take_while(|folder| folder.starts_with(&base));
        folders.filter_map(|folder| limit(&folder.join(file))).min()
    }
}

fn limit(file: &Path) -> Option<usize> {
    let limit = read_to_string(file).ok()?.trim().parse().ok()?;
    (limit < UNLIMITED).then_some(limit)
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use super::*;

    const GIB: usize = 1 << 30;

    /// A system with these files.
    fn system(name: &str, files: &[(&str, &str)]) -> Memory {
        let root = std::env::temp_dir().join(format!("distributary-memory-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, text).unwrap();
        }
        Memory { root }
    }

    fn budget(memory: &Memory) -> usize {
        let budget = memory.used(MemoryLimit::Auto).max;
        std::fs::remove_dir_all(&memory.root).unwrap();
        budget
    }

    #[test]
    fn the_smallest_limit_around_the_process_counts() {
        let second = system(
            "second",
            &[
                ("proc/self/cgroup", "0::/pods/relay\n"),
                ("sys/fs/cgroup/pods/relay/memory.max", "max\n"),
                ("sys/fs/cgroup/pods/memory.max", "1073741824\n"),
                ("sys/fs/cgroup/memory.max", "2147483648\n"),
                ("sys/fs/memory.max", "1\n"),
            ],
        );
        assert_eq!(budget(&second), GIB / 100 * 80);
        let first = system(
            "first",
            &[
                ("proc/self/cgroup", "4:cpu,memory:/docker/x\n2:cpuset:/\n0::/\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n"),
                ("sys/fs/cgroup/memory.limit_in_bytes", "1\n"),
            ],
        );
        assert_eq!(budget(&first), GIB / 100 * 80);
    }

    #[test]
    fn without_a_limit_there_is_no_budget() {
        for (name, files) in [
            ("none", &[("proc/self/statm", "1 2 x\n")][..]),
            (
                "max",
                &[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "max\n")],
            ),
            (
                "huge",
                &[
                    ("proc/self/cgroup", "4:memory:/x\n"),
                    ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n"),
                ],
            ),
            (
                "bad",
                &[
                    ("proc/self/cgroup", "0:/\nx\n\n0::/../..\n"),
                    ("sys/fs/cgroup/memory.max", "\n"),
                ],
            ),
        ] {
            assert_eq!(budget(&system(name, files)), 0, "{name}");
        }
    }

    /// A limit that changes, goes and comes counts from the next look on.
    #[test]
    fn the_limit_is_read_again() {
        let memory = system(
            "again",
            &[
                ("proc/self/cgroup", "0::/\n"),
                ("proc/self/statm", "9000 1024 512 300 0 700 0\n"),
            ],
        );
        let file = memory.root.join("sys/fs/cgroup/memory.max");
        create_dir_all(file.parent().unwrap()).unwrap();
        for (limit, budget) in [("100000\n", 80_000), ("max\n", 0), ("0\n", 0), ("200000", 160_000)] {
            write(&file, limit).unwrap();
            let Used { used, max } = memory.used(MemoryLimit::Auto);
            assert_eq!((used, max), (512 * rustix::param::page_size(), budget), "{limit}");
        }
        assert_eq!(budget(&memory), 160_000);
    }

    #[test]
    fn this_process_uses_memory() {
        let memory = Memory::new();
        let Used { used, max } = memory.used(MemoryLimit::Bytes(7));
        assert!(used > 100_000 && max == 7, "{used}");
    }
}
