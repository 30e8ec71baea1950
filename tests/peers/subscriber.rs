// SPDX-License-Identifier: Apache-2.0
//! Requests and responses of both dialects in one shape.

use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
use proto::google::rpc::Status;
use xds::Dialect;

use crate::client::{Call, Client, Ended};
pub use crate::messages::node;
use crate::messages::{answer, owned, rejection};
use crate::request::Request;

/// One subscription as a client of either dialect holds it.
pub struct Subscriber {
    pub call: Call,
    pub dialect: Dialect,
    pub type_url: String,
    pub names: Vec<String>,
    pub version: String,
    pub nonce: String,
    node: Option<Node>,
}

/// The content of a response of either dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    pub type_url: String,
    pub version: String,
    pub nonce: String,
    pub identifier: Option<String>,
    /// The bodies, as text.
    pub bodies: Vec<String>,
    pub removed: Vec<String>,
}

impl Client {
    /// A stream of all types, on which one is subscribed to.
    pub async fn subscriber(&self, dialect: Dialect, type_url: &str) -> Subscriber {
        Subscriber::new(self.ads(dialect).await, dialect, type_url)
    }
}

impl Subscriber {
    pub fn new(call: Call, dialect: Dialect, type_url: &str) -> Self {
        Self::of(call, dialect, type_url, node())
    }

    pub fn of(call: Call, dialect: Dialect, type_url: &str, node: Node) -> Self {
        Self {
            call,
            dialect,
            type_url: type_url.to_owned(),
            names: Vec::new(),
            version: String::new(),
            nonce: String::new(),
            node: Some(node),
        }
    }

    pub fn subscribe(&mut self, names: &[&str]) {
        self.names.extend(names.iter().map(|name| (*name).to_owned()));
        self.send(names, &[], None);
    }

    pub fn unsubscribe(&mut self, names: &[&str]) {
        self.names.retain(|name| !names.contains(&name.as_str()));
        self.send(&[], names, None);
    }

    pub fn ack(&mut self) {
        self.answer(None);
    }

    pub fn nack(&mut self, message: &str) {
        self.answer(Some(message));
    }

    fn answer(&mut self, error: Option<&str>) {
        match self.dialect {
            Dialect::Sotw => self.send(&[], &[], error.map(rejection)),
            Dialect::Delta => self.call.send(&answer(&self.type_url, &self.nonce, error)),
        }
    }

    fn send(&mut self, added: &[&str], dropped: &[&str], rejection: Option<Status>) {
        let (nonce, names) = match self.dialect {
            Dialect::Sotw => (self.nonce.clone(), self.names.clone()),
            Dialect::Delta => (String::new(), owned(added)),
        };
        let request = Request {
            node: self.node.take(),
            type_url: self.type_url.clone(),
            nonce,
            version: self.version.clone(),
            names,
            dropped: owned(dropped),
            rejection,
            ..Request::default()
        };
        self.call.send_bytes(request.framed(self.dialect));
    }

    /// The next response, acknowledged.
    pub async fn take(&mut self) -> Got {
        let got = self.next().await.expect("the stream ended");
        self.ack();
        got
    }

    /// The next response, if one comes soon.
    pub async fn next_if_any(&mut self) -> Option<Got> {
        let soon = std::time::Duration::from_millis(300);
        Some(
            tokio::time::timeout(soon, self.next())
                .await
                .ok()?
                .expect("the stream ended"),
        )
    }

    pub async fn next(&mut self) -> Result<Got, Ended> {
        let got = match self.dialect {
            Dialect::Sotw => sotw(self.call.next().await?),
            Dialect::Delta => delta(self.call.next().await?),
        };
        self.version.clone_from(&got.version);
        self.nonce.clone_from(&got.nonce);
        Ok(got)
    }
}

pub fn sotw(response: DiscoveryResponse) -> Got {
    Got {
        type_url: response.type_url,
        version: response.version_info,
        nonce: response.nonce,
        identifier: response.control_plane.map(|control_plane| control_plane.identifier),
        bodies: response.resources.iter().map(|any| text(&any.value)).collect(),
        removed: Vec::new(),
    }
}

pub fn delta(response: DeltaDiscoveryResponse) -> Got {
    let body =
        |any: Option<_>| any.map_or_else(|| "-".to_owned(), |any: proto::google::protobuf::Any| text(&any.value));
    Got {
        type_url: response.type_url,
        version: response.system_version_info,
        nonce: response.nonce,
        identifier: response.control_plane.map(|control_plane| control_plane.identifier),
        bodies: response
            .resources
            .into_iter()
            .map(|resource| body(resource.resource))
            .collect(),
        removed: response.removed_resources,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
