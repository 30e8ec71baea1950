// SPDX-License-Identifier: Apache-2.0
//! The form of `/clusters`, byte by byte.

use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::answers::{LackingNames, OfType, SpokenDialect};

fn clock() -> WallClock {
    WallClock {
        wall: UNIX_EPOCH + Duration::from_secs(1_795_176_187 + 60),
        ..WallClock::read()
    }
}

fn server(clock: WallClock) -> ServerRow {
    let time = |at| Some(clock.time(at));
    ServerRow {
        server: "cp-1:18000".to_owned(),
        state: State::Unreachable.word().to_owned(),
        since: time(since(clock)),
        last_error: Some("connection refused".to_owned()),
        next_attempt: time(clock.now + Duration::from_secs(3)),
        last_success: time(clock.now - Duration::from_secs(61)),
        streams: 0,
        refused: 12,
        dialects: [(
            "sotw".to_owned(),
            SpokenDialect {
                streams: 0,
                reason: "the configuration says so".to_owned(),
            },
        )]
        .into(),
        suspected: [("rds".to_owned(), "no such type".to_owned())].into(),
        unserved: [("vhds".to_owned(), "only delta has it".to_owned())].into(),
        sessions: 14,
        watching: 1,
        types: [(
            "cds".to_owned(),
            OfType {
                resources: 2,
                restored: true,
                stale: true,
            },
        )]
        .into(),
        lacking: LackingNames {
            sessions: 14,
            count: 4,
            some: vec!["eds a".to_owned(), "eds b".to_owned(), "eds c".to_owned()],
        },
        why: String::new(),
    }
}

fn since(clock: WallClock) -> Instant {
    clock.now - Duration::from_secs(60)
}

fn told(mut server: ServerRow, streams: usize, clock: WallClock) -> Vec<ServerRow> {
    server.why = why(&server, Some(since(clock)), streams, clock);
    vec![server]
}

#[test]
fn one_line_for_each_fact() {
    let clock = clock();
    let clusters = Clusters {
        authorities: [(String::new(), told(server(clock), 300, clock))].into(),
        faults: vec!["listener a: no\nno".to_owned()],
        ..Clusters::default()
    };
    assert_eq!(
        clusters.text(&Standings::default()),
        "\
#old::cp-1:18000::priority::0
#old::cp-1:18000::dialect::sotw::reason::the configuration says so
#old::cp-1:18000::dialect::sotw::streams::0
#old::cp-1:18000::last_error::connection refused
#old::cp-1:18000::last_success::2026-11-20T12:03:06Z
#old::cp-1:18000::next_attempt::2026-11-20T12:04:10Z
#old::cp-1:18000::refused::12
#old::cp-1:18000::sessions::14
#old::cp-1:18000::since::2026-11-20T12:03:07Z
#old::cp-1:18000::state::unreachable
#old::cp-1:18000::streams::0
#old::cp-1:18000::suspected::rds::no such type
#old::cp-1:18000::cds::resources::2
#old::cp-1:18000::cds::stale::true
#old::cp-1:18000::unserved::vhds::only delta has it
#old::cp-1:18000::watching::1
#old::cp-1:18000::why::cp-1:18000 unreachable since 12:03:07 (connection refused); 12 of 300 streams refused; 14 sessions need 4 resources that it never \
         sent: eds a, eds b, eds c and 1 more; 1 session waits for it and reads another server; resources from a \
         snapshot: cds
#relay::fault::listener a: no\\nno
#relay::clients::0 of 0 streams are up to date
"
    );
}

#[test]
fn the_same_for_programs() {
    let clock = clock();
    let mut server = server(clock);
    server.state = State::Answering.word().to_owned();
    server.last_error = None;
    server.lacking = LackingNames::default();
    server.watching = 0;
    server.types.clear();
    server.dialects.clear();
    server.refused = 0;
    server.suspected.clear();
    server.unserved.clear();
    let clusters = Clusters {
        authorities: [("a.example".to_owned(), told(server, 7, clock))].into(),
        faults: vec!["listener a: no".to_owned()],
        ..Clusters::default()
    };
    assert_eq!(
        clusters.json(clock, &Standings::default()),
        json!({"authorities": [{"name": "a.example", "servers": [{
            "server": "cp-1:18000",
            "state": "answering",
            "since": "2026-11-20T12:03:07Z",
            "last_error": null,
            "next_attempt": "2026-11-20T12:04:10Z",
            "last_success": "2026-11-20T12:03:06Z",
            "streams": 0,
            "refused": 0,
            "dialects": {},
            "suspected": {},
            "unserved": {},
            "sessions": 14,
            "watching": 0,
            "types": {},
            "lacking": {"sessions": 0, "count": 0, "some": []},
            "why": "cp-1:18000 answering since 12:03:07; 14 sessions have everything that they need from it",
        }]}], "faults": ["listener a: no"], "clients": {
            "away": 0, "hung": 0, "streams": 0, "up_to_date": 0, "rejecting": 0, "older": 0, "lagging": 0, "waiting": 0,
            "why": "0 of 0 streams are up to date",
        }})
    );
}
