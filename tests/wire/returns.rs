// SPDX-License-Identifier: Apache-2.0
//! Clients that come back and have forgotten what they wanted.

use std::time::Duration;

use distributary::xds::{Dialect, TypeUrl};

use crate::lifetimes::subscriber;
use crate::support::messages::Subscriber;
use crate::support::{CDS, EDS, Relay, now};

/// Asks for another type on the same stream.
async fn asks_too(subscriber: &mut Subscriber, type_url: &str, name: &str) {
    type_url.clone_into(&mut subscriber.type_url);
    subscriber.names.clear();
    subscriber.version.clear();
    subscriber.nonce.clear();
    subscriber.subscribe(&[name]);
    subscriber.take().await;
}

#[tokio::test]
async fn a_type_that_a_client_has_forgotten() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let relay = Relay::start();
        relay.put(CDS, &["a"], "1");
        relay.put(EDS, &["a", "b"], "1");
        let later = || now() + Duration::from_secs(61);
        let mut forgotten = Vec::new();
        for types in [&[CDS, EDS][..], &[CDS, EDS], &[CDS], &[CDS]] {
            let mut client = subscriber(&relay.connect().await, dialect, CDS, "*").await;
            client.take().await;
            if types.contains(&EDS) {
                asks_too(&mut client, EDS, "a").await;
            }
            forgotten.push(relay.shared.returns.sweep(later()));
            drop(client);
            relay.settles_at(0).await;
        }
        let expected = [vec![], vec![], vec![TypeUrl::new(EDS)], vec![]];
        assert_eq!(forgotten, expected, "{dialect:?}");
    }
}
