// SPDX-License-Identifier: Apache-2.0
//! K-37: older content that clients use because they reject the current one refers to what it names.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use xds::{Dialect, GuardSettings, Name, Older, Resource, TypeUrl};

use super::plane::{endpoints, listener, route, served_by};
use super::stage::{Stage, USUAL};
use super::{BOTH, settled};
use crate::{CDS, EDS, LDS, RDS, secs};

/// Clients reject what the control plane says of a name now, and go on using what it said before.
pub(super) fn reject(stage: &mut Stage, kind: &str, name: &str, says: Bytes) {
    let content = |stage: &Stage| -> Arc<Resource> {
        let slot = stage.upstream.cut.slot(&TypeUrl::new(kind)).unwrap();
        slot.resource(&Name::from(name)).unwrap().clone()
    };
    let older = content(stage);
    stage.say(kind, name, says);
    let mut all = Vec::clone(stage.upstream.cut.older());
    all.push(Older {
        type_url: TypeUrl::new(kind),
        content: older,
        since: stage.upstream.now,
        keepers: Vec::new(),
        refers: true,
    });
    stage.upstream.cut = stage.upstream.cut.with_older(all);
    stage.publish(Vec::new());
}

/// No client uses older content any more.
pub(super) fn leave(stage: &mut Stage) {
    stage.upstream.cut = stage.upstream.cut.with_older(Vec::new());
    stage.publish(Vec::new());
}

const HOUR: Duration = secs(3600);

/// By default; where references hold nothing else; and behind another relay, which knows nothing of what clients use here.
fn settings(dialect: Dialect) -> [Stage; 3] {
    let off = GuardSettings {
        references: false,
        ..USUAL
    };
    let mut all = [USUAL, off, USUAL].map(|settings| settled(dialect, settings));
    all[2].put_between();
    all[2].pass(secs(20));
    all
}

#[test]
fn a_cluster_that_only_the_older_route_names() {
    for (dialect, mut stage) in BOTH
        .into_iter()
        .flat_map(|dialect| settings(dialect).map(|stage| (dialect, stage)))
    {
        reject(&mut stage, RDS, "r", route("r", &["c1"]));
        stage.remove(CDS, "c0");
        assert!(stage.after(HOUR).served(CDS).starts_with("c0 "), "{dialect:?}");
        assert_eq!(stage.why(CDS, "c0"), "referenced by rds r");
        // Both name it, then only the older one again.
        stage.put(RDS, "r", route("r", &["c0", "c1"]));
        stage.pass(HOUR);
        stage.put(RDS, "r", route("r", &["c1"]));
        assert!(stage.after(HOUR).served(CDS).starts_with("c0 "), "{dialect:?}");
        leave(&mut stage);
        assert!(stage.served(CDS).starts_with("c1 "), "{dialect:?}");
    }
}

/// What is served keeps what it names when nobody uses the older one any more.
#[test]
fn a_cluster_that_both_routes_name() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        reject(&mut stage, RDS, "r", route("r", &["c0"]));
        stage.remove(CDS, "c0");
        stage.pass(HOUR);
        leave(&mut stage);
        assert_eq!(stage.after(HOUR).why(CDS, "c0"), "referenced by rds r", "{dialect:?}");
    }
}

/// The older listener has a route of its own, which leads to a cluster.
#[test]
fn a_route_that_only_the_older_listener_names() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.wanted.clear();
    reject(&mut stage, LDS, "l", listener("l", "other", 80));
    stage.remove(RDS, "r");
    stage.remove(CDS, "c0");
    assert_eq!(stage.after(HOUR).served(RDS), "r");
    assert_eq!(stage.why(RDS, "r"), "referenced by lds l");
    assert_eq!(stage.why(CDS, "c0"), "referenced by rds r");
    // The listener goes, and all that only the older one named goes with it.
    stage.remove(LDS, "l");
    stage.pass(secs(10));
    assert_eq!((stage.served(LDS).as_str(), stage.served(RDS).as_str()), ("", ""));
    assert!(stage.served(CDS).starts_with("c1 "));
}

/// The older cluster takes its endpoints from elsewhere.
#[test]
fn endpoints_of_the_older_cluster() {
    for mut stage in settings(Dialect::Delta) {
        stage.put(EDS, "c0", endpoints("c0", 3));
        reject(&mut stage, CDS, "c0", served_by("c0", "new"));
        stage.remove(EDS, "c0");
        assert!(stage.after(HOUR).served(EDS).starts_with("c0 "));
        assert_eq!(stage.why(EDS, "c0"), "referenced by cds c0");
        reject(&mut stage, CDS, "c1", served_by("c1", "new"));
        assert!(stage.served(EDS).starts_with("c0 "));
        leave(&mut stage);
        assert!(stage.served(EDS).starts_with("c1 "));
    }
}
