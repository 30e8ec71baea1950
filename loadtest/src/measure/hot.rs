// SPDX-License-Identifier: Apache-2.0
//! The hot functions that handle a change, each by itself: to be timed (`benches/machines.rs`) and counted in instructions
//! (`gate/run`).
//!
//! Owns the data that each function needs, and builds it before the measurement. Does not know who measures.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use distributary::cache::{Library, Seat, View, ViewSettings};
use distributary::classes::{Class, Classes};
use distributary::identity::Identity;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::protocol::{Opening, Server, StreamLimits, StreamSettings, StreamTimers};
use distributary::wire::{Pieces, ResponseFields, Scan, acknowledgement, encode};
use distributary::xds::{
    Changes, Dialect, Dirty, Name, Phase, Resource, ResourceParts, Sight, Target, TypeUrl, Types, Update, Want,
};
use prost::Message as _;

/// A hot function with the data that it needs; each call is one step.
pub(crate) type Step = Box<dyn FnMut()>;

/// Creates a step when it is to be measured.
pub(crate) type Make = fn() -> Step;

/// All of them by name.
pub(crate) const STEPS: [(&str, Make); 8] = [
    ("compose", compose),
    ("publish-to-100-of-1000", || publish_to_some(1000)),
    ("publish-to-100-of-20000", || publish_to_some(20_000)),
    ("read-100-names", || read(&first_request())),
    ("read-an-acknowledgement", || read(&an_acknowledgement())),
    ("make-a-resource", make_a_resource),
    ("change-one-of-10000", change_one),
    ("ask-beside-10000-unknown", || ask_beside_unknown(10_000)),
];

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// Sessions that get the same change in one step.
const SESSIONS: u32 = 64;

/// One of 1,000 clusters changes, for sessions that are all at the same point; each acknowledges the change.
fn compose() -> Step {
    let (cds, library, now, view) = (TypeUrl::new(CDS), Library::new(1 << 26, 1 << 20), now(), view());
    let all = (0..1000).map(|number| resource(&cds, number, 0));
    publish(&view, &cds, true, all.collect());
    let before = Sight::from(view.cut());
    publish(&view, &cds, true, vec![resource(&cds, 7, 1)]);
    let after = Sight::from(view.cut());
    let first = DeltaDiscoveryRequest {
        type_url: CDS.to_owned(),
        ..Default::default()
    };
    let mut servers: Vec<Server> = (0..SESSIONS).map(server).collect();
    for server in &mut servers {
        drop(server.handle(first.clone(), &library, now));
        deliver(server, &before, CDS, &library, now);
    }
    let (mut next, mut last) = (after, before);
    Box::new(move || {
        for server in &mut servers {
            server.handle_dirty(&cds, Dirty::Names(Vec::new()));
            let responses = deliver(server, &next, CDS, &library, now);
            assert!(responses == 1, "a change was not sent");
        }
        std::mem::swap(&mut next, &mut last);
    })
}

/// One change that 100 of N sessions want, each of which wants 100 names: the sessions are found, their bells ring, and they take
/// the change.
fn publish_to_some(sessions: usize) -> Step {
    let (eds, view) = (TypeUrl::new(EDS), view());
    let seats: Vec<Seat> = (0..sessions).map(|_| view.enter()).collect();
    let want = |seat: &Seat, number: usize| {
        let want = Want {
            type_url: eds.clone(),
            target: Target::Name(name(number)),
            wanted: true,
            written: None,
        };
        assert!(
            seat.want(&want).is_ok(),
            "a subscription was refused although there is no limit"
        );
    };
    for (nth, seat) in seats.iter().enumerate() {
        // The first 100 want name 0; nobody else does.
        (1..100).for_each(|step| want(seat, 1 + (nth * 31 + step * 7919) % 10_000));
        want(seat, if nth < 100 { 0 } else { 10_001 + nth });
    }
    view.settle();
    let mut content = 0_u8;
    Box::new(move || {
        content = content.wrapping_add(1);
        publish(&view, &eds, false, vec![resource(&eds, 0, content)]);
        for seat in seats.iter().take(100) {
            assert!(seat.bell().take().len() == 1, "a change did not ring the bell");
            seat.bell().looked(|_| true);
        }
    })
}

/// A client's request: it is scanned, and decoded unless it is only an acknowledgement.
fn read(request: &DeltaDiscoveryRequest) -> Step {
    let message = Pieces::from(Bytes::from(request.encode_to_vec()));
    Box::new(move || {
        let message = black_box(&message);
        if message.whole().and_then(acknowledgement).is_none() {
            let scanned = black_box(Scan::of(message, Dialect::Delta)).is_ok();
            let mut read = DeltaDiscoveryRequest::default();
            let decoded = message.clone().merge_into(&mut read).is_ok();
            assert!(
                scanned && decoded && black_box(read).node.is_some(),
                "a request was not read"
            );
        }
    })
}

fn first_request() -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(Node {
            id: "a-client".to_owned(),
            ..Default::default()
        }),
        type_url: EDS.to_owned(),
        resource_names_subscribe: (0..100).map(|number| name(number).as_str().to_owned()).collect(),
        ..Default::default()
    }
}

fn an_acknowledgement() -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        type_url: EDS.to_owned(),
        response_nonce: "0a1b2c3d-17".to_owned(),
        ..Default::default()
    }
}

/// A resource of 1 KB arrives: its bytes are joined and hashed.
fn make_a_resource() -> Step {
    let cds = TypeUrl::new(CDS);
    Box::new(move || drop(black_box(resource(&cds, 1, black_box(2)))))
}

/// One of 10,000 resources changes that no session wants: the cost of the state alone.
fn change_one() -> Step {
    let (cds, view) = (TypeUrl::new(CDS), view());
    let all = (0..10_000).map(|number| resource(&cds, number, 0));
    publish(&view, &cds, true, all.collect());
    let mut content = 0_u8;
    Box::new(move || {
        content = content.wrapping_add(1);
        publish(&view, &cds, true, vec![resource(&cds, 4711, content)]);
    })
}

/// A client that waits for many names of which nothing is known asks again for one that is known, and acknowledges it.
fn ask_beside_unknown(unknown: usize) -> Step {
    let (eds, library, now, view) = (TypeUrl::new(EDS), Library::new(1 << 26, 1 << 20), now(), view());
    publish(&view, &eds, false, vec![resource(&eds, 0, 0)]);
    let sight = Sight::from(view.cut());
    let ask = |numbers: std::ops::RangeInclusive<usize>| DeltaDiscoveryRequest {
        type_url: EDS.to_owned(),
        resource_names_subscribe: numbers.map(|number| name(number).as_str().to_owned()).collect(),
        ..Default::default()
    };
    let mut server = server(1);
    drop(server.handle(ask(1..=unknown), &library, now));
    assert!(
        deliver(&mut server, &sight, EDS, &library, now) == 0,
        "an unknown name was answered"
    );
    let again = ask(0..=0);
    Box::new(move || {
        drop(server.handle(again.clone(), &library, now));
        while server.poll_want().is_some() {}
        assert!(
            deliver(&mut server, &sight, EDS, &library, now) == 1,
            "a name was not answered"
        );
    })
}

#[expect(clippy::disallowed_methods, reason = "any instant will do")]
fn now() -> Instant {
    Instant::now()
}

fn name(number: usize) -> Name {
    Name::from(format!("a-name-of-about-forty-bytes-like-many-{number}"))
}

fn resource(type_url: &TypeUrl, number: usize, content: u8) -> Arc<Resource> {
    let parts = ResourceParts {
        type_url,
        name: name(number),
        aliases: Vec::new(),
        passed_on: &[],
        body: &[content; 1024],
        endpoints: None,
        received: now(),
    };
    Arc::new(Resource::new(parts, 0))
}

fn view() -> Arc<View> {
    let bounds = ViewSettings {
        linger: Duration::from_secs(30),
        names_per_view: 0,
        pinned_bytes_per_view: 0,
        history_bytes: 16 << 20,
    };
    View::new(Class::default(), bounds)
}

fn publish(view: &View, type_url: &TypeUrl, wildcard: bool, resources: Vec<Arc<Resource>>) {
    let changes = Changes {
        type_url: type_url.clone(),
        wildcard,
        updates: resources
            .into_iter()
            .map(|resource| Update::Put(resource, None))
            .collect(),
        complete: Some(true),
        answered: Some(true),
        phase: Phase::Steady,
    };
    drop(view.publish(&[changes]));
}

fn server(prefix: u32) -> Server {
    let settings = StreamSettings {
        types: Types::default(),
        limits: StreamLimits::default(),
        timers: StreamTimers::default(),
        classes: Classes::default(),
        anonymous: true,
        relay_id: "relay".to_owned(),
        access: Arc::default(),
    };
    let opening = Opening {
        dialect: Dialect::Delta,
        service: None,
        nonce_prefix: prefix,
        identity: Identity::default(),
        polls: false,
    };
    Server::new(Arc::new(settings), opening)
}

/// Encodes all pending responses to one session, which acknowledges them. Returns how many there were.
fn deliver(server: &mut Server, sight: &Sight, type_url: &str, library: &Library, now: Instant) -> usize {
    let mut responses = 0;
    loop {
        let Some(response) = server.poll_response(sight, library, now) else {
            if server.is_short() {
                continue;
            }
            return responses;
        };
        let (pieces, _) = response.batch.encoded(response.dialect);
        let version = response.version.text();
        let answer = ResponseFields {
            dialect: response.dialect,
            version: &version,
            type_url: response.type_url.url(),
            nonce: response.nonce.as_bytes(),
            identifier: Some("relay"),
        };
        drop(black_box(encode(answer, pieces)));
        drop(black_box(
            server.handle_acknowledgement(type_url.as_bytes(), response.nonce.as_bytes()),
        ));
        responses += 1;
        // As a session: a stream that is done is not polled again before there is input.
        if server.is_done() {
            return responses;
        }
    }
}
