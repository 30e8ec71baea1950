//! When the server is sent the relay's node.
//!
//! Owns that the node is sent once on each stream, and again when more relays ask through this one (K-25). Knows nothing of the
//! rest of the requests.

use super::{Client, Request, come_through, node};
use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use xds::Dialect;

impl Client {
    /// Returns the node that the server is sent.
    #[must_use]
    pub fn node(&self) -> Node {
        let node = come_through((*self.node).clone(), self.relays.clone());
        node::stamped(node, &self.settings.relay_id)
    }

    /// K-25: these relays ask through this one, so the server is sent the node again on the present stream.
    pub fn handle_relays(&mut self, relays: Vec<String>) {
        self.relays = relays;
        if let Some(stream) = &mut self.stream {
            stream.node_sent = false;
        }
    }

    /// Whether the server is told that requests come through this relay below.
    #[must_use]
    pub fn comes_through(&self, relay: &str) -> bool {
        self.relays.iter().any(|known| known == relay)
    }

    /// E-01: the first message of a stream has the node; later messages have it only if it changed.
    pub(super) fn introduce(&mut self, request: &mut Request) {
        let sent = self
            .stream
            .as_mut()
            .map(|stream| std::mem::replace(&mut stream.node_sent, true));
        if sent == Some(false) {
            let node = Some(self.node());
            match request {
                Request::Sotw(request) => request.node = node,
                Request::Delta(request) => request.node = node,
            }
        }
    }

    /// K-25: returns a request with nothing but the changed node. C-04: it changes no subscription. SotW has no such request, so
    /// there the node goes with the next one.
    pub(super) fn greet_again(&mut self) -> Option<Request> {
        let again = self.dialect == Dialect::Delta && !self.stream.as_ref()?.node_sent;
        let (type_url, _) = self
            .feeds
            .iter()
            .find(|(_, feed)| again && feed.outbound().is_opened())?;
        let mut request = Request::Delta(DeltaDiscoveryRequest {
            type_url: type_url.url().to_owned(),
            ..DeltaDiscoveryRequest::default()
        });
        self.introduce(&mut request);
        Some(request)
    }
}
