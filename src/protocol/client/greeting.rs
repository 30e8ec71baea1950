//! The node that goes with the relay's requests (E-01).
//!
//! Owns its encoding, and which requests have it. Knows nothing of the rest of the requests.

use bytes::{Bytes, BytesMut};
use prost::Message as _;

use super::{Client, Request, come_through, node};
use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use xds::{Dialect, put_field};

impl Client {
    /// Returns the node that the server is sent.
    #[must_use]
    pub fn node(&self) -> Node {
        let node = come_through((*self.node).clone(), self.relays.clone());
        node::stamped(node, &self.settings.relay_id)
    }

    /// K-25: these relays ask through this one, so another relay is sent the node again on the present stream.
    pub fn handle_relays(&mut self, relays: Vec<String>) {
        self.relays = relays;
        self.greeting = None;
        if let Some(stream) = &mut self.stream {
            stream.node_sent = false;
        }
    }

    /// Whether the server is told that requests come through this relay below.
    #[must_use]
    pub fn comes_through(&self, relay: &str) -> bool {
        self.relays.iter().any(|known| known == relay)
    }

    /// Returns the field of the last request with the node, once, if the request has one. All requests share the bytes.
    pub const fn take_node(&mut self) -> Option<Bytes> {
        self.introduction.take()
    }

    /// E-01: each request has the node, because some control planes look at that of each. A relay remembers it.
    pub(super) fn introduce(&mut self) {
        self.introduction = None;
        let Some(stream) = &mut self.stream else { return };
        if std::mem::replace(&mut stream.node_sent, true) && stream.relayed {
            return;
        }
        if self.greeting.is_none() {
            let number = match self.dialect {
                Dialect::Sotw => 2,
                Dialect::Delta => 1,
            };
            let mut field = BytesMut::new();
            put_field(&mut field, number, &self.node().encode_to_vec());
            self.greeting = Some(field.freeze());
        }
        self.introduction.clone_from(&self.greeting);
    }

    /// K-25: returns a request with nothing but the changed node. C-04: it changes no subscription. SotW has no such request: there it is the
    /// last one of a type once more.
    pub(super) fn greet_again(&self) -> Option<Request> {
        if self.stream.as_ref()?.node_sent || self.is_polled() {
            return None;
        }
        let mut opened = self.feeds.iter().filter(|(_, feed)| feed.outbound().is_opened());
        match self.dialect {
            Dialect::Sotw => {
                let quiet = opened.filter(|(_, feed)| feed.outbound().may_repeat());
                // A server might answer a question once more.
                let (type_url, feed) = quiet.max_by_key(|(_, feed)| feed.outbound().is_answered())?;
                Some(Request::Sotw(feed.outbound().sotw_request(type_url, None)))
            }
            Dialect::Delta => Some(Request::Delta(DeltaDiscoveryRequest {
                type_url: opened.next()?.0.url().to_owned(),
                ..DeltaDiscoveryRequest::default()
            })),
        }
    }
}
