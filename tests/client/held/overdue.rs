// SPDX-License-Identifier: Apache-2.0
//! A hold by reference is no trouble by itself, unless the control plane goes on sending what refers to a resource that it has removed
//! a quarter of an hour ago.

use std::time::Duration;

use xds::{Dialect, Link, Name, TypeUrl};

use super::plane::{listener, route};
use super::stage::{Stage, USUAL};
use super::{BOTH, settled};
use crate::{CDS, LDS, RDS, ms, secs};

const QUARTER: Duration = secs(15 * 60);

/// Whether the hold of `c0` is trouble, and whether the control plane still sends what refers to it.
fn trouble(stage: &Stage) -> (bool, bool) {
    let hold = stage.holds.iter().find(|hold| hold.type_url == TypeUrl::new(CDS));
    let hold = hold.unwrap();
    let by = hold
        .removals
        .get(&Name::from("c0"))
        .and_then(|removal| removal.by.clone());
    (
        hold.is_trouble(stage.upstream.now),
        by.is_some_and(|by| by.link == Link::Sent),
    )
}

/// The listener and its route stay, the cluster is removed.
#[test]
fn a_route_that_still_leads_there() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        stage.remove(CDS, "c0");
        stage.pass(QUARTER - ms(1));
        assert_eq!(trouble(&stage), (false, true), "{dialect:?}");
        stage.pass(ms(1));
        assert_eq!(trouble(&stage), (true, true), "{dialect:?}");
        // The listener leads elsewhere: only a client that drains still wants the old route.
        stage.say(LDS, "l", listener("l", "s", 80));
        assert_eq!(trouble(&stage), (false, false), "{dialect:?}");
        // It leads there again.
        stage.say(LDS, "l", listener("l", "r", 80));
        assert_eq!(trouble(&stage), (true, true), "{dialect:?}");
    }
}

/// The listener that leads there goes, and returns: meanwhile the control plane does not send it.
#[test]
fn a_listener_that_returns() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        stage.remove(CDS, "c0");
        stage.pass(QUARTER);
        stage.remove(LDS, "l");
        stage.exchange();
        assert_eq!(stage.served(LDS), "l", "{dialect:?}");
        assert_eq!(trouble(&stage), (false, false), "{dialect:?}");
        stage.say(LDS, "l", listener("l", "r", 80));
        assert_eq!(trouble(&stage), (true, true), "{dialect:?}");
    }
}

/// A rollout by names with versions: the old route is wanted by clients that drain, for hours, and by nobody in the end.
#[test]
fn a_client_that_drains() {
    let mut stage = settled(Dialect::Sotw, USUAL);
    stage.put(LDS, "l", listener("l", "r-2", 80));
    stage.put(RDS, "r-2", route("r-2", &["c1"]));
    stage.upstream.want(RDS, "r-2");
    stage.wanted.insert("r-2".to_owned());
    stage.remove(RDS, "r");
    stage.exchange();
    stage.remove(CDS, "c0");
    for _ in 0..8 {
        stage.pass(QUARTER);
        assert_eq!(trouble(&stage), (false, false));
    }
    stage.wanted.remove("r");
    stage.exchange();
    stage.pass(Duration::ZERO);
    stage.publish(Vec::new());
    assert!(!stage.served(CDS).contains("c0"), "{}", stage.why(CDS, "c0"));
    assert!(stage.holds.iter().all(|hold| hold.type_url != TypeUrl::new(CDS)));
}
