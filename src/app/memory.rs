// SPDX-License-Identifier: Apache-2.0
//! The memory of the process, and how much of it there may be.
//!
//! Reads both from the system. Decides nothing.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use crate::config::MemoryLimit;
use crate::downstream::Used;

/// The part of a limit that is the budget, in percent. The rest is for what counts as well: sockets and files in a cgroup, other
/// programs on the machine.
const OUR_PART: usize = 80;
/// The same for the limits of the process. Beyond them it ends, so the rest is for what it takes from one look to the next.
const RESERVED_PART: usize = 70;
/// A limit of the first version of cgroups that is none.
const UNLIMITED: usize = 1 << 62;

/// Where the memory and the limits of the system are read.
#[derive(Debug)]
pub(super) struct Memory {
    root: PathBuf,
}

/// What the kernel tells of the memory of the process, in bytes.
#[derive(Clone, Copy, Debug)]
struct MemoryPages {
    /// All of its address space.
    space: usize,
    /// What it has for itself in memory: the kernel cannot take it back. What the allocator has not given back is part of it.
    resident: usize,
    /// Private memory that can be written, in memory or not.
    data: usize,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self {
            root: PathBuf::from("/"),
        }
    }

    /// Whether the memory of the process can be read.
    pub(super) fn is_known(&self) -> bool {
        self.pages().is_some()
    }

    /// Returns the bytes that the process uses now, and its budget; 0 means no budget. Of several limits, that one counts which is
    /// nearest. All may change at any time. This reads some files that the kernel makes up, which takes a fraction of a millisecond.
    pub(super) fn used(&self, limit: MemoryLimit) -> Used {
        let pages = self.pages();
        let used = pages.map_or(0, |pages| pages.resident);
        match limit {
            MemoryLimit::Bytes(max) => Used { used, max },
            MemoryLimit::Auto => self.nearest(pages).unwrap_or(Used { used, max: 0 }),
        }
    }

    fn nearest(&self, pages: Option<MemoryPages>) -> Option<Used> {
        let resident = self.limit_of_groups().into_iter().chain(self.machine()).min();
        let [data, space] = self.limits_of_process();
        // For the limits of the process counts what is reserved, resident or not.
        let limits = [
            (resident, pages.map(|pages| pages.resident), OUR_PART),
            (data, pages.map(|pages| pages.data), RESERVED_PART),
            (space, pages.map(|pages| pages.space), RESERVED_PART),
        ];
        let limits = limits.into_iter().filter_map(|(limit, used, part)| {
            Some(Used {
                used: used.unwrap_or_default(),
                max: limit? / 100 * part,
            })
        });
        limits.max_by(|one, other| {
            let cross = |one: &Used, other: &Used| one.used.saturating_mul(other.max.max(1));
            cross(one, other).cmp(&cross(other, one)).then(other.max.cmp(&one.max))
        })
    }

    fn pages(&self) -> Option<MemoryPages> {
        let counts = read_to_string(self.root.join("proc/self/statm")).ok()?;
        let bytes = |count: &str| count.parse::<usize>().ok()?.checked_mul(rustix::param::page_size());
        let counts: Vec<usize> = counts.split_ascii_whitespace().map_while(bytes).collect();
        // The third one is what belongs to files or is shared.
        let [space, resident, shared, _, _, data, ..] = *counts else {
            return None;
        };
        Some(MemoryPages {
            space,
            resident: resident.checked_sub(shared)?,
            data,
        })
    }

    /// Returns the limits of the process itself: of its data (RLIMIT_DATA), and of its address space (RLIMIT_AS).
    fn limits_of_process(&self) -> [Option<usize>; 2] {
        let limits = read_to_string(self.root.join("proc/self/limits")).unwrap_or_default();
        // Each line has a name, the soft limit, the hard limit, and the unit.
        ["Max data size", "Max address space"].map(|name| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()?.parse().ok()
        })
    }

    /// Returns how much memory the machine has.
    fn machine(&self) -> Option<usize> {
        let told = read_to_string(self.root.join("proc/meminfo")).ok()?;
        let total = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        total
            .trim()
            .strip_suffix("kB")?
            .trim()
            .parse::<usize>()
            .ok()?
            .checked_mul(1024)
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

    /// The limits of the process and the memory of the machine count as the limit of a cgroup does: the nearest.
    #[test]
    fn the_nearest_limit_of_the_system_counts() {
        const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max data size             DATA            unlimited            bytes     \n\
            Max stack size            8388608              unlimited            bytes     \n\
            Max address space         SPACE            unlimited            bytes     \n";
        let page = rustix::param::page_size();
        for (data, space, group, nearest, part, used) in [
            ("unlimited", "unlimited", "max", 8 * GIB, 80, 200),
            ("1073741824", "unlimited", "max", GIB, 70, 700),
            ("1073741824", "unlimited", "2147483648", GIB, 70, 700),
            ("1073741824", "unlimited", "1048576", 1 << 20, 80, 200),
            ("2147483648", "1073741824", "max", GIB, 70, 1300),
            ("1099511627776", "unlimited", "17179869184", 8 * GIB, 80, 200),
        ] {
            let limits = LIMITS.replace("DATA", data).replace("SPACE", space);
            let memory = system(
                "process",
                &[
                    ("proc/self/limits", limits.as_str()),
                    ("proc/self/statm", "1300 500 300 90 0 700 0\n"),
                    ("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:  1 kB\n"),
                    ("proc/self/cgroup", "0::/\n"),
                    ("sys/fs/cgroup/memory.max", group),
                ],
            );
            let counted = memory.used(MemoryLimit::Auto);
            let expected = Used {
                used: used * page,
                max: nearest / 100 * part,
            };
            assert_eq!(counted, expected, "{data} {space} {group}");
            budget(&memory);
        }
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
