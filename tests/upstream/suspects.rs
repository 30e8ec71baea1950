// SPDX-License-Identifier: Apache-2.0
//! Types for which a control plane ends the whole stream.

use std::time::{Duration, Instant};

use distributary::xds::{Name, TypeUrl};
use tonic::Code;

use crate::dialects::DELTA;
use crate::plane::{Call, Plane, soon};
use crate::{CDS, EDS, Relay, delta, now};

const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";

/// Answers for endpoints, and ends the stream on a request for routes, as a server does that does not know the type.
async fn refuse(call: Call) {
    let mut call = call;
    let mut asked = Vec::new();
    while !asked.iter().any(|type_url| type_url == RDS) {
        let request = call.delta().await;
        if request.type_url == EDS && !asked.iter().any(|type_url| type_url == EDS) {
            call.send(&delta(EDS, "n1", &["a=1"], &[]));
        }
        asked.push(request.type_url);
    }
    call.finish(Code::InvalidArgument, "no such type");
}

/// Returns the next call in delta, and the type that it asks for. Refuses calls in state of the world.
async fn next(plane: &mut Plane) -> (&'static str, Call) {
    loop {
        let mut call = plane.call().await;
        if call.path == DELTA {
            let asked = call.delta().await.type_url;
            return (if asked == EDS { EDS } else { RDS }, call);
        }
        call.finish(Code::InvalidArgument, "no such type");
    }
}

/// E-15: a type that ends two streams in a row gets a stream of its own. The others go on, clients that wait for the type are
/// told why, and the relay asks for it after longer and longer pauses until it is answered.
#[tokio::test]
async fn a_type_that_ends_the_stream() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(EDS, "a"), (RDS, "r")]);
    for _ in 0..2 {
        refuse(plane.call().await).await;
    }
    let mut shared = None;
    let mut refused: Vec<Instant> = Vec::new();
    while shared.is_none() || refused.len() < 2 {
        match next(&mut plane).await {
            (EDS, call) => shared = Some(call),
            (_, call) => {
                let last = refused.last().map(Instant::elapsed);
                assert!(last.is_none_or(|last| last > Duration::from_millis(700)), "{last:?}");
                refused.push(now());
                call.finish(Code::InvalidArgument, "no such type");
            }
        }
    }
    let mut shared = shared.unwrap();
    shared.send(&delta(EDS, "n1", &["a=2"], &[]));
    relay.knows(EDS, "a=2").await;
    let (routes, name) = (TypeUrl::new(RDS), Name::from("r"));
    let told = || {
        let cut = relay.view.cut();
        let slot = cut.slot(&routes)?;
        slot.named.error(&name).map(|error| error.message.to_string())
    };
    soon("the clients are told", async {
        while told().is_none_or(|words| !words.contains("no such type")) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    let status = relay.status("a suspicion", |status| !status.suspected.is_empty()).await;
    assert!(status.suspected.contains_key(&routes));
    // Now the server answers for the type.
    let (type_url, mut call) = next(&mut plane).await;
    assert_eq!(type_url, RDS);
    call.send(&delta(RDS, "n1", &["r=1"], &[]));
    relay.knows(RDS, "r=1").await;
    assert_eq!(told(), None);
    // The shared stream was open all this time, and got no other request.
    shared.send(&delta(EDS, "n2", &["a=3"], &[]));
    relay.knows(EDS, "a=3").await;
    for _ in 0..2 {
        assert_eq!(shared.delta().await.type_url, EDS);
    }
    assert!(plane.has_call().is_none());
}

/// E-15: a client that waits for a name of such a type is told why also if the name would wait for the wildcard's answer.
#[tokio::test]
async fn a_name_beside_a_wildcard_that_ends_the_stream() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(CDS, "*"), (CDS, "c")]);
    let clusters = TypeUrl::new(CDS);
    let told = async {
        loop {
            let call = plane.call().await;
            call.finish(Code::FailedPrecondition, "no clusters here");
            let cut = relay.view.cut();
            let error = cut.slot(&clusters).and_then(|slot| slot.named.error(&Name::from("c")));
            if error.is_some_and(|error| error.message.contains("no clusters here")) {
                return;
            }
        }
    };
    soon("the client is told", told).await;
}

/// E-15, E-09: a wildcard of a type that ends the stream has an error until it is answered, for clients that would wait in silence.
#[tokio::test]
async fn a_wildcard_that_ends_the_stream() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(EDS, "a"), (CDS, "*")]);
    let clusters = TypeUrl::new(CDS);
    let error = || {
        let wildcard = relay.view.cut().slot(&clusters)?.wildcard.clone()?;
        let error = wildcard.error(&Name::from(Name::WILDCARD))?;
        Some(error.message.to_string())
    };
    let mut call = None;
    let told = async {
        while error().is_none() {
            let mut next = plane.call().await;
            if next.path == DELTA && next.delta().await.type_url == EDS {
                next.send(&delta(EDS, "n1", &["a=1"], &[]));
                call = Some(next);
                continue;
            }
            next.finish(Code::InvalidArgument, "no clusters here");
        }
    };
    soon("the clients are told", told).await;
    assert!(error().unwrap().contains("no clusters here"));
    drop(call);
    let mut own = loop {
        let mut next = plane.call().await;
        if next.path == DELTA && next.delta().await.type_url == CDS {
            break next;
        }
    };
    own.send(&delta(CDS, "n1", &["c=1"], &[]));
    relay.knows(CDS, "c=1 complete").await;
    assert_eq!(error(), None);
}
