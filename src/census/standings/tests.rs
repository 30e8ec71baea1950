// SPDX-License-Identifier: Apache-2.0
//! How streams are counted.

use super::*;
use crate::classes::Node;
use crate::identity::Identity;
use crate::inquiry::StreamNumber;
use crate::xds::{Dialect, Objection, Status};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

fn of_type(type_url: &str) -> ClientType {
    ClientType {
        type_url: TypeUrl::new(type_url),
        status: Status::Synced,
        wildcard: false,
        names: 1,
        sent: None,
        accepted: None,
        unanswered_since: None,
        waiting_since: None,
        server: None,
        objections: Vec::new(),
        rejected: Vec::new(),
        resources: Vec::new(),
        ready: None,
    }
}

fn stream(types: Vec<ClientType>, now: Instant) -> ClientStream {
    ClientStream {
        number: StreamNumber {
            connection: 1,
            stream: 1,
        },
        node: Arc::new(Node::default()),
        identity: Identity::default(),
        peer: None,
        dialect: Dialect::Delta,
        service: None,
        since: now,
        requests: 0,
        request_bytes: 0,
        types,
    }
}

/// Each stream is in one of the four counts, and in the counts of each of its types.
#[test]
fn every_stream_is_counted_once() {
    let began = clock::now();
    let now = began + Duration::from_secs(60);
    let long = Some(now - PATIENCE);
    let moment = Some(now - PATIENCE + Duration::from_millis(1));
    let lags = |since| ClientType {
        unanswered_since: since,
        ..of_type(CDS)
    };
    let waits = |since| ClientType {
        waiting_since: since,
        ..of_type(EDS)
    };
    let rejects = ClientType {
        server: None,
        objections: vec![Arc::new(Objection::new(13, "no", began))],
        ..of_type(EDS)
    };
    let streams = [
        vec![lags(moment), waits(moment)],
        vec![],
        vec![lags(long), waits(long)],
        vec![waits(long)],
        vec![lags(long), rejects],
    ];
    let mut counts = Standings::default();
    for types in streams {
        counts.add(&stream(types, began), now);
    }
    let all = (counts.rejecting, counts.lagging, counts.waiting, counts.current);
    assert_eq!((all, counts.streams()), ((1, 1, 1, 2), 5));
    let of = |type_url| counts.types[&TypeUrl::new(type_url)];
    let (cds, eds) = (of(CDS), of(EDS));
    assert_eq!((cds.lagging, cds.waiting), (2, 0));
    assert_eq!((eds.lagging, eds.waiting), (0, 2));
    let words = "2 of 5 streams are up to date; 1 rejects something; 1 has not answered a response for over 10 s; \
                 1 waits for over 10 s for what nobody has answered";
    assert_eq!(counts.words(), words);
    counts.add_away(&TypeUrl::new(EDS));
    let of_type = counts.types[&TypeUrl::new(EDS)];
    assert_eq!((counts.away, counts.streams(), of_type.waiting), (1, 5, 3));
    let more = "; 1 more client waits as long and has no stream now: its last one ended unanswered";
    assert_eq!(counts.words(), format!("{words}{more}"));
}
