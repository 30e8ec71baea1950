// SPDX-License-Identifier: Apache-2.0
//! Answers in any order: REST has no order between types.

use std::time::Duration;

use distributary::xds::{Cut, Known, Name, TypeUrl};
use serde_json::json;

use crate::plane::soon;
use crate::polling::{Poll, Site};
use crate::{CDS, Relay};

const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";

/// Returns the next polls of clusters and of routes; others are answered "not modified".
async fn polls(site: &mut Site) -> (Poll, Poll) {
    let (mut clusters, mut routes) = (None, None);
    let both = async {
        while clusters.is_none() || routes.is_none() {
            let poll = site.poll().await;
            if poll.path.ends_with(":clusters") {
                clusters = Some(poll);
            } else {
                routes = Some(poll);
            }
        }
    };
    soon("both polls", both).await;
    (clusters.unwrap(), routes.unwrap())
}

async fn route(poll: Poll, version: &str) {
    let route = json!({"@type": RDS, "name": "r", "virtual_hosts": [{"name": version, "domains": ["*"]}]});
    let said = json!({"version_info": version, "resources": [route]});
    poll.status("200 OK", &said.to_string()).await;
}

fn routed(cut: &Cut, version: &str) -> bool {
    let slot = cut.slot(&TypeUrl::new(RDS));
    let known = slot.and_then(|slot| slot.named.known(&Name::from("r")));
    let says = |body: &[u8]| String::from_utf8_lossy(body).contains(version);
    matches!(known, Some(Known::Present(route)) if says(&route.body()))
}

fn has(cut: &Cut, name: &str) -> bool {
    let slot = cut.slot(&TypeUrl::new(CDS));
    let state = slot.and_then(|slot| slot.wildcard.as_ref());
    state.is_some_and(|state| state.resource(&Name::from(name)).is_some())
}

/// D-01, D-04: routes that come before the clusters of the same moment wait for them; a server that does not answer for clusters
/// delays them only briefly.
#[tokio::test]
async fn no_route_before_its_cluster() {
    let mut site = Site::start().await;
    let relay = Relay::polling(&site, "", &[(CDS, "*"), (RDS, "r")]);
    let (clusters, routes) = polls(&mut site).await;
    route(routes, "to-x").await;
    let early = relay.sees("a route", |cut| routed(cut, "to-x"));
    let early = tokio::time::timeout(Duration::from_millis(100), early).await;
    assert!(early.is_err(), "the clusters are not there");
    clusters.say("1", &["x"]).await;
    let ordered = |cut: &Cut| {
        assert!(!routed(cut, "to-x") || has(cut, "x"), "a route before its cluster");
        routed(cut, "to-x")
    };
    relay.sees("both", ordered).await;
    // From here on the server does not answer for clusters.
    let (_clusters, routes) = polls(&mut site).await;
    route(routes, "to-x-again").await;
    relay.sees("the route", |cut| routed(cut, "to-x-again")).await;
}
