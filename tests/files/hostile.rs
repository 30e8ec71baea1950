// SPDX-License-Identifier: Apache-2.0
//! Paths that are no regular files, files that are too large or cannot be read, and files that change while they are read.

use std::os::unix::fs::{PermissionsExt, symlink};

use distributary::upstream::FileFormat;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::*;

/// Whatever is in the directory, a look at it ends, and the good files count.
#[test]
fn what_is_no_file() {
    let folder = Folder::new();
    folder.write("good.yaml", &clusters(&["a"]));
    let mut file_set = file_set(&folder.0);
    look(&mut file_set);
    mknodat(CWD, folder.path("pipe.yaml"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    std::fs::create_dir(folder.path("folder.yaml")).unwrap();
    symlink("loop.yaml", folder.path("loop.yaml")).unwrap();
    symlink("nowhere", folder.path("nowhere.yaml")).unwrap();
    symlink("/dev/zero", folder.path("zero.yaml")).unwrap();
    let (there, found) = look(&mut file_set);
    assert_eq!(there, ["a/x"]);
    let mut said: Vec<_> = found
        .new_faults
        .iter()
        .map(|fault| fault.rsplit('/').next().unwrap().to_owned())
        .collect();
    said.sort();
    let begins = [
        "folder.yaml: not a regular file",
        "loop.yaml: ",
        "nowhere.yaml: No such file",
        "pipe.yaml: not a",
        "zero.yaml: not a",
    ];
    for (said, begin) in said.iter().zip(begins) {
        assert!(said.starts_with(begin), "{said}");
    }
    assert_eq!(said.len(), begins.len());
    for path in ["pipe.yaml", "loop.yaml", "zero.yaml"] {
        let mut alone = super::file_set(&folder.path(path));
        assert!(look(&mut alone).0.is_empty() && alone.faults().len() == 1, "{path}");
    }
}

/// Without permission the last content stays: of a file, of a directory that cannot be listed, of one that cannot be entered.
#[test]
fn what_may_not_be_read() {
    let folder = Folder::new();
    let file = folder.write("a.yaml", &clusters(&["a"]));
    let (mut all, mut one) = (file_set(&folder.0), file_set(&file));
    look(&mut all);
    look(&mut one);
    let mode = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    for (path, bits, usual) in [
        (&file, 0o000, 0o644),
        (&folder.0, 0o000, 0o755),
        (&folder.0, 0o600, 0o755),
    ] {
        mode(path, bits);
        let found = unprivileged(|| [look(&mut all), look(&mut one)]);
        mode(path, usual);
        for (there, found) in found {
            assert_eq!(there, ["a/x"], "{bits:o}");
            assert_eq!(found.new_faults.len(), 1, "{bits:o}: {found:?}");
            assert!(found.new_faults[0].contains("Permission denied"), "{bits:o}: {found:?}");
        }
        let found = unprivileged(|| [look(&mut all), look(&mut one)]);
        assert!(
            found.iter().all(|(_, found)| found.new_faults.is_empty()),
            "{bits:o}: {found:?}"
        );
        assert_eq!((all.faults().len(), one.faults().len()), (0, 0), "{bits:o}");
    }
}

/// Runs `work` without capabilities, because tests run as root in many places and root may read everything.
fn unprivileged<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    let thread = || {
        set_capabilities(None, sets).unwrap();
        work()
    };
    std::thread::scope(|scope| scope.spawn(thread).join().unwrap())
}

/// A file or a directory that is too large is not read, and the error names the limit.
#[test]
fn too_large() {
    let folder = Folder::new();
    folder.write("1.yaml", &clusters(&["a"]));
    let mut file_set = file_set(&folder.0);
    look(&mut file_set);
    let huge = std::fs::File::create(folder.path("2.yaml")).unwrap();
    huge.set_len(1 << 30).unwrap();
    let (there, found) = look(&mut file_set);
    assert_eq!(there, ["a/x"]);
    assert!(found.new_faults[0].contains("limits.upstream_message"), "{found:?}");
    let comment = "#".repeat(MIB - 150);
    folder.place("2.yaml", &format!("{comment}\n{}", clusters(&["b"])));
    assert_eq!(look(&mut file_set).0, ["a/x"], "the bound is for all files together");
    folder.remove("1.yaml");
    assert_eq!(look(&mut file_set).0, ["b/x"]);
}

/// Bombs end in an error within a short time.
#[test]
fn bombs() {
    let aliases: String = (1..30)
        .map(|at| format!("a{at}: &a{at} [*a{0}, *a{0}, *a{0}, *a{0}]\n", at - 1))
        .collect();
    let deep = |open: &str| open.repeat(100_000);
    for (text, format) in [
        (format!("a0: &a0 [x, x]\n{aliases}"), FileFormat::Yaml),
        (deep("["), FileFormat::Yaml),
        (deep("["), FileFormat::Json),
        (deep("{\"a\":"), FileFormat::Json),
        (deep("- "), FileFormat::Yaml),
        (deep("resources {"), FileFormat::Text),
        ("&a [*a]".to_owned(), FileFormat::Yaml),
    ] {
        assert!(parse(&text, format).is_err(), "{:.40}", text);
    }
    let nested: Vec<u8> = (0..100_000).fold(Vec::new(), |mut bytes, _| {
        bytes.extend([0x12, 0x7f]);
        bytes
    });
    assert!(parse_with(&nested, FileFormat::Binary, &dictionary()).is_err());
}

/// Many files are one state like any other, and an unchanged file is not read again.
#[test]
fn many_files() {
    const FILES: usize = 2_000;
    let folder = Folder::new();
    for at in 0..FILES {
        folder.write(&format!("{at}.yaml"), &clusters(&[&format!("c{at}")]));
    }
    let mut file_set = file_set(&folder.0);
    assert_eq!(look(&mut file_set).0.len(), FILES);
    folder.place("7.yaml", &clusters(&["c7/new"]));
    let (there, found) = look(&mut file_set);
    assert!(found.changed && there.contains(&"c7/new".to_owned()));
    folder.remove("8.yaml");
    assert_eq!(look(&mut file_set).0.len(), FILES - 1);
    // Each fault is reported once, however many there are.
    for at in 0..FILES {
        folder.write(&format!("{at}.yaml"), "broken: [");
    }
    let found = file_set.look(now());
    assert_eq!((found.new_faults.len(), found.changed), (FILES, false));
    assert_eq!(file_set.look(now()).new_faults.len(), 0);
}

/// How long a directory of 100,000 files takes: at first, when nothing changes, and when one file does.
#[test]
#[ignore = "half a minute; prints times and memory"]
fn a_hundred_thousand_files() {
    const FILES: usize = 100_000;
    let folder = Folder::new();
    for at in 0..FILES {
        folder.write(&format!("{at}.yaml"), &clusters(&[&format!("c{at}")]));
    }
    // The relay does not trust time stamps that are very new.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let mut file_set = FileSet::new(&folder.0, 64 * MIB, dictionary());
    let before = resident();
    let mut look = |what: &str, changes: bool| {
        let begun = now();
        let found = file_set.look(begun);
        println!("{what}: {:?}", begun.elapsed());
        assert_eq!(
            (found.changed, file_set.faults().len(), file_set.files()),
            (changes, 0, FILES)
        );
        (file_set.content().len(), begun.elapsed())
    };
    assert_eq!(look("all are read", true).0, FILES);
    println!("memory: {} bytes for each", (resident() - before) / FILES);
    let (_, quiet) = look("nothing has changed", false);
    folder.place("7.yaml", &clusters(&["c7/new", "more"]));
    let (there, one) = look("one has changed", true);
    assert_eq!(there, FILES + 1);
    assert!(quiet < LOOK && one < LOOK, "{quiet:?} {one:?}");
}

/// How long a look at many files that were read before may take, also in a build without optimization.
const LOOK: std::time::Duration = std::time::Duration::from_secs(20);

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// While two writers race, each look gets the whole content of one of them.
#[test]
fn two_writers_race() {
    let folder = shared(Folder::new());
    folder.place("c.yaml", &clusters(&["a/one"]));
    let writers: Vec<_> = ["one", "two"]
        .into_iter()
        .map(|word| {
            let folder = folder.clone();
            std::thread::spawn(move || {
                for at in 0..300 {
                    let from = folder.write(
                        &format!(".{word}"),
                        &clusters(&[&format!("a/{word}"), &format!("b{at}/{word}")]),
                    );
                    std::fs::rename(from, folder.path("c.yaml")).unwrap();
                }
            })
        })
        .collect();
    let mut file_set = file_set(&folder.path("c.yaml"));
    while writers.iter().any(|writer| !writer.is_finished()) {
        let (there, _) = look(&mut file_set);
        assert!(there[0] == "a/one" || there[0] == "a/two", "{there:?}");
        assert!(
            file_set.faults().iter().all(|fault| fault.contains("changes while")),
            "{:?}",
            file_set.faults()
        );
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let (there, _) = look(&mut file_set);
    assert!(there[1].starts_with("b299/"), "{there:?}");
}

/// I-05: when a file is rewritten in place again and again, each look gets one content as a whole, or reports that it changes.
#[test]
fn what_changes_while_it_is_read() {
    let folder = shared(Folder::new());
    // No proper part of it is valid JSON, and reading it takes a while.
    let content = |word: &str| {
        let names: Vec<String> = (0..2000).map(|at| format!("{{\"@type\":\"type.googleapis.com/envoy.config.cluster.v3.Cluster\",\"name\":\"c{at}\",\"altStatName\":\"{word}\"}}")).collect();
        format!("[{}]", names.join(","))
    };
    let contents = ["one", "two"].map(content);
    let path = folder.write("c.json", &contents[0]);
    let mut file_set = file_set(&path);
    assert_eq!(look(&mut file_set).0.len(), 2000);
    let writer = std::thread::spawn({
        move || {
            for at in 0..200 {
                std::fs::write(&path, &contents[at % 2]).unwrap();
            }
        }
    });
    while !writer.is_finished() {
        let (there, _) = look(&mut file_set);
        let words: std::collections::BTreeSet<&str> =
            there.iter().filter_map(|one| Some(one.split_once('/')?.1)).collect();
        assert_eq!((there.len(), words.len()), (2000, 1), "{words:?}");
    }
    writer.join().unwrap();
    let (there, _) = look(&mut file_set);
    assert_eq!(
        (there[0].as_str(), file_set.faults().len()),
        ("c0/two", 0),
        "{:?}",
        file_set.faults()
    );
}
