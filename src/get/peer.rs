// SPDX-License-Identifier: Apache-2.0
//! A server that is asked without a relay around it: who it is, as whom it is asked, and the stream to it.
//!
//! Owns what is different from a relay's own streams: nothing is held, and nothing is kept after it. Does not know what is asked.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::uri::Authority;

use crate::cache::{Full, Seat, View, ViewSettings};
use crate::classes::Class;
use crate::config::{Grpc, Timers};
use crate::proto::envoy::config::core::v3::Node;
use crate::protocol::{ClientSettings, Why};
use crate::telemetry::{Metrics, UpstreamMetrics};
use crate::upstream::{CallHead, ServerTarget as Server, StreamPhase, StreamStatus, UpstreamSettings, Writer};
use crate::xds::{Cut, GuardSettings, ServerFeatures, Target, TypeUrl, Types, Want};

/// A server, and as whom it is asked.
#[derive(Clone, Debug)]
pub struct AskedPeer {
    /// The server's address as given.
    pub server: String,
    /// How to connect to it.
    pub grpc: Grpc,
    /// Its name in the request and for TLS, if that differs from its address.
    pub authority: Option<Authority>,
    /// Further headers of the request.
    pub headers: HeaderMap,
    /// The node in the request.
    pub node: Node,
}

/// The stream to a server, and what it has said. The server is asked while the writer beside it runs.
pub(super) struct PeerLine {
    seat: Seat,
    server: Arc<Server>,
    metrics: Arc<UpstreamMetrics>,
    /// Returns the state of the streams to the server.
    statuses: Box<dyn Fn() -> Vec<StreamStatus>>,
}

/// The largest message of a server.
const MESSAGE: usize = 1 << 30;

impl AskedPeer {
    /// Begins to ask. A name of which the server says nothing for so long does not exist.
    pub(super) fn call(&self, patience: Duration) -> (PeerLine, Writer) {
        let view = View::new(
            Class::default(),
            ViewSettings {
                linger: Duration::ZERO,
                names_per_view: 0,
                pinned_bytes_per_view: 0,
                history_bytes: 16 << 20,
            },
        );
        view.set_guard(GuardSettings::OFF);
        let metrics = Metrics::new([]).upstreams.of(&self.server);
        let call = CallHead {
            authority: self.authority.clone(),
            headers: self.headers.clone(),
        };
        let server = Server::asked_once(call, &self.server, self.grpc.clone(), metrics.clone());
        let usual = Timers::default();
        let settings = UpstreamSettings {
            client: Arc::new(ClientSettings {
                types: Types::default(),
                relay_id: format!("get/{:08x}", rand::random::<u32>()),
                does_not_exist: patience,
                wildcard_quiet: ClientSettings::WILDCARD_QUIET,
                features: ServerFeatures::default(),
            }),
            upstream_message: MESSAGE,
            keepalive: usual.keepalive,
            ping: Duration::ZERO,
            idle: usual.keepalive,
            interval: usual.rest_interval,
            reconnect_max: usual.reconnect_max,
            removal_quiet: Duration::ZERO,
            order_gate: Duration::ZERO,
        };
        let seat = view.enter();
        let writer = Writer::new(view, &Arc::new(self.node.clone()), &server, None, &Arc::new(settings));
        let line = PeerLine {
            seat,
            server,
            metrics,
            statuses: Box::new(writer.statuses()),
        };
        (line, writer)
    }
}

impl PeerLine {
    /// Begins or ends to ask for something.
    pub(super) fn want(&self, type_url: &TypeUrl, target: Target, wanted: bool) -> Result<(), Full> {
        self.seat.want(&Want {
            type_url: type_url.clone(),
            target,
            wanted,
            written: None,
        })
    }

    pub(super) const fn view(&self) -> &Arc<View> {
        self.seat.view()
    }

    /// Returns what the server has said.
    pub(super) fn cut(&self) -> Arc<Cut> {
        self.view().cut()
    }

    /// Waits until that changes.
    pub(super) async fn rung(&self) {
        poll_fn(|cx| self.seat.bell().poll(cx)).await;
    }

    /// Waits for a further change from here on.
    pub(super) fn rest(&self) {
        drop(self.seat.bell().take());
    }

    /// Returns the current error of the server, if there is one.
    pub(super) fn error(&self) -> Option<String> {
        (self.statuses)().into_iter().find_map(|status| status.error)
    }

    /// Returns the types for which the server is not asked, and why.
    pub(super) fn unserved(&self) -> BTreeMap<TypeUrl, Arc<str>> {
        let all = (self.statuses)().into_iter();
        all.flat_map(|status| status.unserved).collect()
    }

    /// Whether the server has answered on a stream that is open.
    pub(super) fn is_answering(&self) -> bool {
        (self.statuses)()
            .iter()
            .any(|status| status.phase == StreamPhase::Answering)
    }

    /// Returns why the server has not answered in time, as far as it is known.
    pub(super) fn unanswered(&self, within: Duration) -> Option<String> {
        let why = |status: StreamStatus| match (status.phase, status.why) {
            (StreamPhase::Answering, _) => None,
            (_, Some(Why::Refused(words) | Why::Unanswered(words))) => Some(format!(
                "{words}; in the other dialect it did not answer within {within:?}"
            )),
            (StreamPhase::Connecting, _) => Some(format!("there was no connection within {within:?}")),
            _ => None,
        };
        (self.statuses)().into_iter().find_map(why)
    }

    /// Returns how many responses were rejected as invalid.
    pub(super) fn refusals(&self) -> u64 {
        self.metrics.nacks.get()
    }

    /// Returns why the last rejected response of each type was rejected.
    pub(super) fn rejected(&self) -> BTreeMap<String, String> {
        self.server.record.last_refused()
    }
}
