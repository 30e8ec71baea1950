// SPDX-License-Identifier: Apache-2.0
//! Configurations: whatever the text, the check ends; each problem says where it is; a configuration without problems can be used,
//! and is the same each time.

use distributary::config::{Config, ConfigError, Flags};

/// A bootstrap in a file of its own is another target; here no file is looked at that never ends.
const ENDLESS: [&[u8]; 2] = [b"/dev", b"/proc"];

pub(crate) fn run(text: &[u8]) {
    if ENDLESS
        .iter()
        .any(|path| text.windows(path.len()).any(|part| part == *path))
    {
        return;
    }
    let flags = Flags::default();
    match Config::check(text, "f", &flags) {
        Ok((config, problems)) => {
            problems.iter().for_each(|problem| placed(problem, text));
            let parsed = Config::parse(&String::from_utf8_lossy(text), "f", &flags);
            assert_eq!(parsed.ok(), problems.is_empty().then_some(config));
        }
        Err(ConfigError::Invalid(problems)) => {
            assert!(!problems.is_empty());
            problems.iter().for_each(|problem| placed(problem, text));
        }
        Err(error) => panic!("{error}"),
    }
}

/// A problem begins with the place that it is about. Only what is missing in the whole file has no place.
fn placed(problem: &str, text: &[u8]) {
    let Some(rest) = problem.strip_prefix("f:") else {
        panic!("no origin: {problem}");
    };
    let mut numbers = rest.splitn(3, ':');
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<usize>().ok());
    match (number(numbers.next()), number(numbers.next())) {
        (Some(line), Some(column)) => {
            let lines = text.split(|byte| matches!(byte, b'\n' | b'\r')).count();
            assert!(
                (1..=lines + 1).contains(&line) && (1..=text.len() + 1).contains(&column),
                "{problem}"
            );
        }
        _ => assert!(rest.starts_with(" upstream"), "no place: {problem}"),
    }
}
