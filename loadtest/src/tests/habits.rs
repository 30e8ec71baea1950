// SPDX-License-Identifier: Apache-2.0
//! Tests of the command line itself: units, lists, and which flags a command has.

use clap::{CommandFactory as _, Parser as _};

use crate::command::arguments::{Command, Program};
use crate::measure::quantities::{Size, Time};
use crate::story::file::BUILT_IN;
use crate::story::keys::Key;

fn parsed(words: &str) -> Result<Program, String> {
    let words = ["distributary-load"].into_iter().chain(words.split_whitespace());
    Program::try_parse_from(words).map_err(|error| error.to_string())
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
fn built_in_scenarios_are_listed_a_line_each() {
    let list = crate::story::listing().unwrap();
    let mut lines = list.lines();
    assert_eq!(
        lines.next().unwrap().split_whitespace().take(2).collect::<Vec<_>>(),
        ["scenario", "clients"]
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
    assert_eq!(said("churn "), ["churn", "300", "Clients join, resources change."]);
    assert!(matches!(parsed("list").unwrap().command, Some(Command::List)));
    assert!(matches!(
        parsed("explain").unwrap().command,
        Some(Command::Explain { key: None })
    ));
}

/// A command has the flags that it uses, and no other.
#[test]
fn each_command_has_its_own_flags() {
    let command = Program::command();
    command.clone().debug_assert();
    let flags = |name: &str| {
        let command = command.find_subcommand(name).unwrap();
        command
            .get_arguments()
            .filter_map(|flag| flag.get_long())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        command.get_arguments().filter(|flag| flag.get_long().is_some()).count(),
        0
    );
    assert_eq!(flags("list"), [""; 0]);
    assert!(!flags("dump").contains(&"json") && flags("dump").contains(&"node-id"));
    // What is a key of a scenario is no flag; these mean something else.
    let keys: Vec<_> = Key::all().iter().map(|key| key.name.replace('_', "-")).collect();
    let mut both = flags("run");
    both.retain(|flag| keys.iter().any(|key| key == flag));
    assert_eq!(both, ["name", "control-plane", "quiet"]);
    for words in ["run churn", "explain p99_below", "completions zsh", "manual x", ""] {
        parsed(words).unwrap_or_else(|error| panic!("{words}: {error}"));
    }
    for wrong in ["--clients 5", "run --clients 5", "list --set a=1", "dump --output x"] {
        assert!(parsed(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn shells_and_man_know_every_flag() {
    let Some(Command::Completions(bash)) = parsed("completions bash").unwrap().command else {
        panic!("not the command");
    };
    let mut script = Vec::new();
    bash.run(Program::command(), &mut script).unwrap();
    let script = String::from_utf8(script).unwrap();
    let folder = crate::wire::folder::Folder::new().unwrap();
    let words = format!("manual {}", folder.0.display());
    let Some(Command::Manual(manual)) = parsed(&words).unwrap().command else {
        panic!("not the command");
    };
    manual.run(Program::command(), &[]).unwrap();
    let page = std::fs::read_to_string(folder.0.join("distributary-load.1")).unwrap();
    assert!(page.contains("distributary\\-load\\-run"), "{page}");
    for argument in Program::command().find_subcommand("run").unwrap().get_arguments() {
        let Some(long) = argument.get_long() else { continue };
        assert!(script.contains(&format!("--{long}")), "{long}");
    }
}

/// In a text of help, clap takes `{n}` for the end of a line.
#[test]
fn help_shows_how_the_number_of_a_client_is_written() {
    let command = Program::command();
    for argument in command.get_subcommands().flat_map(|command| command.get_arguments()) {
        let texts = [argument.get_help(), argument.get_long_help()];
        assert!(
            !texts.into_iter().flatten().any(|it| it.to_string().contains("{n}")),
            "{}",
            argument.get_id()
        );
    }
    let help = parsed("dump --help").unwrap_err();
    assert!(help.contains("--node-id <ID-{n}>"), "{help}");
}

#[test]
fn the_version_names_the_commit() {
    let error = parsed("--version").unwrap_err();
    assert_eq!(error, format!("distributary-load {}\n", distributary::telemetry::BUILD));
}
