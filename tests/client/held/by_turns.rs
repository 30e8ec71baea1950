// SPDX-License-Identifier: Apache-2.0
//! Sessions that move between servers while something is held: its clock, and what a person said, go along.

use std::time::Duration;

use xds::{GuardSettings, HeldRemoval, HoldAction, HoldTarget, HoldTimes, Name, TypeUrl};

use super::BOTH;
use super::clocks::{halved, reconnect};
use super::stage::{Stage, USUAL};
use crate::{CDS, LDS, RDS, secs};

const SECOND: Duration = secs(1);
const SETTINGS: GuardSettings = GuardSettings {
    hold: HoldTimes::all(secs(300)),
    ..USUAL
};

/// The sessions move from this stage to a new one, whose server has the same.
fn moved(from: &mut Stage) -> Stage {
    from.guard.handle_server(false, from.upstream.now);
    from.publish(Vec::new());
    let mut stage = Stage::new(from.dialect, SETTINGS, &[(LDS, "*"), (CDS, "*"), (RDS, "r")]);
    stage.wanted.insert("r".to_owned());
    stage.upstream.now = from.upstream.now;
    stage.plane.content = from.plane.content.clone();
    stage.elsewhere = Some(from.upstream.cut.clone().into());
    stage
}

fn held<'a>(stage: &'a Stage, name: &str) -> (&'a HeldRemoval, Duration) {
    let name = Name::from(name);
    let mut holds = stage.holds.iter();
    let hold = holds.find(|hold| hold.removals.contains_key(&name)).unwrap();
    (&hold.removals[&name], hold.clock.unwrap().left(stage.upstream.now))
}

/// D-10: two servers lack the same, and sessions read them by turns. The view of one of them is a new one each time, the other one waits
/// meanwhile. It is one clock for both, which is given more time five times at most.
#[test]
fn two_servers_that_lack_the_same() {
    for dialect in BOTH {
        let mut first = halved(dialect, SETTINGS, 50 * SECOND);
        let mut served = 50 * SECOND;
        while !first.why(CDS, "c0").is_empty() {
            assert!(served < 700 * SECOND, "{dialect:?}: they keep it alive by turns");
            let mut second = moved(&mut first);
            second.pass(50 * SECOND);
            first.pass(50 * SECOND);
            first.elsewhere = Some(second.upstream.cut.into());
            reconnect(&mut first);
            first.pass(50 * SECOND);
            served += 100 * SECOND;
        }
        assert!(served > 300 * SECOND, "{dialect:?}: {served:?}");
        assert_eq!(first.served(CDS), "c5 c6 c7 c8 c9", "{dialect:?}");
        println!("{dialect:?}: {served:?}");
    }
}

/// What is held comes with the time since when, what is left of its clock, and what a person said of it; what the other server lacks
/// besides is another judgement, with a clock of its own. What is nearly over lasts a minute.
#[test]
fn what_is_held_comes_with_its_clock() {
    for dialect in BOTH {
        let mut first = halved(dialect, SETTINGS, 100 * SECOND);
        let since = held(&first, "c0").0.since;
        let left = held(&first, "c0").1;
        let mass = HoldTarget::Resource(TypeUrl::new(CDS), Name::from("c1"));
        assert_eq!(first.order(mass, HoldAction::Extend(900 * SECOND)), 1);
        let until = held(&first, "c1").0.extended.clone();
        assert!(until.is_some());

        let mut second = moved(&mut first);
        second.remove(CDS, "c5");
        second.remove(CDS, "c6");
        second.remove(CDS, "c7");
        second.pass(4 * SECOND);
        let (c0, left_there) = held(&second, "c0");
        assert_eq!(
            (c0.since, left_there, &c0.extended),
            (since, left, &None),
            "{dialect:?}"
        );
        assert_eq!(held(&second, "c1").0.extended, until, "{dialect:?}");
        let (c5, all) = held(&second, "c5");
        assert_eq!((all, c5.since > since), (SETTINGS.hold.other, true), "{dialect:?}");

        second.pass(150 * SECOND);
        let mut third = moved(&mut second);
        third.pass(4 * SECOND);
        assert_eq!(held(&third, "c0").1, 60 * SECOND, "{dialect:?}");
        assert_eq!(third.after(80 * SECOND).served(CDS), "c1 c5 c6 c7 c8 c9", "{dialect:?}");
        assert_eq!(third.after(600 * SECOND).served(CDS), "c1 c8 c9", "{dialect:?}");
        assert_eq!(third.after(200 * SECOND).served(CDS), "c8 c9", "{dialect:?}");
    }
}
