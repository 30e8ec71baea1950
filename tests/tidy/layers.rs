// SPDX-License-Identifier: Apache-2.0
//! Which part may use which. The order of the parts is the architecture: `classes` <- `xds` <- `protocol` <- {`upstream`, `downstream`};
//! `xds` <- `cache` <- {`upstream`, `downstream`, `admin`}; `app` knows all.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{self, File};

/// A part, and the parts of this crate that it may name. Those that name none are crates of their own, and the compiler knows what
/// they may use.
const KNOWS: &str = "
proto:
classes:
xds:
json:
protocol:
inquiry:
cache:
answers:
census: answers classes xds proto json protocol cache inquiry clock
snapshot: classes xds proto clock
shutdown:
small_file:
identity:
clock:
telemetry: classes xds clock
config: classes xds proto protocol cache json identity
watch: clock
supervisor: config
tls: config clock proto small_file telemetry watch
token: config telemetry clock small_file watch identity tls upstream
wire: xds proto config
upstream: classes xds proto json protocol cache wire config tls telemetry shutdown clock small_file watch
downstream: classes xds proto protocol cache inquiry census json wire identity config tls token telemetry shutdown clock
otlp: xds proto config tls telemetry clock upstream
admin: answers classes xds proto cache inquiry census json identity config tls token telemetry shutdown clock
app: classes xds proto json protocol cache inquiry census wire config tls token telemetry shutdown watch clock upstream downstream admin otlp small_file snapshot supervisor
get: classes xds proto protocol cache config json snapshot telemetry upstream
cli: answers app config get json telemetry tls classes xds proto upstream
";

/// Words that must not be in the pure parts: I/O, tasks, locks, clocks, randomness, and collections without a fixed order.
const IMPURE: &str = "tokio tonic hyper axum tower socket2 rand moka arc_swap parking_lot Mutex RwLock HashMap HashSet SystemTime Instant::now \
                      std::net std::fs std::env std::thread async";

/// The part that a file of `src/` belongs to.
fn part(file: &File) -> Option<&str> {
    let below = file.path.strip_prefix("src/")?;
    let part = below.split('/').next()?;
    Some(part.strip_suffix(".rs").unwrap_or(part)).filter(|part| !matches!(*part, "lib" | "main"))
}

/// The parts that a text names by `crate::`, also in a group: `crate::{xds::Name, cache}`.
pub(crate) fn named(text: &str) -> BTreeSet<String> {
    let identifier = |text: &str| {
        text.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect::<String>()
    };
    let mut found = BTreeSet::new();
    for after in text.split("crate::").skip(1) {
        let Some(group) = after.strip_prefix('{') else {
            found.insert(identifier(after));
            continue;
        };
        let mut depth = 0;
        let mut starts = true;
        for (at, character) in group.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => starts = true,
                _ if starts && character.is_alphabetic() => {
                    found.insert(identifier(&group[at..]));
                    starts = false;
                }
                _ => {}
            }
        }
    }
    found
}

/// The code without its comments, which may name anything.
pub(crate) fn code(text: &str) -> String {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn parts_know_only_what_lies_below_them() {
    let rows = KNOWS.lines().filter_map(|row| row.split_once(':'));
    let knows: BTreeMap<&str, Vec<&str>> = rows
        .map(|(part, may)| (part, may.split_whitespace().collect()))
        .collect();
    let mut wrong = Vec::new();
    for file in tree::files() {
        let Some(part) = part(&file) else { continue };
        let Some(allowed) = knows.get(part) else {
            wrong.push(format!(
                "{}: `{part}` is a new part; list in tests/tidy/layers.rs which parts it may use",
                file.path
            ));
            continue;
        };
        for other in named(&code(file.production())) {
            let is_part = knows.contains_key(other.as_str());
            if is_part && other != part && !allowed.contains(&other.as_str()) {
                wrong.push(format!("{}: `{part}` must not use `{other}`", file.path));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_pure_parts_are_pure() {
    let mut wrong = Vec::new();
    for file in tree::files().iter().filter(|file| {
        ["src/classes/", "src/xds/", "src/protocol/"]
            .iter()
            .any(|room| file.is(room, ".rs"))
    }) {
        for (at, line) in code(file.production()).lines().enumerate() {
            for word in IMPURE.split_whitespace().filter(|word| mentions(line, word)) {
                wrong.push(format!("{}:{}: a pure part must not use `{word}`", file.path, at + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Files that may read the wall clock: they only show it, or they compare it with the expiry time in a token.
const SHOW_TIME: [&str; 3] = ["src/clock/wall.rs", "src/telemetry/", "src/upstream/clock.rs"];

/// People and other machines set the wall clock, so nothing else in the relay may depend on it.
#[test]
fn nothing_depends_on_the_wall_clock() {
    let mut wrong = Vec::new();
    for file in tree::files().iter().filter(|file| file.is("src/", ".rs")) {
        if file.path.ends_with("/tests.rs") || SHOW_TIME.iter().any(|place| file.path.starts_with(place)) {
            continue;
        }
        for (at, line) in code(file.production()).lines().enumerate() {
            if ["SystemTime", "UNIX_EPOCH"].iter().any(|word| mentions(line, word)) {
                wrong.push(format!(
                    "{}:{}: the wall clock may jump; use `crate::clock`",
                    file.path,
                    at + 1
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Whether `line` contains `word` as a whole word.
fn mentions(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(inside) && !line[at + word.len()..].starts_with(inside))
}

#[test]
fn the_scanner_sees_what_it_should() {
    let found = named("use crate::xds::Name; crate::{cache::{View, Cut}, wire}; super::x; let a = crate::proto::y();");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["cache", "proto", "wire", "xds"]);
    assert!(mentions("use tokio::sync;", "tokio"));
    assert!(!mentions("let operand = brand;", "rand"));
    assert!(!code("x // tokio").contains("tokio"));
}

/// Files of the shells that may use the runtime's timers directly.
const OWN_TIMERS: [&str; 1] = ["src/downstream/alarm.rs"];

/// K-27: waits use the relay's own clock, which stands still while the process does.
#[test]
fn shells_wait_by_the_relays_own_time() {
    let mut wrong = Vec::new();
    let shells = ["src/upstream/", "src/downstream/"];
    for file in tree::files()
        .iter()
        .filter(|file| shells.iter().any(|shell| file.is(shell, ".rs")) && !OWN_TIMERS.contains(&file.path.as_str()))
    {
        for (at, line) in code(file.production()).lines().enumerate() {
            if line.contains("tokio::time::") || line.contains("TokioTimer") {
                wrong.push(format!("{}:{}: wait with `crate::clock`", file.path, at + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
