// SPDX-License-Identifier: Apache-2.0
//! Transcripts of the load tool as a process: what its help shows, what it says of mistakes, and how a gate ends.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_distributary-load");

/// The exit code, the output, and the errors.
fn said(words: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(PROGRAM).args(words).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The headings of a help text.
fn headings(help: &str) -> Vec<&str> {
    let lines = help
        .lines()
        .filter(|line| line.ends_with(':') && !line.starts_with(' '));
    lines.map(|line| line.trim_end_matches(':')).collect()
}

#[test]
fn help_shows_options_in_groups_with_examples() {
    let help = |words: &[&str]| {
        let (code, help, error) = said(words);
        assert_eq!((code, error.as_str()), (Some(0), ""), "{words:?}");
        help
    };
    assert_eq!(headings(&help(&["--help"])), ["Commands", "Options"]);
    let run = help(&["run", "--help"]);
    let groups = ["Which server", "Reports", "Examples"];
    assert_eq!(headings(&run), [&["Arguments", "Options"], &groups[..]].concat());
    assert!(run.contains("--set <KEY=VALUE>") && !run.contains("--node-id"), "{run}");
    assert_eq!(headings(&help(&["list", "--help"])), ["Options", "Examples"]);
    let dump = help(&["dump", "--help"]);
    assert!(dump.contains("--node-id <ID-{n}>") && !dump.contains("--set"), "{dump}");
}

#[test]
fn mistakes_of_a_letter_are_recognised() {
    for (words, says) in [
        (
            &["run", "stedy"][..],
            "there is no file or built-in scenario `stedy`; did you mean `steady`?",
        ),
        (
            &["run", "nowhere.yaml"],
            "there is no file or built-in scenario `nowhere.yaml`; `distributary-load list` lists the built-in ones",
        ),
        (
            &["explain", "p99_belw"],
            "no key is called `p99_belw`; did you mean `p99_below`?",
        ),
        (&["expain"], "a similar subcommand exists: 'explain'"),
        (&["run", "--sett", "a=1"], "a similar argument exists: '--set'"),
        (
            &["run", "--set", "clients.count"],
            "write a key and its value, such as clients.count=500",
        ),
    ] {
        let (code, out, error) = said(words);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{words:?}: {error}");
        assert!(error.contains(says), "{words:?}: {error}");
    }
}

/// All faults of a scenario file, each in a line with its place.
#[test]
fn a_scenario_file_is_checked_as_a_whole() {
    let path = file(
        "faults.yaml",
        "description: d\nworld: { cds: { count: 5, colour: red } }\nclients: { count: 9, groups: [{ kind: cluster }] }\n\
         phases: [{ name: join, do: { join: {} } }, { name: rest, do: { rest: soon } }]\n",
    );
    let (code, _, error) = said(&["run", &path]);
    assert_eq!(code, Some(2), "{error}");
    assert_eq!(
        error,
        format!(
            "distributary-load: {path}:2:27: unknown key `colour`, expected one of count, bytes, extras\n\
             {path}:3:39: unknown word `cluster`; did you mean `clusters`?\n\
             {path}:4:70: `soon` is not a time; write one such as 250ms, 30s, 5m or 1h\n"
        )
    );
}

/// A limit that a flag sets decides about the exit code, and a sentence says why.
#[test]
fn a_limit_fails_a_run() {
    let path = file(
        "short.yaml",
        "description: d\nworld: { cds: { count: 5, bytes: 200 } }\nclients: { count: 4, groups: [{ kind: clusters }] }\n\
         phases:\n  - { name: join, do: { join: {} } }\n  - { name: changes, do: { change: { kind: cds, pattern: one, times: 3 } } }\n",
    );
    let run = |limit: &str| {
        let set = format!("phases[].expect={{ {limit} }}");
        let (code, out, error) = said(&["run", &path, "--direct", "--quiet", "--set", &set]);
        assert_eq!(out, "");
        (code, error)
    };
    let (code, error) = run("messages_at_most: 12, bytes_at_most: 1GiB");
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let (code, error) = run("messages_at_most: 11");
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("FAILED   changes  messages to clients"), "{error}");
}

/// Every type passes a relay in every form, and comes over one stream. Each of 20 tenants gets what the rules give to its certificates.
#[test]
fn every_type_passes_a_relay() {
    let runs = ["ztunnels", "every-type", "tenants"]
        .map(|name| std::thread::spawn(move || said(&["run", name, "--set", "clients.count=40", "--quiet"])));
    for run in runs {
        let (code, _, error) = run.join().unwrap();
        assert_eq!(code, Some(0), "{error}");
    }
}
