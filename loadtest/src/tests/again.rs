// SPDX-License-Identifier: Apache-2.0
//! Tests of a second run at a relay that still has what the first run said.

use std::sync::Arc;
use std::time::Duration;

use super::now;
use super::scenarios::try_record;
use crate::fleet::client::profile::Profile;
use crate::fleet::crew::Crew;
use crate::fleet::{Fleet, Plan};
use crate::measure::quantities::Time;
use crate::origin::control_plane::ControlPlane;
use crate::origin::ledger::{Spec, What};
use crate::origin::world::World;
use crate::story::file::Scenario;
use crate::subject::relay::free_address;
use crate::wire::kind::{Dialect, Kind};
use crate::wire::place::Target;

/// A relay that ran before serves what it kept of an earlier run, until it has found the control plane of this one.
#[test]
fn what_is_kept_of_an_earlier_run_is_no_breach() {
    let mut scenario = Scenario::read(
        "here",
        "description: Again.
world: { cds: { count: 3, bytes: 200 } }
clients: { count: 4, groups: [{ kind: clusters }] }
phases: [{ name: join, do: { join: {} } }, { name: rest, do: { rest: 100ms } }]
",
        None,
        &[],
    )
    .unwrap();
    // In place of the relay: what it serves, and its stream to the control plane.
    let spec = Spec {
        kind: Kind::Cds,
        resources: 3,
        extras: 0,
        bytes: 200,
        authority: None,
    };
    let kept = World::new(&[spec], now());
    let clusters = Arc::clone(kept.ledger(Kind::Cds).unwrap());
    clusters.change(1, 0, false, now()).unwrap();
    let relay = ControlPlane::start("127.0.0.1:0".parse().unwrap(), kept, None).unwrap();
    let own = free_address().unwrap();
    let words = format!("--server {} --control-plane {own}", relay.address);
    let mut tried = |millis| {
        scenario.phases[0].limit = Some(Time(Duration::from_millis(millis)));
        try_record(&scenario, &words)
    };
    let unasked = tried(300).unwrap_err().to_string();
    assert!(
        unasked.contains("its upstream must be") && unasked.contains(&own.to_string()),
        "{unasked}"
    );
    let mut profile = Profile::plain(Dialect::Delta, Kind::Cds, 0);
    profile.behaviour.returns = true;
    let plan = Plan {
        target: Target::local(own, None),
        clients: 1,
        per_connection: 1,
        world: World::learning(),
        crew: Crew::of(profile),
        above: None,
    };
    let upstream = Fleet::start(&plan).unwrap();
    upstream.admit(1);
    let kept = tried(2000).unwrap_err().to_string();
    assert!(
        kept.contains("still serves `cluster-0000001` as an earlier control plane did"),
        "{kept}"
    );
    let asked = upstream.progress.messages();
    let finds = std::thread::spawn(move || {
        let begin = now();
        while upstream.progress.messages() == asked {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "the control plane does not answer"
            );
            std::thread::yield_now();
        }
        clusters.write(1, What::Former, 0, false, now()).unwrap();
        clusters.announce(&[1]);
        upstream
    });
    let record = tried(60000).unwrap();
    assert!(record.held(), "{:#?}\n{:#?}", record.assertions, record.breaches);
    finds.join().unwrap().stop().unwrap();
}
