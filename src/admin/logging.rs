// SPDX-License-Identifier: Apache-2.0
//! `/logging`: how much is logged, for each part of the relay, and the order to change it, as with Envoy.
//!
//! Owns which words are levels and parts. Does not log: whoever starts the relay gives the log and takes its filter.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use tracing::level_filters::{LevelFilter, STATIC_MAX_LEVEL};

use super::Shown;
use super::forms::{self, Answered, Asked};
use crate::config::LogFilter;

/// The log of the process.
#[derive(Clone)]
pub struct Logging {
    filter: Arc<dyn Fn() -> String + Send + Sync>,
    set: Arc<SetFilter>,
}

type SetFilter = dyn Fn(&str) -> Result<(), String> + Send + Sync;

/// The parts of the relay that log, and other programs' parts in it.
const OWN: [&str; 14] = [
    "admin",
    "app",
    "cache",
    "cli",
    "clock",
    "downstream",
    "otlp",
    "shutdown",
    "supervisor",
    "telemetry",
    "tls",
    "token",
    "upstream",
    "wire",
];
/// How many of these and of their parts have levels of their own.
const TARGETS_MAX: usize = 64;
/// The longest name of one, in bytes.
const NAME_BYTES_MAX: usize = 128;
const OTHERS: [&str; 6] = ["h2", "hyper", "hyper_util", "rustls", "tonic", "tower"];

impl Logging {
    /// The log whose filter `filter` returns and `set` replaces. A filter is a level, or a list of `target=level`.
    #[must_use]
    pub fn new(
        filter: impl Fn() -> String + Send + Sync + 'static,
        set: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let (filter, set) = (Arc::new(filter), Arc::new(set));
        Self { filter, set }
    }

    /// Returns the filter.
    pub(super) fn filter(&self) -> String {
        (self.filter)()
    }
}

pub(super) async fn answer(State(shown): State<Shown>, Asked(asked): Asked<Vec<(String, String)>>) -> Answered {
    let logging = &shown.process.logging;
    let mut levels = Levels::read(&logging.filter());
    let changed = match asked.as_slice() {
        [] => return Ok(levels.text().into_response()),
        [(key, value)] => levels.change(key, value),
        _ => Err(usage()),
    };
    let set = changed.and_then(|()| (logging.set)(&levels.filter()));
    set.map_err(|fault| forms::wrong(format!("{fault}\n")))?;
    tracing::info!(filter = levels.filter(), "the log level is changed by an order");
    Ok(levels.text().into_response())
}

fn usage() -> String {
    format!("write {}", super::usage("/logging"))
}

/// A filter of log lines, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct Levels {
    /// Of everything else.
    usual: LevelFilter,
    /// By target; the longest that a line's target begins with counts.
    targets: BTreeMap<String, LevelFilter>,
    /// What is about fields and spans, as it was written.
    others: Vec<String>,
}

impl Levels {
    /// Reads a filter that is in effect, and so has no faults.
    fn read(filter: &str) -> Self {
        let mut levels = Self {
            usual: LevelFilter::OFF,
            targets: BTreeMap::new(),
            others: Vec::new(),
        };
        for part in LogFilter::parts(filter).filter(|part| !part.is_empty()) {
            let target = part.split_once('=').filter(|_| !part.contains(['[', '{']));
            match (part.parse(), target.map(|(target, level)| (target, level.parse()))) {
                (Ok(level), _) => levels.usual = level,
                (Err(_), Some((target, Ok(level)))) => drop(levels.targets.insert(target.to_owned(), level)),
                (Err(_), Some((_, Err(_))) | None) => levels.others.push(part.to_owned()),
            }
        }
        levels
    }

    /// Returns it as one text.
    fn filter(&self) -> String {
        let targets = self.targets.iter().map(|(target, level)| format!("{target}={level}"));
        let parts = [self.usual.to_string()].into_iter().chain(targets);
        parts.chain(self.others.iter().cloned()).collect::<Vec<_>>().join(",")
    }

    /// Does what one member of a query says. An error says what is right.
    fn change(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "level" => {
                self.usual = level(value)?;
                self.targets.clear();
                self.others.clear();
            }
            "paths" => {
                for part in value.split(',') {
                    let (name, wanted) = part.rsplit_once(':').ok_or_else(usage)?;
                    self.targets.insert(target(name)?, level(wanted)?);
                }
            }
            name => drop(self.targets.insert(target(name)?, level(value)?)),
        }
        match self.targets.len() > TARGETS_MAX {
            true => Err(format!(
                "more than {TARGETS_MAX} parts would have levels of their own; write /logging?level=LEVEL to begin anew"
            )),
            false => Ok(()),
        }
    }

    /// Returns a line for each part, in Envoy's form, and the filter as a whole.
    fn text(&self) -> String {
        let mut text = "active loggers:\n".to_owned();
        for name in OWN.into_iter().chain(OTHERS) {
            let level = target(name).map_or(self.usual, |target| self.of(&target));
            let _ = writeln!(text, "  {name}: {level}");
        }
        let _ = writeln!(text, "filter: {}", self.filter());
        text
    }

    fn of(&self, target: &str) -> LevelFilter {
        let fits = self
            .targets
            .iter()
            .filter(|(prefix, _)| target.starts_with(prefix.as_str()));
        fits.max_by_key(|(prefix, _)| prefix.len())
            .map_or(self.usual, |(_, level)| *level)
    }
}

/// Reads a level, also as Envoy calls it.
fn level(word: &str) -> Result<LevelFilter, String> {
    let known = match word {
        "warning" => "warn",
        "critical" => "error",
        known => known,
    };
    let words = ["off", "error", "warn", "info", "debug", "trace"];
    let level = words
        .contains(&known)
        .then(|| known.parse::<LevelFilter>().ok())
        .flatten();
    match level {
        Some(level) if level > STATIC_MAX_LEVEL => Err(format!(
            "this build of the relay has no level `{word}`, its lowest is `{STATIC_MAX_LEVEL}`"
        )),
        Some(level) => Ok(level),
        None => Err(format!("`{word}` is not a level; write one of {}", words.join(", "))),
    }
}

/// Reads the name of a part: of the relay, of a part of such a part (`upstream::leg`), or of another program in it.
fn target(name: &str) -> Result<String, String> {
    let own = name.strip_prefix("distributary::").unwrap_or(name);
    let mut words = own.split("::");
    let word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let first = words.next().unwrap_or_default();
    let rest = name.len() <= NAME_BYTES_MAX && words.all(word);
    if rest && OWN.contains(&first) {
        return Ok(format!("distributary::{own}"));
    }
    if rest && OTHERS.contains(&first) {
        return Ok(own.to_owned());
    }
    let known: Vec<&str> = OWN.into_iter().chain(OTHERS).collect();
    let name: String = name.chars().take(NAME_BYTES_MAX).collect();
    Err(format!(
        "`{name}` is not a part that logs; write `level` or one of {}",
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(filter: &str, key: &str, value: &str) -> Result<String, String> {
        let mut levels = Levels::read(filter);
        levels.change(key, value).map(|()| levels.filter())
    }

    #[test]
    fn an_order_changes_what_it_names() {
        for (filter, key, value, after) in [
            ("info", "level", "debug", "debug"),
            ("info,h2=error,a[b{c=1,d=2}]=info", "level", "warning", "warn"),
            ("info", "upstream", "debug", "info,distributary::upstream=debug"),
            ("info,h2=debug", "h2", "off", "info,h2=off"),
            (
                "warn,[x{a=1,b=2}]=debug",
                "tls",
                "info",
                "warn,distributary::tls=info,[x{a=1,b=2}]=debug",
            ),
            (
                "info",
                "paths",
                "h2:warn,upstream::leg:debug",
                "info,distributary::upstream::leg=debug,h2=warn",
            ),
            (
                "h2=debug",
                "distributary::app",
                "critical",
                "off,distributary::app=error,h2=debug",
            ),
        ] {
            assert_eq!(
                changed(filter, key, value).as_deref(),
                Ok(after),
                "{filter} {key}={value}"
            );
        }
    }

    #[test]
    fn wrong_words_say_what_is_right() {
        for (key, value, word) in [
            (
                "level",
                "loud",
                "`loud` is not a level; write one of off, error, warn, info",
            ),
            ("level", "5", "is not a level"),
            (
                "upstreem",
                "debug",
                "`upstreem` is not a part that logs; write `level` or one of admin, app",
            ),
            ("upstream::", "debug", "is not a part"),
            ("upstream=off,h2", "debug", "is not a part"),
            ("paths", "upstream", "or paths=PART:LEVEL,PART:LEVEL"),
            ("paths", "upstream:debug,", "or paths=PART:LEVEL,PART:LEVEL"),
        ] {
            let fault = changed("info", key, value).unwrap_err();
            assert!(fault.contains(word), "{key}={value}: {fault}");
        }
    }

    /// Whatever is asked for, the filter stays short.
    #[test]
    fn a_filter_has_a_bound() {
        let parts = |count: usize| {
            let name = |n: usize| format!("upstream::{}:debug", "a".repeat(n));
            (1..=count).map(name).collect::<Vec<_>>().join(",")
        };
        assert!(changed("info", "paths", &parts(TARGETS_MAX)).is_ok());
        let fault = changed("info", "paths", &parts(TARGETS_MAX + 1)).unwrap_err();
        assert!(fault.contains("more than 64 parts"), "{fault}");
        let fault = changed("info", &format!("upstream::{}", "a".repeat(100_000)), "debug").unwrap_err();
        assert!(fault.contains("is not a part") && fault.len() < 1000, "{}", fault.len());
    }

    #[test]
    fn each_part_has_the_level_of_the_longest_target() {
        let levels = Levels::read("warn,distributary=info,distributary::upstream=debug");
        assert_eq!(levels.of("distributary::upstream::leg"), LevelFilter::DEBUG);
        let text = levels.text();
        for line in ["  upstream: debug\n", "  admin: info\n", "  h2: warn\n"] {
            assert!(text.contains(line), "{text}");
        }
    }

    /// A part that logs is one that an order can name.
    #[test]
    fn every_part_that_logs_is_known() {
        let parts = std::fs::read_dir("src").unwrap().map(|entry| entry.unwrap().path());
        let parts = parts.filter(|part| logs(part));
        let names = parts.map(|part| part.file_stem().unwrap().to_str().unwrap().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        assert_eq!(names, OWN);
    }

    fn logs(path: &std::path::Path) -> bool {
        if path.is_dir() {
            let inside = std::fs::read_dir(path).unwrap();
            return inside.into_iter().any(|entry| logs(&entry.unwrap().path()));
        }
        let text = std::fs::read_to_string(path).unwrap();
        ["debug!", "info!", "warn!", "error!"]
            .iter()
            .any(|word| text.contains(&format!("tracing::{word}")))
    }
}
