// SPDX-License-Identifier: Apache-2.0
//! Control planes that do not hear a type of the stream that types share, and others that only have nothing to say.

use std::time::Duration;

use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::xds::TypeUrl;
use h2::Reason;
use tonic::Code;

use crate::dialects::SOTW;
use crate::plane::{Call, Plane, soon};
use crate::{CDS, EDS, Relay, delta, sotw};

const PATIENCE: Duration = Duration::from_millis(400);

/// A relay that has its clusters, waits for the endpoints `a`, and has had news of its clusters since.
async fn unheard(plane: &mut Plane) -> (Relay, Call) {
    let relay = Relay::with(plane.address, &[(CDS, "*"), (EDS, "a")], |plan| {
        plan.does_not_exist = PATIENCE
    });
    let mut shared = plane.call().await;
    asked(&mut shared, EDS).await;
    shared.send(&delta(CDS, "n1", &["c=1"], &[]));
    relay.knows(CDS, "c=1 complete").await;
    (relay, shared)
}

/// Waits for the first request of a type.
async fn asked(call: &mut Call, type_url: &str) -> DeltaDiscoveryRequest {
    let wait = async {
        loop {
            let request = call.delta().await;
            if request.type_url == type_url && request.response_nonce.is_empty() {
                return request;
            }
        }
    };
    soon("a request of the type", wait).await
}

/// E-27: a type that is not heard on the shared stream is asked for anew on another one. Answered there, it has its own from then on,
/// and nothing else changes.
#[tokio::test]
async fn a_type_that_is_not_heard() {
    let mut plane = Plane::start().await;
    let (relay, mut shared) = unheard(&mut plane).await;
    let mut probe = plane.call().await;
    assert_eq!(asked(&mut probe, EDS).await.resource_names_subscribe, ["a"]);
    probe.send(&delta(EDS, "n1", &["a=1"], &[]));
    let mut own = plane.call().await;
    probe.gone().await;
    assert_eq!(asked(&mut own, EDS).await.resource_names_subscribe, ["a"]);
    own.send(&delta(EDS, "n1", &["a=1"], &[]));
    relay.knows(EDS, "a=1").await;
    let endpoints = TypeUrl::new(EDS);
    let status = relay.status("a suspicion", |status| !status.suspected.is_empty()).await;
    assert!(
        status.suspected.get(&endpoints).unwrap().contains("on another stream"),
        "{:?}",
        status.suspected
    );
    relay.want(EDS, "b", true);
    assert_eq!(asked(&mut own, EDS).await.resource_names_subscribe, ["b"]);
    shared.send(&delta(CDS, "n2", &["c=2"], &[]));
    relay.knows(CDS, "c=2 complete").await;
    assert!(plane.has_call().is_none());
}

/// A relay whose server has sent two names on the last stream, and only the first of them on this one.
async fn left_out(plane: &mut Plane) -> (Relay, Call) {
    let relay = Relay::of(plane, &[(EDS, "a"), (EDS, "gone")]);
    let mut call = plane.call().await;
    asked(&mut call, EDS).await;
    call.send(&delta(EDS, "n1", &["a=1", "gone=1"], &[]));
    relay.knows(EDS, "a=1 gone=1").await;
    call.go_away(Reason::INTERNAL_ERROR).await;
    let mut call = plane.call().await;
    asked(&mut call, EDS).await;
    call.send(&delta(EDS, "m1", &["a=1"], &[]));
    (relay, call)
}

/// E-04: a server that reads no versions does not say what is gone since the last stream, and it has just sent the only thing that it has.
#[tokio::test]
async fn a_server_that_reads_no_versions() {
    let mut plane = Plane::start().await;
    let (relay, _call) = left_out(&mut plane).await;
    let mut trial = plane.call().await;
    let request = asked(&mut trial, EDS).await;
    assert_eq!(request.resource_names_subscribe, ["a"]);
    assert_eq!(
        request.initial_resource_versions,
        [("a".to_owned(), "1".to_owned())].into()
    );
    assert_eq!(relay.known(EDS), "a=1 gone=1");
    trial.send(&delta(EDS, "t1", &["a=1"], &[]));
    relay.knows(EDS, "a=1 gone:Said").await;
    trial.gone().await;
}

/// The same question to a server that has spoken SotW by then: it sends everything, whether it reads versions or not.
#[tokio::test]
async fn a_question_in_the_other_dialect() {
    let mut plane = Plane::start().await;
    let (relay, _call) = left_out(&mut plane).await;
    plane.call().await.finish(Code::Unimplemented, "no delta");
    let mut trial = plane.call().await;
    assert_eq!(trial.path, SOTW);
    trial.sotw().await;
    trial.send(&sotw(EDS, "1", "t1", &["a=1", "gone=1"]));
    // The answer counts a second after it has come.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(relay.known(EDS), "a=1 gone=1");
}
