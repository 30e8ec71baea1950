//! The machines on the way of a change, each by itself: `cargo bench -p distributary-load`. Times are for comparing two builds on one
//! machine; what may fail a build is counted in instructions (`loadtest/gate/run`).

#![expect(missing_docs, reason = "what the macros of criterion write has none")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use distributary::cache::{Library, Seat, Settings as Bounds, View};
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::protocol::{Limits, Opening, Server, Settings, Timers};
use distributary::wire::{Answer, Scan, acknowledgement, encode};
use distributary::xds::{
    Changes, Class, Dialect, Dirty, Name, Resource, ResourceParts, Sight, Target, TypeUrl, Types, Update, Want,
};
use prost::Message as _;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// Sessions that get the same change.
const SESSIONS: u32 = 64;

#[expect(clippy::disallowed_methods, reason = "any instant will do")]
fn now() -> Instant {
    Instant::now()
}

fn name(number: usize) -> Name {
    Name::from(format!("a-name-of-about-forty-bytes-like-many-{number}"))
}

fn resource(type_url: &TypeUrl, number: usize, content: u8) -> Arc<Resource> {
    let parts = ResourceParts {
        constraints: None,
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
    let bounds = Bounds {
        linger: Duration::from_secs(30),
        names_per_view: 0,
        pinned_bytes_per_view: 0,
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
    };
    drop(view.publish(&[changes]));
}

fn server(prefix: u32) -> Server {
    let settings = Settings {
        types: Types::default(),
        limits: Limits::default(),
        timers: Timers::default(),
        anonymous: true,
        relay_id: "relay".to_owned(),
    };
    let opening = Opening {
        dialect: Dialect::Delta,
        service: None,
        nonce_prefix: prefix,
    };
    Server::new(Arc::new(settings), opening)
}

/// Says what there is to say to one session, as bytes; and the session acknowledges it. Gives how many responses there were.
fn deliver(server: &mut Server, sight: &Sight, library: &Library, now: Instant) -> usize {
    let mut responses = 0;
    while let Some(response) = server.poll_response(sight, library, now) {
        let (pieces, _) = response.batch.encoded(response.chunk, response.dialect);
        let version = response.version.text();
        let answer = Answer {
            dialect: response.dialect,
            version: &version,
            type_url: response.type_url.url(),
            nonce: response.nonce.as_bytes(),
            identifier: Some("relay"),
        };
        black_box(encode(answer, pieces));
        let request = DeltaDiscoveryRequest {
            type_url: CDS.to_owned(),
            response_nonce: response.nonce.to_string(),
            ..Default::default()
        };
        drop(black_box(server.handle_delta(&request, library, now)));
        responses += 1;
    }
    responses
}

/// One changed cluster of 1,000 to sessions that all stand at the same point.
fn compose(criterion: &mut Criterion) {
    let (cds, library, now, view) = (TypeUrl::new(CDS), Library::new(1 << 26, 1 << 20), now(), view());
    publish(
        &view,
        &cds,
        true,
        (0..1000).map(|number| resource(&cds, number, 0)).collect(),
    );
    let before = Sight::from(view.cut());
    publish(&view, &cds, true, vec![resource(&cds, 7, 1)]);
    let after = Sight::from(view.cut());
    let first = DeltaDiscoveryRequest {
        type_url: CDS.to_owned(),
        ..Default::default()
    };
    let mut servers: Vec<Server> = (0..SESSIONS).map(server).collect();
    for server in &mut servers {
        drop(server.handle_delta(&first, &library, now));
        assert_eq!(deliver(server, &before, &library, now), 1);
    }
    let mut group = criterion.benchmark_group("compose");
    group.throughput(Throughput::Elements(u64::from(SESSIONS)));
    let mut sights = [after, before].into_iter().cycle();
    group.bench_function("one change and its acknowledgement", |bencher| {
        bencher.iter(|| {
            let Some(sight) = sights.next() else { return };
            for server in &mut servers {
                server.handle_dirty(&cds, Dirty::Names(Vec::new()));
                assert_eq!(deliver(server, &sight, &library, now), 1);
            }
        });
    });
    group.finish();
}

/// One change that 100 of N sessions want, each of which wants 100 names: who is found and rung for.
fn ring(criterion: &mut Criterion) {
    let eds = TypeUrl::new(EDS);
    let mut group = criterion.benchmark_group("publish, 100 want it of");
    for sessions in [1000_usize, 20_000] {
        let view = view();
        let seats: Vec<Seat> = (0..sessions).map(|_| view.enter()).collect();
        let want = |seat: &Seat, number: usize| {
            let want = Want {
                type_url: eds.clone(),
                target: Target::Name(name(number)),
                wanted: true,
            };
            assert_eq!(seat.want(&want), Ok(()));
        };
        for (nth, seat) in seats.iter().enumerate() {
            // The first 100 want name 0; nobody else does.
            (1..100).for_each(|step| want(seat, 1 + (nth * 31 + step * 7919) % 10_000));
            want(seat, if nth < 100 { 0 } else { 10_001 + nth });
        }
        view.settle();
        let mut content = 0_u8;
        group.bench_function(BenchmarkId::from_parameter(sessions), |bencher| {
            bencher.iter_batched(
                || {
                    seats.iter().take(100).for_each(|seat| {
                        drop(seat.bell().take());
                        seat.bell().looked(|_| true);
                    });
                    content = content.wrapping_add(1);
                    resource(&eds, 0, content)
                },
                |changed| publish(&view, &eds, false, vec![changed]),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

/// What a client says: its first request, and an acknowledgement.
fn requests(criterion: &mut Criterion) {
    let first = DeltaDiscoveryRequest {
        node: Some(Node {
            id: "a-client".to_owned(),
            ..Default::default()
        }),
        type_url: EDS.to_owned(),
        resource_names_subscribe: (0..100).map(|number| name(number).as_str().to_owned()).collect(),
        ..Default::default()
    };
    let ack = DeltaDiscoveryRequest {
        type_url: EDS.to_owned(),
        response_nonce: "0a1b2c3d-17".to_owned(),
        ..Default::default()
    };
    let (first, ack) = (first.encode_to_vec(), ack.encode_to_vec());
    let mut group = criterion.benchmark_group("request");
    group.bench_function("100 names", |bencher| {
        bencher.iter(|| {
            let scan = Scan::of(black_box(&first), Dialect::Delta);
            (scan, DeltaDiscoveryRequest::decode(first.as_slice()))
        });
    });
    group.bench_function("acknowledgement", |bencher| {
        bencher.iter(|| {
            let scan = Scan::of(black_box(&ack), Dialect::Delta);
            (
                scan,
                acknowledgement(&ack).map(|(type_url, nonce)| type_url.len() + nonce.len()),
            )
        });
    });
    group.finish();
}

/// What the arrival of a resource costs: its bytes are put together and hashed, and the state has one more.
fn arrival(criterion: &mut Criterion) {
    let (cds, view) = (TypeUrl::new(CDS), view());
    publish(
        &view,
        &cds,
        true,
        (0..10_000).map(|number| resource(&cds, number, 0)).collect(),
    );
    let mut group = criterion.benchmark_group("arrival");
    group.bench_function("a resource of 1 KB, encoded and hashed", |bencher| {
        bencher.iter(|| resource(&cds, 1, black_box(2)));
    });
    let mut content = 0_u8;
    group.bench_function("a change of one of 10,000", |bencher| {
        bencher.iter(|| {
            content = content.wrapping_add(1);
            publish(&view, &cds, true, vec![resource(&cds, 4711, content)]);
        });
    });
    group.finish();
}

criterion_group!(benches, compose, ring, requests, arrival);
criterion_main!(benches);
