// SPDX-License-Identifier: Apache-2.0
//! What the program says about itself: the commit it was built from, completions for shells, and manual pages.

use std::io::Write as _;
use std::process::{Command, Stdio};

use distributary::telemetry::{BUILD, COMMIT, VERSION};

use crate::{fails, has, prints, ran};

const COMMANDS: &str = "bootstrap completions drain get health manual serve status validate wait log-level";

/// A program that is built after a commit on the same branch names that commit; a development build names none.
#[test]
fn the_commit_is_that_of_the_sources() {
    let root = env!("CARGO_MANIFEST_DIR");
    if std::env::var_os("DISTRIBUTARY_COMMIT").is_none() && !COMMIT.is_empty() {
        let (_, head, _) = ran(Command::new("git").args(["-C", root, "rev-parse", "HEAD"]));
        assert_eq!(COMMIT, head.trim());
    }
    match COMMIT.get(..12) {
        Some(short) => assert_eq!(BUILD, format!("{VERSION} ({short})")),
        None => assert_eq!(BUILD, VERSION),
    }
}

#[test]
fn shells_complete_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = prints(&["completions", shell]);
        for command in COMMANDS.split(' ') {
            has(&script, command);
        }
    }
    let script = prints(&["completions", "bash"]);
    let mut bash = Command::new("bash").args(["-n"]).stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success(), "bash reads it");
    has(&fails(2, &["completions", "tcsh"], "bash"), "zsh");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = std::env::temp_dir().join(format!("distributary-manual-{}", std::process::id()));
    assert_eq!(prints(&["manual", folder.to_str().unwrap()]), "");
    let page = |command: &str| std::fs::read_to_string(folder.join(format!("distributary-{command}.1"))).unwrap();
    for command in COMMANDS.split(' ') {
        has(&page(command), &format!(".TH distributary-{command} 1"));
    }
    has(&page("serve"), "\\-\\-upstream");
    std::fs::remove_dir_all(&folder).unwrap();
    fails(
        1,
        &["manual", "/dev/null/pages"],
        "cannot write manual pages to /dev/null/pages: ",
    );
}
