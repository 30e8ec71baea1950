// SPDX-License-Identifier: Apache-2.0
//! Bad input from clients: it meets a clear error or a limit, and no other client is affected.

mod connections;
mod floods;
mod requests;

use std::collections::BTreeMap;

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::proto::google::protobuf::{Struct, Value, value::Kind};
use distributary::wire::message;
use distributary::xds::Dialect;
use prost::Message;
use tonic::Code;

use crate::lifetimes::subscriber;
use crate::support::client::{Call, Client, Ended};
use crate::support::messages::{Subscriber, node};
use crate::support::{CDS, EDS, Plan, Relay, path, says, wants, wants_sotw};

const BOTH: [Dialect; 2] = [Dialect::Sotw, Dialect::Delta];

/// A relay with a well-behaved client, which must not be affected by what other clients do.
struct World {
    relay: Relay,
    bystander: Subscriber,
    /// The connection on which the bad input is sent.
    client: Client,
    version: u32,
}

impl World {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(plan: impl FnOnce(&mut Plan)) -> Self {
        let relay = Relay::with(plan);
        relay.put(CDS, &["bystander"], "0");
        let mut bystander = subscriber(&relay.connect().await, Dialect::Delta, CDS, "bystander").await;
        assert_eq!(bystander.take().await.bodies, ["0"]);
        let client = relay.connect().await;
        Self {
            relay,
            bystander,
            client,
            version: 0,
        }
    }

    async fn call(&self, dialect: Dialect) -> Call {
        self.client.call(path(dialect)).await
    }

    /// Asserts that the bystander and the connection are as before, and that no other stream or seat is left.
    async fn is_unharmed(&mut self) {
        self.version += 1;
        let body = self.version.to_string();
        self.relay.put(CDS, &["bystander"], &body);
        assert_eq!(self.bystander.take().await.bodies, [body]);
        self.relay.settles_at(1).await;
        assert_eq!(self.relay.open().1, 2, "the connection goes on");
    }
}

fn encoded(dialect: Dialect, type_url: &str, names: &[&str]) -> Vec<u8> {
    match dialect {
        Dialect::Sotw => wants_sotw(type_url, names).encode_to_vec(),
        Dialect::Delta => wants(type_url, names).encode_to_vec(),
    }
}

async fn refused(world: &World, dialect: Dialect, request: &[u8], code: Code, word: &str) {
    let mut call = world.call(dialect).await;
    call.send_bytes(message(request));
    says(&call.end().await, code, word);
}
