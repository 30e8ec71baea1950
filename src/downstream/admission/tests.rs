// SPDX-License-Identifier: Apache-2.0
//! Tests of the counts.

use tonic::Code;

use super::*;

#[expect(clippy::disallowed_methods, reason = "any instant will do")]
fn now() -> Instant {
    Instant::now()
}

fn peer(last: u8) -> Peer {
    Peer::Tcp(([127, 0, 0, last], 1000 + u16::from(last)).into())
}

fn come(admission: &Arc<Admission>, peer: Peer) -> Result<Guest, LimitReached> {
    admission.connection(peer).and_then(|guest| guest.at(peer))
}

/// A closed connection frees its place; limits are per address.
#[test]
fn as_many_as_there_may_be() {
    let now = now();
    let limits = AdmissionLimits {
        connections: 3,
        connections_per_identity: 2,
        streams: 3,
        streams_per_identity: 2,
        ..AdmissionLimits::default()
    };
    let admission = Arc::new(Admission::new(limits, now));
    let limit = |full: Result<Guest, LimitReached>| full.unwrap_err().limit;
    let one = Arc::new(come(&admission, peer(1)).unwrap());
    let other = come(&admission, peer(1)).unwrap();
    assert_eq!(limit(come(&admission, peer(1))), "connections_per_identity");
    let second = Arc::new(come(&admission, peer(2)).unwrap());
    assert_eq!(limit(come(&admission, Peer::Unix)), "connections");
    drop(other);
    let local = Arc::new(come(&admission, Peer::Unix).unwrap());
    let streams = [one.stream(now).unwrap(), one.stream(now).unwrap()];
    let own = one.stream(now).unwrap_err();
    assert_eq!(
        (own.limit, own.status().code()),
        ("streams_per_identity", Code::ResourceExhausted)
    );
    let third = local.stream(now).unwrap();
    let all = second.stream(now).unwrap_err();
    assert_eq!((all.limit, all.status().code()), ("streams", Code::Unavailable));
    assert_eq!(all.status().metadata().get("grpc-retry-pushback-ms").unwrap(), "1000");
    drop(streams);
    assert!(second.stream(now).is_ok() && one.stream(now).is_ok());
    drop((third, one, second, local));
    let open = admission.open.lock();
    assert!(open.addresses.is_empty() && open.all.connections == 0 && open.all.streams == 0);
}

#[test]
fn so_many_in_a_second() {
    let now = now();
    let limits = AdmissionLimits {
        new_streams_per_second: 10,
        ..AdmissionLimits::default()
    };
    let admission = Arc::new(Admission::new(limits, now));
    let guest = Arc::new(come(&admission, peer(1)).unwrap());
    (0..10).for_each(|_| drop(guest.stream(now).unwrap()));
    assert_eq!(guest.stream(now).unwrap_err().limit, "new_streams_per_second");
    assert!(guest.stream(now + Duration::from_millis(100)).is_ok());
    assert!(guest.stream(now + Duration::from_millis(150)).is_err());
}

/// Only growth is refused. What a stream drops, and what a stream had that ended, makes room.
#[test]
fn as_many_names_as_there_may_be() {
    let now = now();
    let limits = AdmissionLimits {
        subscriptions: Some(10),
        ..AdmissionLimits::default()
    };
    let admission = Arc::new(Admission::new(limits, now));
    let guest = Arc::new(come(&admission, peer(1)).unwrap());
    let (mut one, mut other) = (guest.stream(now).unwrap(), guest.stream(now).unwrap());
    let of_names = || admission.used()[2];
    assert_eq!(one.subscribe(11).unwrap_err().limit, "subscriptions");
    assert!(one.subscribe(6).is_ok() && other.subscribe(4).is_ok());
    assert_eq!(of_names(), Used { used: 10, max: 10 });
    assert!(other.subscribe(5).is_err() && other.subscribe(4).is_ok());
    assert!(one.subscribe(5).is_ok() && other.subscribe(5).is_ok());
    drop(one);
    assert!(other.subscribe(10).is_ok());
    drop(other);
    assert_eq!(of_names().used, 0);
}

/// By default the limit on names follows that of memory, whenever that changes.
#[test]
fn as_many_names_as_the_memory_allows() {
    let now = now();
    let admission = Arc::new(Admission::new(AdmissionLimits::default(), now));
    let guest = Arc::new(come(&admission, peer(1)).unwrap());
    let mut stream = guest.stream(now).unwrap();
    assert!(stream.subscribe(usize::MAX / 2).is_ok(), "there is no limit");
    admission.press(None, 3200);
    assert_eq!(admission.used()[2].max, 100);
    assert!(stream.subscribe(100).is_ok());
    assert_eq!(stream.subscribe(101).unwrap_err().limit, "subscriptions");
    admission.press(None, 6400);
    assert!(stream.subscribe(101).is_ok());
}
