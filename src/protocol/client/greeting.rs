//! When the server is told who asks.
//!
//! Owns that the node is said once on each stream, and again when more relays ask through this one (K-25). Refuses to know what is
//! asked.

use super::node::{come_through, stamped};
use super::{Client, Request};
use crate::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use crate::xds::Dialect;

impl Client {
    /// K-25: what is asked here is asked by these relays as well. The server is told on the present stream.
    pub fn handle_relays(&mut self, relays: Vec<String>) {
        let node = come_through(std::mem::take(&mut self.node), relays);
        self.node = stamped(node, &self.settings.relay_id);
        if let Some(stream) = &mut self.stream {
            stream.node_sent = false;
        }
    }

    /// E-01: the node is in the first message of a stream, and in a later one only where it has changed.
    pub(super) fn introduce(&mut self, request: &mut Request) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        if !std::mem::replace(&mut stream.node_sent, true) {
            let node = Some(self.node.clone());
            match request {
                Request::Sotw(request) => request.node = node,
                Request::Delta(request) => request.node = node,
            }
        }
    }

    /// K-25: a request that says nothing else. C-04: it changes nothing. In SotW there is no such request, and the node goes with
    /// the next one.
    pub(super) fn greet_again(&mut self) -> Option<Request> {
        let again = self.dialect == Dialect::Delta && !self.stream.as_ref()?.node_sent;
        let (type_url, _) = self.feeds.iter().find(|(_, feed)| again && feed.outbound.opened)?;
        let mut request = Request::Delta(DeltaDiscoveryRequest {
            type_url: type_url.url().to_owned(),
            ..DeltaDiscoveryRequest::default()
        });
        self.introduce(&mut request);
        Some(request)
    }
}
