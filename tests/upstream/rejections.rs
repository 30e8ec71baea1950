// SPDX-License-Identifier: Apache-2.0
//! E-24: the control plane is told what clients reject.

use std::sync::Arc;
use std::time::Duration;

use distributary::cache::Rejecter;
use distributary::classes::{Node, UserAgent};
use distributary::config::Rejections;
use distributary::xds::{Holds, Known, Name, Objection, Refusal, Stance, TypeUrl};
use tonic::Code;

use crate::plane::{Call, Plane};
use crate::{EDS, Plan, Relay, delta, now};

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
    assert_eq!(call.delta().await.response_nonce, "n1");
    (plane, relay, call)
}

/// It is told in the words of the clients, once. A server that ends the stream because of it is told no more.
#[tokio::test]
async fn a_server_that_takes_offence() {
    let (mut plane, relay, mut call) = with_a(|_| ()).await;
    relay.reject_a();
    assert_eq!(call.delta().await.error_detail.unwrap().message, WORDS);
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
    assert_eq!(relay.metrics.nacks.get(), 0, "the relay itself rejects nothing");
}

/// `rejections: keep`.
#[tokio::test]
async fn what_is_kept() {
    let (_plane, relay, mut call) = with_a(|plan| plan.server.rejections = Rejections::Keep).await;
    relay.reject_a();
    let told = tokio::time::timeout(Duration::from_secs(2), call.delta()).await;
    assert!(told.is_err(), "{told:?}");
}
