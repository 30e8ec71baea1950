// SPDX-License-Identifier: Apache-2.0
//! Types that only delta has, and control planes that do not speak delta.

use std::sync::Arc;

use distributary::xds::{Name, ResourceError, ServerState, TypeUrl};
use h2::Reason;
use tonic::Code;

use crate::dialects::{DELTA, SOTW};
use crate::plane::{Call, Plane};
use crate::{CDS, Relay, delta, sotw};

pub(crate) const VHDS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

impl Relay {
    /// The error that clients get for a virtual host.
    fn trouble(&self, name: &str) -> Option<Arc<ResourceError>> {
        let cut = self.view.cut();
        cut.slot(&TypeUrl::new(VHDS))?.named.error(&Name::from(name)).cloned()
    }

    /// Waits until virtual hosts are not requested, and returns the reason as the operator sees it.
    async fn unserved(&self) -> String {
        let hosts = TypeUrl::new(VHDS);
        let status = self.status("a type left out", |status| status.unserved.contains_key(&hosts));
        status.await.unserved.remove(&hosts).unwrap().to_string()
    }
}

/// Answers for clusters, for which the first request of a SotW call asks.
async fn clusters(call: &mut Call, version: &str) {
    assert_eq!(call.path, SOTW);
    assert_eq!(call.sotw().await.type_url, CDS);
    call.send(&sotw(CDS, version, version, &[&format!("c={version}")]));
}

/// C-21, E-23: if delta is refused, clients that wait for a virtual host get an error. Once the control plane speaks delta, it is
/// asked.
#[tokio::test]
async fn where_delta_is_not_answered() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(CDS, "*"), (VHDS, "main/a")]);
    let call = plane.call().await;
    assert_eq!(call.path, DELTA);
    call.finish(Code::Unavailable, "in a moment");
    let mut call = plane.call().await;
    clusters(&mut call, "1").await;
    relay.knows(VHDS, "main/a:TimedOut").await;
    assert!(relay.unserved().await.contains("in a moment"));
    assert!(relay.trouble("main/a").unwrap().message.contains("in a moment"));
    call.finish(Code::Ok, "");
    let mut call = plane.call().await;
    assert_eq!(call.path, DELTA);
    assert_eq!(call.delta().await.type_url, CDS);
    assert_eq!(call.delta().await.resource_names_subscribe, ["main/a"]);
    call.send(&delta(VHDS, "n1", &["main/a=1"], &[]));
    relay.knows(VHDS, "main/a=1").await;
    assert_eq!(relay.trouble("main/a"), None);
    relay
        .status("an answer in delta", |status| status.unserved.is_empty())
        .await;
}

/// C-21, E-23: if the wildcard of virtual hosts is not answered, the relay still asks for one of them in delta. A failure of that
/// stream does not count against the server, and after a few attempts the client gets an error.
#[tokio::test]
async fn beside_all_of_them() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(CDS, "*"), (VHDS, "*"), (VHDS, "main/a")]);
    plane.call().await.reset(Reason::INTERNAL_ERROR);
    let mut main = plane.call().await;
    clusters(&mut main, "1").await;
    relay.knows(CDS, "c=1 complete").await;
    for _ in 0..3 {
        let mut aside = plane.call().await;
        assert_eq!(aside.path, DELTA);
        assert_eq!(aside.delta().await.resource_names_subscribe, ["main/a"]);
        aside.reset(Reason::INTERNAL_ERROR);
    }
    relay.knows(VHDS, "main/a:TimedOut").await;
    relay.stands(ServerState::Up).await;
    relay.want(VHDS, "main/b", true);
    relay.knows(VHDS, "main/a:TimedOut main/b:TimedOut").await;
    let mut aside = plane.call().await;
    assert_eq!(aside.delta().await.resource_names_subscribe, ["main/a", "main/b"]);
    aside.send(&delta(VHDS, "n1", &["main/a=1"], &["main/b"]));
    relay.knows(VHDS, "main/a=1 main/b:Said").await;
    assert_eq!(relay.trouble("main/b"), None);
}

/// E-23: a control plane from which only virtual hosts are wanted is not asked in SotW. Clients that wait are told why, and the
/// relay asks again in delta after a pause.
#[tokio::test]
async fn where_nothing_else_is_wanted() {
    let mut plane = Plane::start().await;
    let relay = Relay::of(&plane, &[(VHDS, "main/a")]);
    let call = plane.call().await;
    assert_eq!(call.path, DELTA);
    call.finish(Code::Unimplemented, "unknown method");
    relay.knows(VHDS, "main/a:TimedOut").await;
    assert!(relay.trouble("main/a").unwrap().message.contains("unknown method"));
    assert_eq!(relay.metrics.failures.get(), 1);
    let mut call = plane.call().await;
    assert_eq!(call.path, DELTA);
    assert_eq!(call.delta().await.resource_names_subscribe, ["main/a"]);
    call.send(&delta(VHDS, "n1", &["main/a=1"], &[]));
    relay.knows(VHDS, "main/a=1").await;
    assert_eq!(relay.trouble("main/a"), None);
}
