// SPDX-License-Identifier: Apache-2.0
//! How long a judgement holds: only time counts in which the control plane was there and had said what it has. And which state is judged
//! where it says something late.

use std::time::Duration;

use xds::{Dialect, GuardSettings, HoldAction, HoldTarget, Name, TypeUrl};

use super::plane::{endpoints, listener, route};
use super::stage::{Stage, USUAL};
use super::{BOTH, settled};
use crate::{CDS, EDS, LDS, RDS, ms, secs};

const SECOND: Duration = secs(1);

/// A stage whose control plane has lost half of its clusters, to which no route leads, for so long.
pub(super) fn halved(dialect: Dialect, settings: GuardSettings, held: Duration) -> Stage {
    let mut stage = settled(dialect, settings);
    stage.say(RDS, "r", route("r", &["c9"]));
    (0..5).for_each(|n| stage.remove(CDS, &format!("c{n}")));
    reconnect(&mut stage);
    assert_eq!(stage.after(held).why(CDS, "c0"), "mass", "{dialect:?}");
    stage
}

/// The stream ends, and the next one begins at once.
pub(super) fn reconnect(stage: &mut Stage) {
    stage.lose();
    stage.find();
}

/// D-10: a balancer ends each stream after 20 s. A clock of a minute runs on each of them, but for the moments in which the control plane
/// has not said yet what it has; it does not begin anew.
#[test]
fn streams_that_end_again_and_again() {
    for dialect in BOTH {
        let mut stage = halved(dialect, USUAL, SECOND);
        let mut held = SECOND;
        while !stage.why(CDS, "c0").is_empty() {
            assert!(held < 120 * SECOND, "{dialect:?}: it is held for ever");
            stage.pass(20 * SECOND);
            reconnect(&mut stage);
            held += 20 * SECOND;
        }
        assert!(held > 60 * SECOND, "{dialect:?}: {held:?}");
        assert_eq!(stage.heard(), "+cds mass 5, -cds mass clock", "{dialect:?}");
    }
}

/// Streams that end before the control plane can have said what it has: from the third one on their time counts.
#[test]
fn streams_that_end_at_once() {
    for dialect in BOTH {
        let mut stage = halved(dialect, USUAL, SECOND);
        for _ in 0..40 {
            reconnect(&mut stage);
            stage.pass(2 * SECOND);
        }
        assert_eq!(stage.why(CDS, "c0"), "", "{dialect:?}");
    }
}

/// While the control plane is away, and until it has said on its next stream what it has, nothing ends. Then a minute is left at least.
#[test]
fn a_long_absence() {
    for dialect in BOTH {
        let mut stage = halved(dialect, USUAL, SECOND);
        stage.pass(50 * SECOND);
        stage.guard.handle_server(false, stage.upstream.now);
        stage.publish(Vec::new());
        assert_eq!(stage.holds[0].until(), None, "its clock stands");
        assert_eq!(stage.after(3 * 3600 * SECOND).why(CDS, "c0"), "mass", "{dialect:?}");
        stage.plane.habits.late.insert(CDS);
        reconnect(&mut stage);
        stage.pass(20 * SECOND);
        stage.plane.habits.late.clear();
        assert_eq!(stage.after(50 * SECOND).why(CDS, "c0"), "mass", "{dialect:?}");
        assert_eq!(stage.after(20 * SECOND).why(CDS, "c0"), "", "{dialect:?}");
    }
}

/// A person holds it for a while, which ends while the control plane is away. The judgement holds on, and what operators see is no time
/// that has passed.
#[test]
fn an_order_that_ends_in_an_absence() {
    for dialect in BOTH {
        let mut stage = halved(dialect, USUAL, SECOND);
        let one = HoldTarget::Resource(TypeUrl::new(CDS), Name::from("c0"));
        assert_eq!(stage.order(one, HoldAction::Extend(20 * SECOND)), 1);
        stage.guard.handle_server(false, stage.upstream.now);
        stage.pass(60 * SECOND);
        let held = &stage.holds[0].removals[&Name::from("c0")];
        assert_eq!((held.until, &held.extended), (None, &None), "{dialect:?}");
        assert_eq!(stage.why(CDS, "c0"), "mass", "{dialect:?}");
    }
}

/// A person holds one name for longer than the judgement: what else it holds goes by its clock, and that name when the order ends.
#[test]
fn an_order_that_lasts_longer() {
    for dialect in BOTH {
        let mut stage = halved(dialect, USUAL, SECOND);
        let one = HoldTarget::Resource(TypeUrl::new(CDS), Name::from("c0"));
        assert_eq!(stage.order(one, HoldAction::Extend(120 * SECOND)), 1);
        assert_eq!(
            stage.after(100 * SECOND).served(CDS),
            "c0 c5 c6 c7 c8 c9",
            "{dialect:?}"
        );
        assert_eq!(stage.why(CDS, "c0"), "mass", "{dialect:?}");
        assert_eq!(stage.after(20 * SECOND).served(CDS), "c5 c6 c7 c8 c9", "{dialect:?}");
    }
}

/// D-03: the control plane dies between a listener and the route that this newly names. The cluster of the old route stays until it can say
/// that route, and as long as usual from then on.
#[test]
fn a_route_that_nobody_can_say() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        stage.wanted.clear();
        stage.say(LDS, "l", listener("l", "s", 80));
        stage.remove(CDS, "c0");
        assert_eq!(stage.after(SECOND).why(CDS, "c0"), "referenced by lds l", "{dialect:?}");
        stage.guard.handle_server(false, stage.upstream.now);
        stage.pass(100 * SECOND);
        assert_eq!(stage.why(CDS, "c0"), "referenced by lds l", "{dialect:?}");
        stage.guard.handle_server(true, stage.upstream.now);
        stage.pass(ms(900));
        assert_eq!(stage.why(CDS, "c0"), "referenced by lds l", "{dialect:?}");
        stage.pass(ms(200));
        assert!(
            stage.served(CDS).starts_with("c1 "),
            "{dialect:?}: {}",
            stage.why(CDS, "c0")
        );
    }
}

/// istio #25100: a control plane that has restarted answers for endpoints long after all else, and says that there are none.
#[test]
fn endpoints_that_come_late_and_empty() {
    for (dialect, late) in [(Dialect::Sotw, 13), (Dialect::Delta, 25), (Dialect::Sotw, 33)] {
        let mut stage = settled(dialect, USUAL);
        (0..10).for_each(|n| stage.put(EDS, &format!("c{n}"), endpoints(&format!("c{n}"), 0)));
        stage.plane.habits.late.insert(EDS);
        stage.restart();
        stage.pass(late * SECOND);
        stage.plane.habits.late.clear();
        stage.pass(5 * SECOND);
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 2)), "{dialect:?}");
        assert_eq!(stage.why(EDS, "c0"), "mass", "{dialect:?}, {late} s");
    }
}

/// The same of a type that directs traffic, and of one that nothing leads to: whenever the first answer comes, it is judged.
#[test]
fn clusters_that_come_late_and_in_part() {
    for (dialect, late) in BOTH.into_iter().flat_map(|dialect| [(dialect, 33), (dialect, 240)]) {
        let mut stage = settled(dialect, USUAL);
        stage.say(RDS, "r", route("r", &["c9"]));
        stage.heard();
        (0..5).for_each(|n| stage.remove(CDS, &format!("c{n}")));
        stage.plane.habits.late.insert(CDS);
        stage.restart();
        stage.pass(late * SECOND);
        stage.plane.habits.late.clear();
        assert_eq!(stage.after(7 * SECOND).why(CDS, "c0"), "mass", "{dialect:?}, {late} s");
    }
}

/// It has answered as it was, and says two seconds later that there are none: that belongs to its first state.
#[test]
fn endpoints_that_are_emptied_soon() {
    for (dialect, after, holds) in [
        (Dialect::Sotw, 2, true),
        (Dialect::Delta, 2, true),
        (Dialect::Sotw, 6, false),
        (Dialect::Delta, 6, false),
    ] {
        let mut stage = settled(dialect, USUAL);
        stage.restart();
        stage.pass(after * SECOND);
        for n in 0..10 {
            stage.say(EDS, &format!("c{n}"), endpoints(&format!("c{n}"), 0));
        }
        stage.pass(ms(600));
        let why = if holds { "mass" } else { "" };
        assert_eq!(stage.why(EDS, "c0"), why, "{dialect:?}, {after} s");
    }
}
