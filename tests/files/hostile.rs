//! What is no file, or more than one can bear.

use std::os::unix::fs::{PermissionsExt, symlink};

use distributary::upstream::Format;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

/// Whatever lies there, a look at it ends, and the good files count.
#[test]
fn what_is_no_file() {
    let folder = Folder::new();
    folder.write("good.yaml", &clusters(&["a"]));
    let mut shelf = shelf(&folder.0);
    look(&mut shelf);
    mknodat(CWD, folder.path("pipe.yaml"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    std::fs::create_dir(folder.path("folder.yaml")).unwrap();
    symlink("loop.yaml", folder.path("loop.yaml")).unwrap();
    symlink("nowhere", folder.path("nowhere.yaml")).unwrap();
    symlink("/dev/zero", folder.path("zero.yaml")).unwrap();
    let (there, found) = look(&mut shelf);
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
        let mut alone = super::shelf(&folder.path(path));
        assert!(look(&mut alone).0.is_empty() && alone.faults().len() == 1, "{path}");
    }
}

/// Without permission what was there stays.
#[test]
fn what_may_not_be_read() {
    if rustix_is_root() {
        return;
    }
    let folder = Folder::new();
    folder.write("a.yaml", &clusters(&["a"]));
    let mut shelf = shelf(&folder.0);
    look(&mut shelf);
    let mode = |mode| std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o000);
    let (there, found) = look(&mut shelf);
    mode(0o755);
    assert_eq!((there, found.new_faults.len()), (vec!["a/x".to_owned()], 1));
}

/// Who may do everything is not kept from reading.
fn rustix_is_root() -> bool {
    let folder = Folder::new();
    let file = folder.write("x", "");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    std::fs::read(file).is_ok()
}

/// A file or a directory that is too large says which limit it exceeds, and is not read.
#[test]
fn too_large() {
    let folder = Folder::new();
    folder.write("1.yaml", &clusters(&["a"]));
    let mut shelf = shelf(&folder.0);
    look(&mut shelf);
    let huge = std::fs::File::create(folder.path("2.yaml")).unwrap();
    huge.set_len(1 << 30).unwrap();
    let (there, found) = look(&mut shelf);
    assert_eq!(there, ["a/x"]);
    assert!(found.new_faults[0].contains("limits.upstream_message"), "{found:?}");
    let comment = "#".repeat(MIB - 150);
    folder.place("2.yaml", &format!("{comment}\n{}", clusters(&["b"])));
    assert_eq!(look(&mut shelf).0, ["a/x"], "the bound is for all files together");
    folder.remove("1.yaml");
    assert_eq!(look(&mut shelf).0, ["b/x"]);
}

/// Bombs end in a fault, soon.
#[test]
fn bombs() {
    let aliases: String = (1..30)
        .map(|at| format!("a{at}: &a{at} [*a{0}, *a{0}, *a{0}, *a{0}]\n", at - 1))
        .collect();
    let deep = |open: &str| open.repeat(100_000);
    for (text, format) in [
        (format!("a0: &a0 [x, x]\n{aliases}"), Format::Yaml),
        (deep("["), Format::Yaml),
        (deep("["), Format::Json),
        (deep("{\"a\":"), Format::Json),
        (deep("- "), Format::Yaml),
        (deep("resources {"), Format::Text),
        ("&a [*a]".to_owned(), Format::Yaml),
    ] {
        assert!(parse(&text, format).is_err(), "{:.40}", text);
    }
    let nested: Vec<u8> = (0..100_000).fold(Vec::new(), |mut bytes, _| {
        bytes.extend([0x12, 0x7f]);
        bytes
    });
    assert!(parse_with(&nested, Format::Binary, &dictionary()).is_err());
}

/// Many files are one state like any other, and an unchanged one is not read again.
#[test]
fn many_files() {
    const FILES: usize = 2_000;
    let folder = Folder::new();
    for at in 0..FILES {
        folder.write(&format!("{at}.yaml"), &clusters(&[&format!("c{at}")]));
    }
    let mut shelf = shelf(&folder.0);
    assert_eq!(look(&mut shelf).0.len(), FILES);
    folder.place("7.yaml", &clusters(&["c7/new"]));
    let (there, found) = look(&mut shelf);
    assert!(found.changed && there.contains(&"c7/new".to_owned()));
    folder.remove("8.yaml");
    assert_eq!(look(&mut shelf).0.len(), FILES - 1);
}

/// Two writers that race leave one of their contents, whichever moment is looked at.
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
    let mut shelf = shelf(&folder.path("c.yaml"));
    while writers.iter().any(|writer| !writer.is_finished()) {
        let (there, _) = look(&mut shelf);
        assert!(there[0] == "a/one" || there[0] == "a/two", "{there:?}");
        assert!(
            shelf.faults().iter().all(|fault| fault.contains("changes while")),
            "{:?}",
            shelf.faults()
        );
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let (there, _) = look(&mut shelf);
    assert!(there[1].starts_with("b299/"), "{there:?}");
}
