// SPDX-License-Identifier: Apache-2.0
//! The choice of a server alone: states of servers in, moves out.

use std::time::{Duration, Instant};

use distributary::protocol::{Fallback, Look, Step};
use distributary::xds::ServerState::{self, Failing, Open, Trying, Up};

const PATIENCE: Duration = Duration::from_secs(8);

#[expect(clippy::disallowed_methods, reason = "some instant to begin from; tests add to it")]
fn start() -> Instant {
    Instant::now()
}

const fn whole(server_state: ServerState) -> Look {
    Look {
        server_state,
        lacks: false,
        fresh: true,
    }
}

const fn lacking(server_state: ServerState) -> Look {
    Look {
        server_state,
        lacks: true,
        fresh: false,
    }
}

fn steps(fallback: &mut Fallback, looks: &[Look], delivered: bool, now: Instant) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Some(step) = fallback.handle_looks(looks.get(..fallback.watched()).unwrap_or(looks), delivered, now) {
        steps.push(step);
        assert!(steps.len() < 10, "it goes round in circles: {steps:?}");
    }
    steps
}

/// G-01, G-02, G-03: as long as the first server is being tried, answers, or fails while nothing is lacking, the other servers
/// are not used.
#[test]
fn nobody_moves_without_need() {
    let now = start();
    for first in [lacking(Trying), lacking(Open), lacking(Up), whole(Failing)] {
        let mut fallback = Fallback::new(3, false, PATIENCE);
        assert_eq!(
            steps(&mut fallback, &[first, whole(Up), whole(Up)], true, now),
            [],
            "{first:?}"
        );
        assert!(fallback.at_rest(), "{first:?}");
    }
}

/// G-03, G-06, G-10: a session that lacks something moves down server by server as each fails, and only then.
#[test]
fn who_lacks_something_goes_down_step_by_step() {
    let now = start();
    let mut fallback = Fallback::new(3, false, PATIENCE);
    let mut looks = [lacking(Failing), lacking(Trying), lacking(Trying)];
    assert_eq!(steps(&mut fallback, &looks, true, now), [Step::Watch(2)]);
    // However often the first server fails, that does not lead to the third one.
    assert_eq!(steps(&mut fallback, &looks, true, now), []);
    looks[1] = lacking(Failing);
    assert_eq!(steps(&mut fallback, &looks, true, now), [Step::Watch(3)]);
    looks[2] = whole(Up);
    assert_eq!(steps(&mut fallback, &looks, true, now), [Step::Bind(2)]);
    assert_eq!((fallback.bound(), fallback.watched()), (2, 3));
}

/// G-04, L-21: where only reachability counts, a failure moves every session as soon as the other view is complete.
#[test]
fn reachability_alone_is_enough_where_it_is_said_so() {
    let now = start();
    let mut fallback = Fallback::new(2, true, PATIENCE);
    assert_eq!(
        steps(&mut fallback, &[whole(Failing), lacking(Open)], true, now),
        [Step::Watch(2)]
    );
    assert_eq!(steps(&mut fallback, &[whole(Failing), lacking(Up)], true, now), []);
    assert_eq!(
        steps(&mut fallback, &[whole(Failing), whole(Up)], true, now),
        [Step::Bind(1)]
    );
}

/// G-08: when the first server answers again, a session returns at once if that server has everything, else when it has had its
/// time.
#[test]
fn back_when_the_first_one_holds_everything_or_has_had_its_time() {
    let now = start();
    let away = || {
        let mut fallback = Fallback::new(2, false, PATIENCE);
        steps(&mut fallback, &[lacking(Failing), whole(Up)], true, now);
        assert_eq!(fallback.bound(), 1);
        fallback
    };
    let mut fallback = away();
    assert_eq!(steps(&mut fallback, &[lacking(Open), whole(Up)], true, now), []);
    assert_eq!(
        steps(&mut fallback, &[whole(Up), whole(Up)], true, now),
        [Step::Bind(0), Step::Watch(1)]
    );
    assert!(fallback.at_rest());

    let mut fallback = away();
    assert_eq!(steps(&mut fallback, &[lacking(Up), whole(Up)], true, now), []);
    assert_eq!(fallback.poll_timeout(), Some(now + PATIENCE));
    // A failure meanwhile starts the time anew.
    assert_eq!(
        steps(&mut fallback, &[lacking(Failing), whole(Up)], true, now + PATIENCE / 2),
        []
    );
    assert_eq!(
        steps(&mut fallback, &[lacking(Up), whole(Up)], true, now + PATIENCE),
        []
    );
    let later = now + PATIENCE * 2;
    assert_eq!(
        steps(&mut fallback, &[lacking(Up), whole(Up)], true, later),
        [Step::Bind(0), Step::Watch(1)]
    );
}

/// G-17: a view that has not answered yet on its present stream may be out of date, so no session returns to it at once.
#[test]
fn what_a_server_said_yesterday_calls_nobody_back() {
    let now = start();
    let mut fallback = Fallback::new(2, false, PATIENCE);
    steps(&mut fallback, &[lacking(Failing), whole(Up)], true, now);
    let stale = Look {
        fresh: false,
        ..whole(Up)
    };
    assert_eq!(steps(&mut fallback, &[stale, whole(Up)], true, now), []);
}

/// G-05: a session that was sent nothing yet moves at once to any server that answers; it holds nothing that a move could
/// disturb.
#[test]
fn a_new_session_does_not_wait() {
    let now = start();
    let mut fallback = Fallback::new(2, false, PATIENCE);
    let looks = [lacking(Failing), lacking(Up)];
    assert_eq!(
        steps(&mut fallback, &looks, false, now),
        [Step::Watch(2), Step::Bind(1)]
    );
    let mut fallback = Fallback::new(2, false, PATIENCE);
    assert_eq!(steps(&mut fallback, &looks, true, now), [Step::Watch(2)]);
    assert_eq!(steps(&mut fallback, &looks, true, now + PATIENCE), [Step::Bind(1)]);
}

/// G-03: if what was lacking is no longer wanted, or came after all, the other server is not needed.
#[test]
fn a_need_that_ends_ends_the_watch() {
    let now = start();
    let mut fallback = Fallback::new(2, false, PATIENCE);
    steps(&mut fallback, &[lacking(Failing), lacking(Trying)], true, now);
    assert_eq!(
        steps(&mut fallback, &[whole(Failing), lacking(Trying)], true, now),
        [Step::Watch(1)]
    );
}

/// A primary that flaps every second for an hour: with equal contents no session moves more often than the primary answers.
#[test]
fn flapping_ends() {
    let mut now = start();
    let mut fallback = Fallback::new(2, false, PATIENCE);
    for second in 0..3600 {
        now += Duration::from_secs(1);
        let first = if second % 2 == 0 { whole(Failing) } else { whole(Up) };
        assert_eq!(steps(&mut fallback, &[first, whole(Up)], true, now), []);
    }
}
