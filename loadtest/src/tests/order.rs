// SPDX-License-Identifier: Apache-2.0
//! Tests make before break, as a client on one stream sees it.

use std::sync::Arc;

use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;

use super::{frame, now};
use crate::fleet::client::profile::{Interest, Profile};
use crate::fleet::client::{Client, Outcome};
use crate::fleet::violation::Violation;
use crate::measure::tally::Tally;
use crate::origin::ledger::Spec;
use crate::origin::world::World;
use crate::wire::kind::{Dialect, Kind};

/// One client that asks for clusters, listeners and the routes of those, as an Envoy does.
struct Envoy {
    world: Arc<World>,
    client: Client,
    said: u32,
}

impl Envoy {
    fn new() -> Self {
        let spec = |kind| Spec {
            kind,
            resources: 2,
            extras: 0,
            bytes: 200,
            authority: None,
        };
        let world = World::new(&[Kind::Cds, Kind::Lds, Kind::Rds].map(spec), now());
        let mut profile = Profile::plain(Dialect::Delta, Kind::Cds, 0);
        profile.interests = vec![
            (Kind::Cds, Interest::All),
            (Kind::Lds, Interest::All),
            (Kind::Rds, Interest::Follow),
        ];
        let mut client = Client::new(0, Arc::new(profile), Arc::clone(&world));
        client.begin(now());
        Self { world, client, said: 0 }
    }

    fn told(&mut self, kind: Kind, came: &[u32], went: &[u32]) -> Result<Outcome, Violation> {
        let ledger = Arc::clone(self.world.ledger(kind).unwrap());
        self.said += 1;
        let resource = |index: &u32| {
            let (body, serial) = ledger.current(*index).unwrap();
            let value = body.unwrap();
            let type_url = kind.type_url().to_owned();
            Resource {
                name: ledger.name(*index),
                version: format!("{}{serial}", kind.word()),
                resource: Some(Any { type_url, value }),
                ..Resource::default()
            }
        };
        let response = DeltaDiscoveryResponse {
            type_url: kind.type_url().to_owned(),
            nonce: self.said.to_string(),
            resources: came.iter().map(resource).collect(),
            removed_resources: went.iter().map(|index| ledger.name(*index)).collect(),
            ..DeltaDiscoveryResponse::default()
        };
        let mut tally = Tally::new().unwrap();
        self.client.handle_data(0, &frame(&response), &mut tally, now())
    }

    fn name(&self, kind: Kind, index: u32) -> String {
        self.world.ledger(kind).unwrap().name(index)
    }
}

#[test]
fn a_route_before_its_cluster_is_a_fault() {
    let mut envoy = Envoy::new();
    envoy.told(Kind::Lds, &[0, 1], &[]).unwrap();
    let route = envoy.name(Kind::Rds, 0);
    assert_eq!(envoy.told(Kind::Rds, &[0, 1], &[]), Err(Violation::Order(route)));
}

#[test]
fn a_cluster_that_goes_before_its_route_is_a_fault() {
    let mut envoy = Envoy::new();
    envoy.told(Kind::Cds, &[0, 1], &[]).unwrap();
    envoy.told(Kind::Lds, &[0, 1], &[]).unwrap();
    envoy.told(Kind::Rds, &[0, 1], &[]).unwrap();
    envoy.world.ledger(Kind::Cds).unwrap().remove(0, 1, now());
    let gone = envoy.told(Kind::Cds, &[], &[0]);
    assert!(matches!(gone, Err(Violation::Order(_))), "{gone:?}");
}
