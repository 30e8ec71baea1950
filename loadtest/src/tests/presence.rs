// SPDX-License-Identifier: Apache-2.0
//! Tests of what counts as having a stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::now;
use crate::fleet::client::profile::Profile;
use crate::fleet::presence::{Presence, RECYCLED_WITHIN, Standing};
use crate::fleet::progress::Progress;
use crate::fleet::violation::Violation;
use crate::measure::loss::{Failure, Status};
use crate::wire::http2::Event;
use crate::wire::kind::{Dialect, Kind};

/// A client, and the fleet that counts it.
fn presence(profile: Profile, begin: Instant) -> (Presence, Arc<Progress>) {
    let progress = Arc::<Progress>::default();
    (Presence::new(Arc::clone(&progress), 3, Some(&profile), begin), progress)
}

fn plain() -> Profile {
    Profile::plain(Dialect::Delta, Kind::Cds, 0)
}

fn standing(presence: &Presence, now: Instant) -> Standing {
    let mut standing = Standing::default();
    presence.stand(&mut standing, now);
    standing
}

#[test]
fn a_stream_that_ended_with_ok_may_be_away_for_a_while() {
    let begin = now();
    let at = |seconds| begin + Duration::from_secs(seconds);
    let (presence, progress) = presence(plain(), begin);
    assert_eq!((standing(&presence, begin).without, progress.streaming()), (3, Some(0)));
    presence.connect(begin);
    presence.hear(true, begin);
    assert_eq!((standing(&presence, begin).without, progress.streaming()), (0, Some(3)));
    let ended = |code: &str| Violation::Ended(Status::read(code), String::new());
    presence.lose(&ended("0"), at(10));
    // Tries that fail change nothing about when the stream was lost.
    presence.connect(at(14));
    presence.lose(&ended("0"), at(14));
    let over = at(10) + RECYCLED_WITHIN;
    assert_eq!(standing(&presence, over - Duration::from_millis(1)).without, 0);
    let late = standing(&presence, over);
    assert_eq!((late.without, late.demanded, progress.streaming()), (3, 3, Some(0)));
    assert_eq!(
        late.to_string(),
        "3 of 3 clients: the stream ended with gRPC status 0 (OK)"
    );
    // It counts for how long they were without one, from when they lost it until they have one again.
    assert_eq!((late.gap, progress.take_gap()), (RECYCLED_WITHIN, Duration::ZERO));
    presence.connect(at(19));
    presence.hear(true, at(20));
    assert_eq!(
        (progress.take_gap(), progress.take_gap()),
        (Duration::from_secs(10), Duration::ZERO)
    );
    // With another status there is no while, and after GOAWAY there is.
    for (code, without) in [(None, 3), (Some(0), 0), (Some(11), 3)] {
        presence.connect(at(20));
        presence.hear(true, at(20));
        code.into_iter().for_each(|code| presence.note(&Event::GoAway(1, code)));
        presence.lose(&ended("14"), at(21));
        assert_eq!(standing(&presence, at(22)).without, without, "{code:?}");
    }
    presence.connect(at(30));
    presence.hear(true, at(30));
    presence.lose(&Violation::Connection(Failure::Closed, "closed".to_owned()), at(31));
    assert_eq!(
        standing(&presence, at(31)).to_string(),
        "3 of 3 clients: the connection failed: closed"
    );
}

#[test]
fn a_silent_stream_counts_once_it_is_left_open() {
    let begin = now();
    let (presence, progress) = presence(plain(), begin);
    presence.connect(begin);
    let due = presence.due().unwrap();
    presence.look(true, begin).unwrap();
    assert_eq!(progress.streaming(), Some(0));
    // The server may have accepted the connection and nothing else.
    presence.look(false, due).unwrap();
    assert_eq!(progress.streaming(), Some(0));
    presence.look(true, presence.due().unwrap()).unwrap();
    assert_eq!(
        (progress.streaming(), progress.streamed(), presence.due()),
        (Some(3), 3, None)
    );
}

#[test]
fn a_silent_server_is_asked_a_few_times() {
    let begin = now();
    let later = begin + Duration::from_secs(60);
    let (presence, _) = presence(plain(), begin);
    presence.connect(begin);
    presence.hear(true, begin);
    assert!(!presence.question(begin), "it was heard just now");
    for _ in 0..3 {
        assert!(presence.question(later) && presence.take_question(later) && !presence.take_question(later));
        assert_eq!(
            (
                standing(&presence, later).without,
                standing(&presence, later).is_final()
            ),
            (3, false)
        );
        presence.note(&Event::Pong);
        assert_eq!(standing(&presence, later).without, 0);
    }
    assert!(!presence.question(later), "a gRPC server would close the connection");
    presence.hear(true, later);
    let again = later + Duration::from_secs(60);
    assert!(presence.question(again) && presence.take_question(again));
    let due = presence.due().unwrap();
    assert!(presence.look(true, due - Duration::from_millis(1)).is_ok());
    let silent = presence.look(true, due).unwrap_err();
    assert_eq!(
        silent.to_string(),
        "the connection failed: the server did not answer a ping within 5s"
    );
}

#[test]
fn of_some_clients_no_stream_is_demanded() {
    let begin = now();
    let (polls, progress) = presence(
        Profile {
            polls: Some(Duration::ZERO),
            ..plain()
        },
        begin,
    );
    polls.connect(begin);
    polls.hear(true, begin);
    assert_eq!((standing(&polls, begin).demanded, progress.streaming()), (0, None));
    let mut flaps = plain();
    flaps.behaviour.flaps = Some(Duration::from_secs(4));
    let (flaps, progress) = presence(flaps, begin);
    flaps.connect(begin);
    flaps.hear(true, begin);
    assert_eq!((standing(&flaps, begin).demanded, progress.streaming()), (0, Some(3)));
    let mut stalls = plain();
    stalls.behaviour.stalls = true;
    let (stalls, _) = presence(stalls, begin);
    stalls.connect(begin);
    stalls.hear(true, begin);
    assert!(
        !stalls.question(begin + Duration::from_secs(60)),
        "it would not read the answer"
    );
    let (leaves, progress) = presence(plain(), begin);
    leaves.connect(begin);
    leaves.hear(true, begin);
    leaves.leave();
    assert_eq!((standing(&leaves, begin).demanded, progress.streaming()), (0, Some(0)));
    leaves.come_back();
    let back = standing(&leaves, begin);
    assert_eq!((back.without, back.is_final()), (3, false));
}
