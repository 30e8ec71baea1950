// SPDX-License-Identifier: Apache-2.0
//! Tests that the checker allows what is right when names and resources go and come back.

use super::{clusters, first_request, now, two_of_four};
use crate::fleet::violation::Violation;
use crate::wire::kind::{Dialect, Kind};

/// A removal may arrive after the resource has come back and gone again: then what comes next is not older.
#[test]
fn a_removal_may_be_the_one_before() {
    let mut bench = clusters();
    bench.feed(&bench.delta("n1", &[0])).unwrap();
    bench.ledger.remove(0, 0, now());
    let mut gone = bench.delta("n2", &[]);
    gone.removed_resources.push(bench.ledger.name(0));
    bench.ledger.change(0, 0, false, now());
    let back = bench.delta("n3", &[0]);
    bench.ledger.remove(0, 0, now());
    bench.feed(&gone).unwrap();
    bench.feed(&back).unwrap();
    assert_eq!(bench.client.check_final(), Err(Violation::Behind(bench.ledger.name(0))));
}

/// B-04: with other names, the version of a set may come again; with the same names it may not.
#[test]
fn a_version_belongs_to_the_names() {
    let mut bench = two_of_four(Dialect::Sotw);
    bench.feed(&bench.sotw("n1", "1", &[0, 1])).unwrap();
    bench.client.handle_wish(Kind::Eds, 4, now());
    bench.feed(&bench.sotw("n2", "1", &[4])).unwrap();
    bench.ledger.change(0, 0, false, now());
    let response = bench.sotw("n3", "1", &[0]);
    assert_eq!(bench.feed(&response), Err(Violation::SameVersion("1".to_owned())));
}

#[test]
fn an_extra_is_for_those_who_ask_for_it() {
    let mut bench = two_of_four(Dialect::Delta);
    let name = bench.ledger.name(4);
    assert_eq!(
        name,
        "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/cluster-0000004"
    );
    assert_eq!(bench.ledger.index(name.as_bytes()), Some(4));
    bench.feed(&bench.delta("n1", &[0, 1])).unwrap();
    bench.client.handle_wish(Kind::Eds, 4, now());
    assert_eq!(bench.client.check_final(), Err(Violation::Behind(name)));
    assert_eq!(bench.feed(&bench.delta("n2", &[4])).unwrap().named, 1);
    assert_eq!(bench.client.check_final(), Ok(()));
    bench.client.begin(now());
    assert_eq!(first_request(&mut bench.client).initial_resource_versions.len(), 3);
    assert_eq!(
        bench.feed(&bench.delta("n3", &[3])),
        Err(Violation::Unrequested(bench.ledger.name(3)))
    );
}
