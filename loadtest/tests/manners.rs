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
    let groups = [
        "What is played",
        "Which server",
        "Who the clients are",
        "Machines and threads",
        "Reports and gates",
    ];
    let whole = help(&["--help"]);
    assert_eq!(
        headings(&whole),
        [&["Commands", "Options"], &groups[..], &["Examples"]].concat()
    );
    assert!(whole.contains("  $ distributary-load list "), "{whole}");
    assert_eq!(
        headings(&help(&["run", "--help"]))[2..],
        [&groups[..], &["Examples"]].concat()
    );
    // What a command does not use is not shown, although it is understood.
    assert_eq!(headings(&help(&["list", "--help"])), ["Options", "Examples"]);
    let merge = help(&["merge", "--help"]);
    assert_eq!(
        headings(&merge),
        ["Arguments", "Options", "Reports and gates", "Examples"]
    );
    assert!(
        merge.contains("--html <FILE>") && !merge.contains("--clients"),
        "{merge}"
    );
    assert_eq!(said(&["explain", "--clients", "5", "p99_below"]).0, Some(0));
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
        (&["--cliens", "5"], "a similar argument exists: '--clients'"),
        (
            &["--fail-if", "join-p98>100ms"],
            "there is no figure `join-p98`; did you mean `join-p99`?",
        ),
        (
            &["--fail-if", "zzzzzzz>1"],
            "there is no figure `zzzzzzz`; use one of length, clients, ",
        ),
        (
            &["--fail-if", "p99>100"],
            "`100` is not a time; write one such as 250ms, 30s, 5m or 1h",
        ),
        (
            &["--fail-if", "p99=100ms"],
            "write a figure, > or <, and a value, such as p99>100ms",
        ),
        (&["--fail-if", "deliveries<NaN"], "`NaN` is not a number"),
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
            "distributary-load: {path}:2:27: unknown key `colour`, expected one of count, bytes\n\
             {path}:3:39: unknown word `cluster`; did you mean `clusters`?\n\
             {path}:4:70: `soon` is not a time; write one such as 250ms, 30s, 5m or 1h\n"
        )
    );
}

/// A limit on a figure decides about the exit code, and a sentence says why; the record has it as an assertion.
#[test]
fn a_limit_fails_a_run() {
    let path = file(
        "short.yaml",
        "description: d\nworld: { cds: { count: 5, bytes: 200 } }\nclients: { count: 4, groups: [{ kind: clusters }] }\n\
         phases:\n  - { name: join, do: { join: {} } }\n  - { name: changes, do: { change: { kind: cds, pattern: one, times: 3 } } }\n",
    );
    let run = |limits: &[&str]| {
        let limits = limits.iter().flat_map(|limit| ["--fail-if", limit]);
        let words = ["run", &path, "--direct", "--quiet"].into_iter().chain(limits);
        let (code, out, error) = said(&words.collect::<Vec<_>>());
        assert_eq!(out, "");
        (code, error)
    };
    let (code, error) = run(&["p99>1h", "deliveries<12", "resident > 1GiB", "clients<4"]);
    assert_eq!(code, Some(1), "{error}");
    assert!(
        error.ends_with("--fail-if 'resident > 1GiB': no phase has this figure\n"),
        "{error}"
    );
    let (code, error) = run(&["p99>1h", "deliveries<12", "clients<4"]);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let (code, error) = run(&["deliveries>11", "p99>1us"]);
    assert_eq!(code, Some(1), "{error}");
    assert!(
        error.contains("--fail-if 'deliveries>11': deliveries of phase `changes` is 12\n"),
        "{error}"
    );
    assert!(
        error.contains("--fail-if 'p99>1us': p99 of phase `changes` is "),
        "{error}"
    );
    assert!(error.contains("p99, as --fail-if says"), "{error}");
}

/// Every type passes a relay in every form, and comes over one stream. Each of 20 tenants gets what the rules give to its certificates.
#[test]
fn every_type_passes_a_relay() {
    let runs = ["ztunnels", "every-type", "tenants"]
        .map(|name| std::thread::spawn(move || said(&["run", name, "--clients", "40", "--quiet"])));
    for run in runs {
        let (code, _, error) = run.join().unwrap();
        assert_eq!(code, Some(0), "{error}");
    }
}
