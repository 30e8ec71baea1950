// SPDX-License-Identifier: Apache-2.0
//! Classes by identity on real sockets: a client is of the class that its certificate says, whatever its node says.

use std::sync::Arc;

use distributary::cache::View;
use distributary::xds::{Dialect, TypeUrl, Update};
use rcgen::{CertificateParams, SanType};

use crate::support::certificates::{Authority, VERSIONS};
use crate::support::messages::Subscriber;
use crate::support::{CDS, PATIENCE, Relay, config, node_of, resource};

const CLASSES: &str = "
classes:
- {match: {identity.spiffe: 'spiffe://td/ns/{ns}/sa/*'}, key: [ns], node: {id: 'relay/{ns}'}}
- {match: {identity.dns: '*.edge'}, key: [identity.dns]}
";

/// Returns the view of the class with this key, once it is there.
async fn view(relay: &Relay, key: &[&str]) -> Arc<View> {
    let look = async {
        loop {
            let views = relay.shared.scopes.all();
            if let Some(view) = views.into_iter().find(|view| *view.class().key == *key) {
                return view;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.expect("a view of the class")
}

/// K-02: each client reads the view of its certificate's namespace or name, over both dialects, though its node claims another.
#[tokio::test]
async fn no_client_poses_as_another_class() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let relay = Relay::with(|plan| {
        plan.protocol.classes = config(CLASSES).classes;
        authority.secure(plan, Some(&clients), 256);
    });
    relay.put(CDS, &["a"], "everybody");
    let uri = |name: &str| SanType::URI(name.try_into().unwrap());
    let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
    #[rustfmt::skip]
    let rows = [
        (vec![uri("spiffe://td/ns/red/sa/x")], "blue", &["red"][..], "relay/red"),
        (vec![uri("spiffe://td/ns/blue/sa/x")], "red", &["blue"], "relay/blue"),
        (vec![dns("one.edge"), dns("two.edge")], "red", &["one.edge"], "relay/identity.dns=one.edge"),
        (vec![uri("spiffe://other/ns/red/sa/x")], "red", &[], "relay"),
    ];
    for (names, claimed, key, seen) in rows {
        let signed = clients.sign_as(|params: &mut CertificateParams| params.subject_alt_names = names);
        let config = Arc::new(authority.client(Some(&signed), &VERSIONS));
        for dialect in [Dialect::Sotw, Dialect::Delta] {
            let call = crate::tls::client(&relay, &config).await.ads(dialect).await;
            let node = node_of(&format!("spiffe://td/ns/{claimed}/sa/x"), claimed);
            let mut subscriber = Subscriber::of(call, dialect, CDS, node);
            subscriber.subscribe(&["a"]);
            let view = view(&relay, key).await;
            let type_url = TypeUrl::new(CDS);
            let content = if key.is_empty() { "everybody" } else { seen };
            let body = resource(&type_url, "a", content.as_bytes());
            Relay::publish_in(&view, &type_url, vec![Update::Put(body, None)]);
            assert_eq!(subscriber.take().await.bodies, [content], "{key:?}");
            assert_eq!(view.class().presented().over(&node_of("relay", "")).id, seen);
        }
    }
    // One for each namespace and name, and one for all others.
    assert_eq!(relay.shared.scopes.all().len(), 4);
}
