// SPDX-License-Identifier: Apache-2.0
//! What the program says about itself: the commit it was built from, completions for shells, and manual pages.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use distributary::telemetry::{BUILD, COMMIT, VERSION};

use crate::output;

const COMMANDS: [&str; 10] = [
    "bootstrap",
    "completions",
    "drain",
    "get",
    "health",
    "manual",
    "serve",
    "status",
    "validate",
    "wait",
];

/// A program that is built after a commit on the same branch names that commit; a development build names none.
#[test]
fn the_commit_is_that_of_the_sources() {
    let root = env!("CARGO_MANIFEST_DIR");
    if std::env::var_os("DISTRIBUTARY_COMMIT").is_none() && !COMMIT.is_empty() {
        let head = Command::new("git")
            .args(["-C", root, "rev-parse", "HEAD"])
            .output()
            .unwrap();
        assert_eq!(COMMIT, String::from_utf8(head.stdout).unwrap().trim());
    }
    match COMMIT.get(..12) {
        Some(short) => assert_eq!(BUILD, format!("{VERSION} ({short})")),
        None => assert_eq!(BUILD, VERSION),
    }
}

#[test]
fn shells_complete_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, error) = output(&["completions", shell]);
        assert_eq!((code, error.as_str()), (Some(0), ""), "{shell}");
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
        assert!(script.contains("log-level"), "{shell}");
    }
    let (_, script, _) = output(&["completions", "bash"]);
    let mut bash = Command::new("bash").args(["-n"]).stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success(), "bash reads it");
    let (code, _, error) = output(&["completions", "tcsh"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("bash") && error.contains("zsh"), "{error}");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = std::env::temp_dir().join(format!("distributary-manual-{}", std::process::id()));
    let (code, out, error) = output(&["manual", folder.to_str().unwrap()]);
    assert_eq!((code, out.as_str(), error.as_str()), (Some(0), "", ""));
    let files = std::fs::read_dir(&folder).unwrap();
    let pages: BTreeSet<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    for command in COMMANDS {
        let name = format!("distributary-{command}.1");
        assert!(pages.contains(&name), "{pages:?}");
        let page = std::fs::read_to_string(folder.join(&name)).unwrap();
        assert!(page.contains(&format!(".TH distributary-{command} 1")), "{page:.300}");
    }
    let page = std::fs::read_to_string(folder.join("distributary-serve.1")).unwrap();
    assert!(page.contains("\\-\\-upstream"), "{page}");
    std::fs::remove_dir_all(&folder).unwrap();
    let (code, _, error) = output(&["manual", "/dev/null/pages"]);
    assert_eq!(code, Some(1));
    assert!(
        error.starts_with("cannot write manual pages to /dev/null/pages: "),
        "{error}"
    );
}
