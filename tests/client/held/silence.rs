// SPDX-License-Identifier: Apache-2.0
//! A control plane that says nothing where nothing is new, as go-control-plane: what it says long after a reconnect is meant.

use std::time::Duration;

use xds::Dialect;

use super::plane::{endpoints, listener};
use super::stage::{Stage, USUAL};
use super::{BOTH, settled};
use crate::{EDS, LDS, ms, secs};

/// A settled stage whose control plane has restarted without a change, so long ago.
fn reconnected(dialect: Dialect, ago: Duration) -> Stage {
    let mut stage = settled(dialect, USUAL);
    stage.plane.habits.silent = true;
    // The versions of a silent control plane are others.
    stage.restart();
    stage.pass(secs(20));
    stage.restart();
    assert_eq!(stage.after(ago).heard(), "", "nothing is lost");
    stage
}

/// Half a minute after it, and ten minutes after it, all endpoints are drained on purpose: nobody is sent to the dead. The last listener goes
/// as fast as it does in steady state, and so do assignments, which were asked for by name.
#[test]
fn what_is_meant() {
    for (dialect, ago) in BOTH
        .into_iter()
        .flat_map(|dialect| [11, 30, 31, 600].map(|ago| (dialect, ago)))
    {
        let names = || (0..10).map(|n| format!("c{n}"));
        let mut stage = reconnected(dialect, secs(ago));
        // Endpoints that are emptied sooner may belong to the first state.
        if ago >= 30 {
            names().for_each(|name| stage.put(EDS, &name, endpoints(&name, 0)));
            stage.exchange();
            let passed = |name: String| stage.body(EDS, &name) == Some(endpoints(&name, 0));
            assert!(names().all(passed), "{dialect:?}, {ago} s: not drained");
        }
        if ago > 30 {
            stage.remove(LDS, "l");
            stage.pass(ms(100));
            assert_eq!(stage.served(LDS), "", "{dialect:?}, {ago} s: {}", stage.why(LDS, "l"));
        }
        if dialect == Dialect::Delta {
            names().for_each(|name| stage.remove(EDS, &name));
            assert_eq!(stage.after(ms(100)).served(EDS), "", "{ago} s");
        }
        assert_eq!(stage.heard(), "", "{dialect:?}, {ago} s");
    }
}

/// A listener that a gRPC client asks for by name.
#[test]
fn a_listener_that_was_asked_for_by_name() {
    for ago in [31, 600] {
        let mut stage = Stage::new(Dialect::Delta, USUAL, &[(LDS, "l"), (LDS, "other")]);
        stage.plane.habits.silent = true;
        stage.put(LDS, "l", listener("l", "r", 80));
        stage.put(LDS, "other", listener("other", "r", 81));
        stage.pass(secs(20));
        stage.restart();
        stage.pass(secs(ago));
        stage.remove(LDS, "l");
        stage.pass(ms(100));
        assert_eq!(stage.served(LDS), "other", "{ago} s: {}", stage.why(LDS, "l"));
        assert_eq!(stage.heard(), "");
    }
}

/// What it lacks at the first moment is held all the same, also where it says other things later.
#[test]
fn a_loss_at_the_first_moment() {
    for dialect in BOTH {
        let mut stage = reconnected(dialect, secs(600));
        for name in (0..10).map(|n| format!("c{n}")) {
            stage.put(EDS, &name, endpoints(&name, 0));
        }
        stage.restart();
        stage.pass(secs(5));
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 2)), "{dialect:?}");
        assert_eq!(stage.why(EDS, "c0"), "mass");
        assert_eq!(stage.heard(), "+eds mass 10");
    }
}
