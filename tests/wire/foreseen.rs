// SPDX-License-Identifier: Apache-2.0
//! What the relay asks for before a client does.

use distributary::config::{Config, Flags};
use distributary::proto::envoy::config::core::v3::Node;
use distributary::xds::Dialect;

use crate::support::messages::Subscriber;
use crate::support::{CDS, EDS, Relay, now, until};

const RULES: &str = "
upstream: {xds_servers: [{server_uri: cp:1}]}
rules: [{name: no listeners, types: [cds, eds]}]
";

/// Returns what the control plane is asked for when a client of this software has asked for `names` of a type.
async fn asked(relay: &Relay, dialect: Dialect, agent: &str, (type_url, names): (&str, &[&str])) -> Vec<String> {
    let node = Node {
        id: "client".to_owned(),
        user_agent_name: agent.to_owned(),
        ..Node::default()
    };
    let call = relay.connect().await.ads(dialect).await;
    let mut client = Subscriber::of(call, dialect, type_url, node);
    client.subscribe(names);
    let mut asked = Vec::new();
    let all = || {
        let wants = relay.view().take_wants(now());
        asked.extend(
            wants
                .iter()
                .map(|want| format!("{:?} {:?}", want.type_url, want.target)),
        );
        !asked.is_empty()
    };
    until(all, || "nothing is asked for".to_owned()).await;
    // Everything that the client asks for has an answer now, so that its request has been handled to its end.
    relay.put(CDS, &["a"], "1");
    relay.put(EDS, &["a"], "1");
    client.take().await;
    let rest = relay.view().take_wants(now());
    asked.extend(rest.iter().map(|want| format!("{:?} {:?}", want.type_url, want.target)));
    asked
}

/// K-23: while an Envoy waits for its clusters, the control plane is asked for listeners already.
#[tokio::test]
async fn an_envoy_is_about_to_want_listeners() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let asked = asked(&Relay::start(), dialect, "envoy", (CDS, &["*"])).await;
        assert_eq!(asked, ["cds Wildcard", "lds Wildcard"], "{dialect:?}");
    }
}

/// Others are not known to want them, nor is an Envoy that asks for single clusters; S-03: nobody is asked for what a client may not have.
#[tokio::test]
async fn nobody_else_is() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let wildcard = asked(&Relay::start(), dialect, "gRPC Go", (CDS, &["*"])).await;
        assert_eq!(wildcard, ["cds Wildcard"]);
        let one = asked(&Relay::start(), dialect, "envoy", (CDS, &["a"])).await;
        assert_eq!(one.len(), 1, "{one:?}");
        let endpoints = asked(&Relay::start(), dialect, "envoy", (EDS, &["a"])).await;
        assert_eq!(endpoints.len(), 1, "{endpoints:?}");
        let relay =
            Relay::with(|plan| plan.protocol.access = Config::parse(RULES, "rules", &Flags::default()).unwrap().access);
        assert_eq!(asked(&relay, dialect, "envoy", (CDS, &["*"])).await, ["cds Wildcard"]);
    }
}
