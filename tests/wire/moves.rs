// SPDX-License-Identifier: Apache-2.0
//! Routes that move from cluster to cluster while their clients are woken by something else.

use std::sync::Arc;

use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryResponse;
use distributary::xds::{Changes, Dialect, Name, Reason, Resource, TypeUrl, Update};
use peers::messages::{RDS, answer};

use crate::support::{CDS, EDS, Relay, resource, soon, wants};

const MOVES: usize = 300;

/// D-03, K-20: one change brings a cluster and a route to it, and removes the cluster before it. The route comes in between, even if the
/// session is about something else when the change is published.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_goes_after_its_route() {
    let relay = Relay::start();
    let (clusters, routes) = (TypeUrl::new(CDS), TypeUrl::new(RDS));
    let put = |type_url: &TypeUrl, name: &str, step: usize| -> Update {
        let content: Arc<Resource> = resource(type_url, name, step.to_string().as_bytes());
        Update::Put(content, None)
    };
    let moves = |step: usize| {
        let gone = step.checked_sub(1).map(|old| Name::from(format!("c{old}")));
        let gone = gone.map(|old| Update::Absent(old, Reason::Said));
        let came = put(&clusters, &format!("c{step}"), step);
        let clusters: Vec<Update> = std::iter::once(came).chain(gone).collect();
        let change = |type_url: &TypeUrl, wildcard: bool, updates: &[Update]| Changes {
            complete: wildcard.then_some(true),
            answered: Some(true),
            ..Changes::of((type_url.clone(), wildcard), updates.to_vec())
        };
        drop(relay.view().publish(&[
            change(&TypeUrl::new(CDS), true, &clusters),
            change(&routes, false, &[put(&routes, "main", step)]),
        ]));
    };
    let mut call = relay.connect().await.ads(Dialect::Delta).await;
    for (type_url, names) in [(CDS, &["*"][..]), (RDS, &["main"]), (EDS, &["other"])] {
        call.send(&wants(type_url, names));
    }
    for step in 0..MOVES {
        relay.put(EDS, &["other"], &step.to_string());
        // The session is awake, and somewhere in its turn.
        (0..step % 32 * 50).for_each(|_| std::hint::spin_loop());
        moves(step);
        let (mut moved, mut gone) = (false, step == 0);
        while !moved || !gone {
            let response = soon("a response", call.next::<DeltaDiscoveryResponse>()).await.unwrap();
            call.send(&answer(&response.type_url, &response.nonce, None));
            if response.type_url == RDS {
                moved = true;
            }
            if !response.removed_resources.is_empty() {
                assert!(moved, "step {step}: the cluster is gone before its route has moved");
                gone = true;
            }
        }
    }
}
