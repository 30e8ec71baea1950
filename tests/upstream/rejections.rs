// SPDX-License-Identifier: Apache-2.0
//! E-24: the control plane is told what clients reject.

use std::sync::Arc;
use std::time::Duration;

use distributary::cache::Rejecter;
use distributary::classes::{Node, UserAgent};
use distributary::config::{Rejections, Transport};
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use distributary::xds::{Holds, Known, Name, Objection, Refusal, Stance, TypeUrl};
use tonic::Code;

use crate::plane::{Call, Plane};
use crate::{EDS, Plan, Relay, delta, now, sotw};

const WORDS: &str = "2 of 2 clients (envoy 1.36.4) reject endpoints of a: no";

impl Relay {
    /// Two clients reject what `a` is now.
    fn reject_a(&self) {
        let (type_url, name) = (TypeUrl::new(EDS), Name::from("a"));
        let cut = self.view.cut();
        let Some(Known::Present(resource)) = cut.slot(&type_url).unwrap().known(&name) else {
            panic!("there is no `a`");
        };
        let user_agent = UserAgent {
            name: "envoy".into(),
            version: "1.36.4".into(),
        };
        let rejecter = Rejecter {
            node: Arc::new(Node {
                user_agent: Arc::new(user_agent),
                ..Node::default()
            }),
            stream: "1.1".parse().unwrap(),
            stance: Stance {
                rejects: Some(Refusal {
                    version: Some(resource.version()),
                    objection: Arc::new(Objection::new(13, "no", now())),
                    since: now(),
                }),
                holds: Holds::Unknown,
            },
        };
        let mut seats = self.rejecting.lock().unwrap();
        seats.resize_with(2, || self.view.enter());
        for seat in &*seats {
            seat.tell((&type_url, Some(&name)), Some(rejecter.clone()), now());
        }
    }
}

/// A relay that has taken `a=1`, and its acknowledgement was read.
async fn with_a(change: impl FnOnce(&mut Plan)) -> (Plane, Relay, Call) {
    let mut plane = Plane::start().await;
    let relay = Relay::with(plane.address, &[(EDS, "a")], change);
    let mut call = plane.call().await;
    relay.takes(&mut call, "a=1").await;
    if call.path == crate::dialects::DELTA {
        assert_eq!(call.delta().await.response_nonce, "n1");
    } else {
        assert_eq!(call.sotw().await.response_nonce, "n1");
    }
    (plane, relay, call)
}

/// One request says it, in the form of the dialect; the next change is acknowledged at once, and nothing follows.
#[tokio::test]
async fn it_is_told_once() {
    let (_plane, relay, mut call) = with_a(|_| ()).await;
    relay.reject_a();
    let request = call.delta().await;
    let error = request.error_detail.clone().unwrap();
    assert_eq!((error.code, error.message.as_str()), (13, WORDS));
    let expected = DeltaDiscoveryRequest {
        node: request.node.clone(),
        type_url: EDS.to_owned(),
        response_nonce: "n1".to_owned(),
        error_detail: Some(error),
        ..DeltaDiscoveryRequest::default()
    };
    assert!(request.node.is_some());
    assert_eq!(request, expected);
    relay.reject_a();
    call.send(&delta(EDS, "n2", &["a=2"], &[]));
    relay.knows(EDS, "a=2").await;
    let ack = call.delta().await;
    assert_eq!((ack.response_nonce.as_str(), ack.error_detail), ("n2", None));
    assert_eq!(relay.metrics.rejections_reported.get(), 1);
    assert_eq!(relay.metrics.nacks.get(), 0, "the relay itself rejects nothing");

    let (_plane, relay, mut call) = with_a(|plan| plan.server.transport = Transport::Sotw).await;
    relay.reject_a();
    let request = call.sotw().await;
    let error = request.error_detail.clone().unwrap();
    assert_eq!((error.code, error.message.as_str()), (13, WORDS));
    let expected = DiscoveryRequest {
        node: request.node.clone(),
        type_url: EDS.to_owned(),
        version_info: "1".to_owned(),
        resource_names: vec!["a".to_owned()],
        response_nonce: "n1".to_owned(),
        error_detail: Some(error),
        ..DiscoveryRequest::default()
    };
    assert!(request.node.is_some());
    assert_eq!(request, expected);
    call.send(&sotw(EDS, "2", "n2", &["a=2"]));
    relay.knows(EDS, "a=2").await;
    let ack = call.sotw().await;
    assert_eq!((ack.version_info.as_str(), ack.response_nonce.as_str()), ("2", "n2"));
    assert_eq!(ack.error_detail, None);
}

/// A server that ends the stream because of it is told no more.
#[tokio::test]
async fn a_server_that_takes_offence() {
    let (mut plane, relay, mut call) = with_a(|_| ()).await;
    relay.reject_a();
    assert!(call.delta().await.error_detail.is_some());
    call.finish(Code::InvalidArgument, "no such nonce");
    let mut call = plane.call().await;
    assert_eq!(call.delta().await.resource_names_subscribe, ["a"]);
    call.send(&delta(EDS, "m1", &["a=2"], &[]));
    relay.knows(EDS, "a=2").await;
    assert_eq!(call.delta().await.response_nonce, "m1");
    relay.reject_a();
    let more = tokio::time::timeout(Duration::from_secs(2), call.delta()).await;
    assert!(more.is_err(), "{more:?}");
    assert_eq!(relay.metrics.rejections_reported.get(), 1);
}

/// `rejections: keep`.
#[tokio::test]
async fn what_is_kept() {
    let (_plane, relay, mut call) = with_a(|plan| plan.server.rejections = Rejections::Keep).await;
    relay.reject_a();
    let told = tokio::time::timeout(Duration::from_secs(2), call.delta()).await;
    assert!(told.is_err(), "{told:?}");
}
