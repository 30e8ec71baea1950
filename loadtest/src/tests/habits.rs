//! Tests of the command line itself: units of flags, lists, and flags that do not go together.

use std::time::Duration;

use clap::{CommandFactory as _, Parser as _};

use crate::command::arguments::{Arguments, Command};
use crate::measure::quantities::{Size, Time};
use crate::story::file::BUILT_IN;

fn parsed(words: &str) -> Result<Arguments, String> {
    let words = ["distributary-load"].into_iter().chain(words.split_whitespace());
    Arguments::try_parse_from(words).map_err(|error| error.to_string())
}

#[test]
fn amounts_have_units() {
    for (text, millis) in [
        ("250ms", 250.0),
        ("30s", 3e4),
        ("1.5m", 9e4),
        ("1h", 3.6e6),
        ("50us", 0.05),
    ] {
        let Time(time) = text.parse().unwrap();
        assert!((time.as_secs_f64() * 1e3 - millis).abs() < 1e-9, "{text}: {time:?}");
    }
    for (text, bytes) in [
        ("4096", 4096),
        ("512B", 512),
        ("64KiB", 65_536),
        ("1.5MiB", 1_572_864),
        ("1GiB", 1 << 30),
    ] {
        assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
    }
    for wrong in ["", "3", "s", "3 weeks", "-1s", "3S"] {
        let error = wrong.parse::<Time>().unwrap_err();
        assert!(error.contains("write one such as 250ms, 30s, 5m or 1h"), "{error}");
    }
    for wrong in ["", "KiB", "1KB", "1 kib", "-1", "1e3"] {
        let error = wrong.parse::<Size>().unwrap_err();
        assert!(
            error.contains("write one such as 4096, 512B, 64KiB or 1.5MiB"),
            "{error}"
        );
    }
}

#[test]
fn flags_take_units() {
    let given = parsed("--bytes 512B --idle 3m --deadline 1.5 --seconds 2h").unwrap();
    assert_eq!((given.bytes, given.idle), (512, Duration::from_secs(180)));
    assert_eq!(
        (given.deadline, given.seconds),
        (Duration::from_millis(1500), Some(Duration::from_secs(7200)))
    );
    let given = parsed("").unwrap();
    assert_eq!(
        (given.bytes, given.idle, given.deadline),
        (1024, Duration::from_secs(3), Duration::from_secs(60))
    );
    for (wrong, says) in [
        ("--bytes 1GiB", "more than 67108864 (64 MiB)"),
        ("--bytes 1kB", "is not a size"),
        ("--idle 3x", "or a number of seconds"),
        ("--idle -1", "is not a time"),
    ] {
        let error = parsed(wrong).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn built_in_scenarios_are_listed_a_line_each() {
    let list = crate::story::listing().unwrap();
    let mut lines = list.lines();
    assert_eq!(
        lines.next().unwrap().split_whitespace().take(4).collect::<Vec<_>>(),
        ["scenario", "clients", "length", "needs"]
    );
    let names: Vec<_> = lines.map(|line| line.split_once(' ').unwrap().0).collect();
    assert_eq!(names, BUILT_IN.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let said = |name: &str| {
        let line = list.lines().find(|line| line.starts_with(name)).unwrap();
        line.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        said("churn "),
        [
            "churn",
            "300",
            "≥ 13.0 s",
            "control plane of the tool",
            "Clients join, resources change."
        ]
    );
    assert_eq!(said("any-server ")[1..4], ["300", "≥ 30.0 s", "any server"]);
    assert_eq!(
        said("chain ")[1..4],
        ["1000", "as it takes", "control plane of the tool, relay of the tool"]
    );
    assert!(said("growth ")[3].ends_with("13334 open files"), "{list}");
    assert!(matches!(parsed("list").unwrap().command, Some(Command::List)));
    assert!(matches!(
        parsed("explain").unwrap().command,
        Some(Command::Explain { key: None })
    ));
}

/// Flags are accepted by all commands, so an argument of a command must not share the name of a flag of another type.
#[test]
fn arguments_of_commands_have_names_of_their_own() {
    let command = Arguments::command();
    command.clone().debug_assert();
    let flags: Vec<_> = command.get_arguments().map(|flag| flag.get_id().clone()).collect();
    for subcommand in command.get_subcommands() {
        for argument in subcommand.get_arguments() {
            // The scenario is a text in both.
            let id = argument.get_id();
            let own = !flags.contains(id) || (subcommand.get_name(), id.as_str()) == ("run", "scenario");
            assert!(own, "{} {id}", subcommand.get_name());
        }
    }
    for words in [
        "run churn",
        "explain p99_below",
        "merge a.json b.json",
        "completions zsh",
        "manual x",
    ] {
        parsed(words).unwrap_or_else(|error| panic!("{words}: {error}"));
    }
}

#[test]
fn a_gate_needs_two_records() {
    parsed("--compare a b --fail-above 1.2 --metric p50").unwrap();
    for (wrong, says) in [
        ("--fail-above 1.2", "--compare"),
        ("--compare a b --metric p50", "--fail-above"),
        ("--compare a b --fail-above 0", "positive number"),
        ("--compare a b --json -", "cannot be used with"),
    ] {
        let error = parsed(wrong).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn shells_and_man_know_every_flag() {
    let Some(Command::Completions(bash)) = parsed("completions bash").unwrap().command else {
        panic!("not the command");
    };
    let mut script = Vec::new();
    bash.run(Arguments::command(), &mut script).unwrap();
    let script = String::from_utf8(script).unwrap();
    let folder = crate::wire::folder::Folder::new().unwrap();
    let words = format!("manual {}", folder.0.display());
    let Some(Command::Manual(manual)) = parsed(&words).unwrap().command else {
        panic!("not the command");
    };
    manual.run(Arguments::command(), &[]).unwrap();
    let page = std::fs::read_to_string(folder.0.join("distributary-load.1")).unwrap();
    for argument in Arguments::command().get_arguments() {
        let Some(long) = argument.get_long() else { continue };
        assert!(script.contains(&format!("--{long}")), "{long}");
        assert!(page.contains(&format!("\\-\\-{}", long.replace('-', "\\-"))), "{long}");
    }
}

/// In a text of help, clap takes `{n}` for the end of a line.
#[test]
fn help_shows_how_the_number_of_a_client_is_written() {
    let command = Arguments::command();
    for argument in command.get_arguments() {
        let texts = [argument.get_help(), argument.get_long_help()];
        assert!(
            !texts.into_iter().flatten().any(|it| it.to_string().contains("{n}")),
            "{}",
            argument.get_id()
        );
    }
    let help = parsed("--help").unwrap_err();
    assert!(help.contains("--node-id <ID-{n}>"), "{help}");
}

#[test]
fn the_version_names_the_commit() {
    let error = parsed("--version").unwrap_err();
    assert_eq!(error, format!("distributary-load {}\n", distributary::telemetry::BUILD));
}
