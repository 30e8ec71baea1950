// SPDX-License-Identifier: Apache-2.0
//! Tests that the reader reads the same however the bytes are split, and that the checker finds every fault.

mod again;
mod dump;
mod faults;
mod foreign;
mod habits;
mod identities;
mod keys;
mod order;
mod outside;
mod places;
mod polls;
mod presence;
mod returning;
mod scenarios;
mod streams;
mod waits;

use std::sync::Arc;

use distributary::proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryResponse, Resource,
};
use distributary::proto::google::protobuf::Any;
use peers::request::framed as frame;
use prost::Message;

use crate::fleet::client::profile::{Behaviour, Interest, Names, Profile};
use crate::fleet::client::{Client, Outcome, Output};
use crate::fleet::violation::Violation;
use crate::measure::now;
use crate::measure::tally::Tally;
use crate::origin::ledger::{Ledger, Spec};
use crate::origin::world::World;
use crate::wire::kind::{Dialect, Kind};
use crate::wire::{Malformed, Reader, Unit};

impl Profile {
    /// The simplest client: it asks for everything of one type, or for names of it.
    pub(crate) fn plain(dialect: Dialect, kind: Kind, names: u32) -> Self {
        let interest = if kind.wildcard() {
            Interest::All
        } else {
            Interest::Names(Names {
                count: names,
                random: false,
                sets: None,
                hot: [0; 3],
            })
        };
        Self {
            dialect,
            aggregated: true,
            above: false,
            interests: vec![(kind, interest)],
            polls: None,
            behaviour: Behaviour::default(),
            identity: Arc::default(),
        }
    }
}

impl World {
    /// A world with one type.
    pub(crate) fn of(ledger: Arc<Ledger>) -> Arc<Self> {
        let bell = Arc::clone(ledger.bell());
        Self::with(vec![ledger], bell)
    }
}

/// One client of a control plane with four resources, all of which it wants.
struct Bench {
    ledger: Arc<Ledger>,
    client: Client,
    tally: Tally,
}

impl Bench {
    fn new(dialect: Dialect, kind: Kind) -> Self {
        Self::with(Ledger::new(kind, 4, 100, now()), Profile::plain(dialect, kind, 4))
    }

    fn with(ledger: Ledger, profile: Profile) -> Self {
        let ledger = Arc::new(ledger);
        let mut client = Client::new(0, Arc::new(profile), World::of(Arc::clone(&ledger)));
        client.begin(now());
        Self {
            ledger,
            client,
            tally: Tally::new().unwrap(),
        }
    }

    fn feed(&mut self, message: &impl Message) -> Result<Outcome, Violation> {
        let bytes = frame(message);
        let outcome = self.client.handle_data(0, &bytes, &mut self.tally, now())?;
        assert_eq!(outcome.messages, 1);
        Ok(outcome)
    }

    /// The resource as it is now.
    fn resource(&self, index: u32) -> Resource {
        let (body, serial) = self.ledger.current(index).unwrap();
        Resource {
            name: self.ledger.name(index),
            version: format!("v{serial}"),
            resource: Some(self.any(body.unwrap())),
            ..Resource::default()
        }
    }

    fn any(&self, value: bytes::Bytes) -> Any {
        Any {
            type_url: self.ledger.kind().type_url().to_owned(),
            value,
        }
    }

    fn delta(&self, nonce: &str, indexes: &[u32]) -> DeltaDiscoveryResponse {
        DeltaDiscoveryResponse {
            type_url: self.ledger.kind().type_url().to_owned(),
            nonce: nonce.to_owned(),
            resources: indexes.iter().map(|index| self.resource(*index)).collect(),
            ..DeltaDiscoveryResponse::default()
        }
    }

    fn sotw(&self, nonce: &str, version: &str, indexes: &[u32]) -> DiscoveryResponse {
        DiscoveryResponse {
            type_url: self.ledger.kind().type_url().to_owned(),
            nonce: nonce.to_owned(),
            version_info: version.to_owned(),
            resources: indexes
                .iter()
                .filter_map(|index| self.resource(*index).resource)
                .collect(),
            ..DiscoveryResponse::default()
        }
    }
}

fn clusters() -> Bench {
    Bench::new(Dialect::Delta, Kind::Cds)
}

#[test]
fn a_stream_reads_the_same_in_pieces_of_any_size() {
    let bench = clusters();
    let mut stream = frame(&bench.delta("n1", &[0, 1, 2, 3])).to_vec();
    stream.extend(frame(&DeltaDiscoveryResponse::default()));
    stream.extend(frame(&bench.delta("n2", &[])));
    let read = |size: usize| {
        let (mut reader, mut units, mut body) = (Reader::new(Dialect::Delta), Vec::new(), Vec::new());
        for piece in stream.chunks(size) {
            let read = reader.feed(piece, |unit| {
                let Unit::Body(piece) = unit else {
                    units.push(format!("{unit:?}"));
                    return Ok::<(), Malformed>(());
                };
                assert_eq!(piece.first, body.is_empty());
                body.extend_from_slice(piece.bytes);
                if piece.last {
                    units.push(format!("{:?}", std::mem::take(&mut body)));
                }
                Ok(())
            });
            read.unwrap();
        }
        units
    };
    let whole = read(stream.len());
    assert_eq!(whole.iter().filter(|unit| unit.starts_with("End")).count(), 3);
    for size in 1..150 {
        assert_eq!(read(size), whole, "pieces of {size}");
    }
}

#[test]
fn broken_streams_are_told_from_short_ones() {
    let read = |bytes: &[u8]| Reader::new(Dialect::Delta).feed(bytes, |_: Unit<'_>| Ok::<(), Malformed>(()));
    assert_eq!(read(&[1, 0, 0, 0, 1]), Err(Malformed::Compressed));
    assert_eq!(read(&[0, 0, 0, 0, 2, 0x12, 0x05]), Err(Malformed::Overrun));
    assert_eq!(read(&[0, 0, 0, 0, 9, 0x13]), Err(Malformed::WireType(3)));
    assert_eq!(read(&[0, 0, 0, 0, 99, 0x12]), Ok(()));
}

#[test]
fn a_client_is_complete_once() {
    let mut bench = clusters();
    assert!(!bench.feed(&bench.delta("n1", &[0, 1])).unwrap().completed);
    assert!(bench.feed(&bench.delta("n2", &[2, 3])).unwrap().completed);
    assert_eq!(bench.client.check_final(), Ok(()));
    let content = bench.ledger.change(2, 1, true, now()).unwrap();
    assert_eq!(bench.client.check_final(), Err(Violation::Behind(bench.ledger.name(2))));
    assert!(!bench.feed(&bench.delta("n3", &[2])).unwrap().completed);
    assert_eq!(content.awaited.load(std::sync::atomic::Ordering::Relaxed), 0);
    assert_eq!(
        (bench.tally.delivered, bench.tally.responses, bench.tally.repeated),
        (1, 3, 0)
    );
    assert_eq!(bench.client.check_final(), Ok(()));
}

/// C-19, E-12.
#[test]
fn a_name_twice_is_a_fault() {
    let mut bench = clusters();
    assert_eq!(
        bench.feed(&bench.delta("n1", &[1, 1])),
        Err(Violation::Twice(bench.ledger.name(1)))
    );
    let mut bench = clusters();
    let mut response = bench.delta("n1", &[1]);
    response.removed_resources.push(bench.ledger.name(1));
    assert_eq!(bench.feed(&response), Err(Violation::Twice(bench.ledger.name(1))));
}

/// B-03, C-01.
#[test]
fn a_nonce_twice_or_none_is_a_fault() {
    let mut bench = clusters();
    bench.feed(&bench.delta("n1", &[0])).unwrap();
    assert_eq!(
        bench.feed(&bench.delta("n1", &[1])),
        Err(Violation::Nonce("n1".to_owned()))
    );
    let mut bench = clusters();
    assert_eq!(bench.feed(&bench.delta("", &[0])), Err(Violation::Nonce(String::new())));
}

///
#[test]
fn another_type_is_a_fault() {
    let mut bench = clusters();
    let mut response = bench.delta("n1", &[0]);
    response.type_url = Kind::Eds.type_url().to_owned();
    assert!(matches!(bench.feed(&response), Err(Violation::WrongType(_))));
    let mut bench = clusters();
    let mut response = bench.delta("n1", &[0]);
    response.resources[0].resource.as_mut().unwrap().type_url = Kind::Eds.type_url().to_owned();
    assert!(matches!(bench.feed(&response), Err(Violation::WrongType(_))));
}

#[test]
fn bytes_that_nobody_sent_are_a_fault() {
    let mut bench = clusters();
    let mut response = bench.delta("n1", &[0]);
    response.resources[0].resource = bench.resource(1).resource;
    assert_eq!(bench.feed(&response), Err(Violation::Foreign(bench.ledger.name(0))));
}

#[test]
fn what_was_not_asked_for_is_a_fault() {
    // Client 0 asks for the first two.
    let mut bench = two_of_four(Dialect::Delta);
    assert!(bench.feed(&bench.delta("n1", &[0, 1])).unwrap().completed);
    assert_eq!(
        bench.feed(&bench.delta("n2", &[2])),
        Err(Violation::Unrequested(bench.ledger.name(2)))
    );
}

#[test]
fn older_content_is_a_fault() {
    let mut bench = clusters();
    let old = bench.delta("n2", &[0]);
    bench.ledger.change(0, 1, false, now());
    bench.feed(&bench.delta("n1", &[0])).unwrap();
    assert_eq!(bench.feed(&old), Err(Violation::Older(bench.ledger.name(0))));
}

/// C-18.
#[test]
fn a_version_means_one_content() {
    let mut bench = clusters();
    bench.feed(&bench.delta("n1", &[0])).unwrap();
    bench.ledger.change(0, 1, false, now());
    let mut response = bench.delta("n2", &[0]);
    response.resources[0].version = "v0".to_owned();
    assert_eq!(bench.feed(&response), Err(Violation::Version(bench.ledger.name(0))));
    let mut bench = clusters();
    let mut response = bench.delta("n1", &[1]);
    response.resources[0].version.clear();
    assert_eq!(bench.feed(&response), Err(Violation::NoVersion));
}

/// Another server than this program's may give resources no version, as istiod does.
#[test]
fn a_foreign_server_may_leave_out_versions() {
    let ledger = Ledger::learning(Kind::Cds, Arc::default());
    let mut bench = Bench::with(ledger, Profile::plain(Dialect::Delta, Kind::Cds, 4));
    let mut response = clusters().delta("n1", &[1]);
    response.resources[0].version.clear();
    assert_eq!(bench.feed(&response).unwrap().messages, 1);
}

/// G-20, K-16: nothing is removed out of ignorance.
#[test]
fn a_removal_must_be_true() {
    let mut bench = clusters();
    bench.feed(&bench.delta("n1", &[0, 1])).unwrap();
    let mut response = bench.delta("n2", &[]);
    response.removed_resources.push(bench.ledger.name(0));
    bench.ledger.remove(0, 1, now());
    bench.feed(&response).unwrap();
    response.nonce = "n3".to_owned();
    response.removed_resources = vec![bench.ledger.name(1)];
    assert_eq!(bench.feed(&response), Err(Violation::Lost(bench.ledger.name(1))));
}

/// B-16, B-04.
#[test]
fn a_full_state_takes_away_what_it_lacks() {
    let mut bench = Bench::new(Dialect::Sotw, Kind::Cds);
    assert!(bench.feed(&bench.sotw("n1", "1", &[0, 1, 2, 3])).unwrap().completed);
    bench.ledger.remove(3, 1, now());
    bench.feed(&bench.sotw("n2", "2", &[0, 1, 2])).unwrap();
    assert_eq!(bench.client.check_final(), Ok(()));
    assert_eq!(
        bench.feed(&bench.sotw("n3", "3", &[0, 1])),
        Err(Violation::Lost(bench.ledger.name(2)))
    );

    let mut bench = Bench::new(Dialect::Sotw, Kind::Cds);
    bench.feed(&bench.sotw("n1", "1", &[0, 1, 2, 3])).unwrap();
    bench.ledger.change(1, 1, false, now());
    let response = bench.sotw("n2", "1", &[0, 1, 2, 3]);
    assert_eq!(bench.feed(&response), Err(Violation::SameVersion("1".to_owned())));
}

/// B-16: a state that is not full changes nothing about the resources that it lacks.
#[test]
fn a_named_state_takes_nothing_away() {
    let mut bench = Bench::new(Dialect::Sotw, Kind::Eds);
    bench.feed(&bench.sotw("n1", "1", &[0, 1, 2, 3])).unwrap();
    bench.feed(&bench.sotw("n2", "2", &[0])).unwrap();
    assert_eq!(bench.client.check_final(), Ok(()));
}

/// C-06: a client that comes back says the versions of what it holds; what was removed meanwhile is sent like any other removal.
#[test]
fn a_client_comes_back_with_what_it_holds() {
    let mut bench = clusters();
    bench.feed(&bench.delta("n1", &[0, 1, 2, 3])).unwrap();
    bench.ledger.remove(3, 1, now());
    let mut response = bench.delta("n2", &[]);
    response.removed_resources.push(bench.ledger.name(3));
    bench.feed(&response).unwrap();
    bench.client.begin(now());
    let expected = (0..3).map(|index| (bench.ledger.name(index), "v0".to_owned()));
    assert_eq!(
        first_request(&mut bench.client).initial_resource_versions,
        expected.collect()
    );
    // B-03: nonces belong to one stream.
    bench.feed(&bench.delta("n1", &[])).unwrap();
    assert_eq!(bench.client.check_final(), Ok(()));
}

/// A client that asks for the first two of four endpoints by name; there is a fifth.
fn two_of_four(dialect: Dialect) -> Bench {
    let spec = Spec {
        kind: Kind::Eds,
        resources: 4,
        extras: 1,
        bytes: 100,
        authority: Some("a"),
    };
    let names = Names {
        count: 2,
        random: false,
        sets: None,
        hot: [0; 3],
    };
    let mut profile = Profile::plain(dialect, Kind::Eds, 2);
    profile.interests = vec![(Kind::Eds, Interest::Names(names))];
    Bench::with(Ledger::alone(spec, now()), profile)
}

/// Returns the first request on the stream that a client opens.
fn first_request(client: &mut Client) -> DeltaDiscoveryRequest {
    while let Some(output) = client.poll_output() {
        if let Output::Send(0, bytes) = output {
            return DeltaDiscoveryRequest::decode(bytes.get(5..).unwrap()).unwrap();
        }
    }
    panic!("it says nothing");
}
