//! E-26: older content that stands in for condemned content refers to what it names, as long as it stands in.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use xds::{Condemned, Dialect, Name, Objection, Resource, TypeUrl};

use super::plane::{endpoints, listener, route, served_by};
use super::stage::{Stage, USUAL};
use super::{BOTH, settled};
use crate::{CDS, EDS, LDS, RDS};

/// Clients reject what the control plane says of a name now: what it said before stands in for that.
pub(super) fn condemn(stage: &mut Stage, kind: &str, name: &str, says: Bytes) {
    let content = |stage: &Stage| -> Arc<Resource> {
        let slot = stage.upstream.cut.slot(&TypeUrl::new(kind)).unwrap();
        slot.resource(&Name::from(name)).unwrap().clone()
    };
    let stands_in = content(stage);
    stage.put(kind, name, says);
    stage.exchange();
    let condemned = Condemned {
        type_url: TypeUrl::new(kind),
        version: content(stage).version(),
        kind: None,
        stands_in,
        since: stage.upstream.now,
        clients: 2,
        of: 2,
        objection: Arc::new(Objection::new(13, "no", stage.upstream.now)),
    };
    let mut all = Vec::clone(stage.upstream.cut.condemned());
    all.push(Arc::new(condemned));
    stage.upstream.cut = stage.upstream.cut.with_condemned(all);
    stage.publish(Vec::new());
}

pub(super) fn acquit(stage: &mut Stage) {
    stage.upstream.cut = stage.upstream.cut.with_condemned(Vec::new());
    stage.publish(Vec::new());
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_cluster_that_only_the_older_route_names() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        condemn(&mut stage, RDS, "r", route("r", &["c1"]));
        stage.remove(CDS, "c0");
        stage.pass(HOUR);
        assert!(stage.served(CDS).starts_with("c0 "), "{dialect:?}");
        assert_eq!(stage.why(CDS, "c0"), "referenced by rds r");
        // Both name it, then only the older one again.
        stage.put(RDS, "r", route("r", &["c0", "c1"]));
        stage.pass(HOUR);
        stage.put(RDS, "r", route("r", &["c1"]));
        stage.pass(HOUR);
        assert!(stage.served(CDS).starts_with("c0 "), "{dialect:?}");
        acquit(&mut stage);
        assert!(stage.served(CDS).starts_with("c1 "), "{dialect:?}");
    }
}

/// What is served keeps what it names when the verdict ends.
#[test]
fn a_cluster_that_both_routes_name() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        condemn(&mut stage, RDS, "r", route("r", &["c0"]));
        stage.remove(CDS, "c0");
        stage.pass(HOUR);
        acquit(&mut stage);
        stage.pass(HOUR);
        assert_eq!(stage.why(CDS, "c0"), "referenced by rds r", "{dialect:?}");
    }
}

/// The older listener has a route of its own, which leads to a cluster.
#[test]
fn a_route_that_only_the_older_listener_names() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.wanted.clear();
    condemn(&mut stage, LDS, "l", listener("l", "other", 80));
    stage.remove(RDS, "r");
    stage.remove(CDS, "c0");
    stage.pass(HOUR);
    assert_eq!(
        (stage.served(RDS).as_str(), stage.why(RDS, "r").as_str()),
        ("r", "referenced by lds l")
    );
    assert_eq!(stage.why(CDS, "c0"), "referenced by rds r");
    // The listener goes, and all that only the older one named goes with it.
    stage.remove(LDS, "l");
    stage.pass(Duration::from_secs(10));
    assert_eq!((stage.served(LDS).as_str(), stage.served(RDS).as_str()), ("", ""));
    assert!(stage.served(CDS).starts_with("c1 "));
}

/// The older cluster takes its endpoints from elsewhere.
#[test]
fn endpoints_of_the_older_cluster() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.put(EDS, "c0", endpoints("c0", 3));
    condemn(&mut stage, CDS, "c0", served_by("c0", "new"));
    stage.remove(EDS, "c0");
    stage.pass(HOUR);
    assert!(stage.served(EDS).starts_with("c0 "));
    assert_eq!(stage.why(EDS, "c0"), "referenced by cds c0");
    condemn(&mut stage, CDS, "c1", served_by("c1", "new"));
    assert!(stage.served(EDS).starts_with("c0 "));
    acquit(&mut stage);
    assert!(stage.served(EDS).starts_with("c1 "));
}
