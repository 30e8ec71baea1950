// SPDX-License-Identifier: Apache-2.0
//! How large each room may be. Code counts: no blank line, no comment, no test.
//!
//! A ceiling is what the room had when it was set, and 3 %. What needs more says in its commit what it replaces, and sets the ceiling anew; a room
//! that has become much smaller gets a lower one.

use crate::tree;

/// Rooms and their ceilings.
const CEILINGS: &[(&str, usize)] = &[
    ("loadtest/src/", 13370),
    ("src/", 320),
    ("src/admin/", 5560),
    ("src/answers/", 500),
    ("src/app/", 3380),
    ("src/cache/", 5430),
    ("src/census/", 1630),
    ("src/classes/", 1330),
    ("src/cli/", 5130),
    ("src/clock/", 480),
    ("src/config/", 5170),
    ("src/downstream/", 6410),
    ("src/get/", 1270),
    ("src/identity/", 430),
    ("src/inquiry/", 200),
    ("src/json/", 3190),
    ("src/otlp/", 940),
    ("src/protocol/", 2080),
    ("src/protocol/client/", 4440),
    ("src/protocol/holds/", 2687),
    ("src/protocol/server/", 5310),
    ("src/snapshot/", 720),
    ("src/telemetry/", 2010),
    ("src/tls/", 1690),
    ("src/token/", 900),
    ("src/upstream/", 6330),
    ("src/watch/", 280),
    ("src/wire/", 2390),
    ("src/xds/", 5400),
];

/// A room may be so much below its ceiling: a tenth.
const SLACK: usize = 10;

/// The lines of code of a file before its tests.
fn lines(text: &str) -> usize {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code = code.lines().map(str::trim);
    code.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// The most special room that a file is in.
pub(crate) fn room(path: &str) -> Option<&'static str> {
    let rooms = CEILINGS.iter().map(|(room, _)| *room);
    rooms
        .filter(|room| path.starts_with(room))
        .max_by_key(|room| room.len())
}

#[test]
fn no_room_outgrows_its_ceiling() {
    let files = tree::files();
    let sources = files.iter().filter(|file| {
        let of_product = file.is("src/", ".rs") || file.is("loadtest/src/", ".rs");
        of_product && !is_test(&file.path)
    });
    let counted: Vec<_> = sources.map(|file| (room(&file.path), lines(&file.text))).collect();
    let mut wrong = Vec::new();
    for (room, ceiling) in CEILINGS {
        let of_room = counted.iter().filter(|(of, _)| *of == Some(room));
        let count: usize = of_room.map(|(_, lines)| lines).sum();
        if count > *ceiling {
            wrong.push(format!(
                "{room}: {count} lines, {ceiling} may be; take something out, or say what this replaces"
            ));
        } else if count + count / SLACK < *ceiling {
            wrong.push(format!("{room}: {count} lines; lower its ceiling of {ceiling}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn comments_and_tests_do_not_count() {
    assert_eq!(
        lines("//! a\n\nfn a() {\n    // b\n}\n\n#[cfg(test)]\nmod tests {\n}\n"),
        2
    );
}
