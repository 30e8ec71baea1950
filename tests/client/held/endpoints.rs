// SPDX-License-Identifier: Apache-2.0
//! Control planes that say of the endpoints of a removed cluster that there are none, before they send the routes that leave it: istiod.

use xds::GuardSettings;

use super::plane::{endpoints, route};
use super::stage::USUAL;
use super::{BOTH, settled};
use crate::{CDS, EDS, RDS, ms, secs};

/// D-03, D-09: the endpoints of a removed cluster stay as long as the cluster, also if they are emptied and not removed.
#[test]
fn a_removed_cluster_keeps_its_endpoints() {
    for (dialect, settings) in BOTH.map(|dialect| (dialect, USUAL)) {
        let mut stage = settled(dialect, settings);
        stage.remove(CDS, "c0");
        stage.exchange();
        stage.put(EDS, "c0", endpoints("c0", 0));
        stage.pass(ms(50));
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 2)), "{dialect:?}");
        assert_eq!(stage.after(secs(60)).why(CDS, "c0"), "referenced by rds r");
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 2)), "{dialect:?}");
        // Endpoints of others never wait.
        stage.say(EDS, "c1", endpoints("c1", 0));
        assert_eq!(stage.body(EDS, "c1"), Some(endpoints("c1", 0)));
        stage.say(RDS, "r", route("r", &["c1"]));
        assert!(stage.served(CDS).starts_with("c1 "), "{dialect:?}");
        assert!(stage.holds.is_empty(), "{:?}", stage.holds);
        stage.pass(ms(1999));
        assert_eq!(
            stage.body(EDS, "c0"),
            Some(endpoints("c0", 2)),
            "{dialect:?}: clients use it still"
        );
        stage.pass(ms(1));
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 0)), "{dialect:?}");
        assert!(stage.guard.poll_timeout().is_none());
    }
}

/// The same within the quiet time, with every rule but that one off.
#[test]
fn in_one_burst() {
    for dialect in BOTH {
        let mut stage = settled(dialect, GuardSettings::OFF);
        stage.remove(CDS, "c0");
        stage.exchange();
        stage.put(EDS, "c0", endpoints("c0", 0));
        stage.pass(ms(50));
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 2)), "{dialect:?}");
        stage.put(RDS, "r", route("r", &["c1"]));
        stage.pass(ms(99));
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 2)), "{dialect:?}");
        assert!(stage.after(ms(1)).served(CDS).starts_with("c1 "), "{dialect:?}");
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 2)), "{dialect:?}");
        stage.pass(ms(2000));
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 0)), "{dialect:?}");
    }
}

/// A cluster that returns has the endpoints that were said last, none or others.
#[test]
fn a_cluster_that_returns() {
    for (dialect, last) in BOTH.iter().flat_map(|dialect| [0, 3].map(|last| (*dialect, last))) {
        let mut stage = settled(dialect, USUAL);
        let content = stage.plane.content[CDS]["c0"].clone();
        stage.remove(CDS, "c0");
        stage.exchange();
        stage.put(EDS, "c0", endpoints("c0", 0));
        stage.pass(secs(1));
        if last > 0 {
            stage.say(EDS, "c0", endpoints("c0", last));
            assert_eq!(
                stage.body(EDS, "c0"),
                Some(endpoints("c0", last)),
                "{dialect:?}: new ones pass"
            );
        }
        stage.say(CDS, "c0", content);
        if last == 0 {
            assert_eq!(
                stage.body(EDS, "c0"),
                Some(endpoints("c0", 2)),
                "{dialect:?}: others may come"
            );
        }
        stage.pass(ms(100));
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", last)), "{dialect:?}");
        assert!(stage.holds.is_empty(), "{:?}", stage.holds);
    }
}

/// A cluster that stays is drained at once, be it that others go.
#[test]
fn a_drain_beside_a_removal() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        stage.remove(CDS, "c0");
        stage.say(EDS, "c1", endpoints("c1", 0));
        assert_eq!(stage.body(EDS, "c1"), Some(endpoints("c1", 0)), "{dialect:?}");
    }
}
