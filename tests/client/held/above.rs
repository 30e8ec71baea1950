// SPDX-License-Identifier: Apache-2.0
//! A relay between a stage and its control plane.
//!
//! Owns a stage of its own, and the server's half of the stream of the one below. Knows nothing of what either holds.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use classes::Classes;
use identity::Identity;
use prost::Message;
use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use protocol::{ClientRequest, Opening, Request, Response, Server, StreamLimits, StreamSettings, StreamTimers};
use xds::{Dialect, Dirty, Sight, Target, Types, Unshared};

use super::plane::Reply;
use super::stage::Stage;
use crate::relay;

const ANSWERS: Unshared = Unshared { chunk: 1 << 20 };

/// The relay above.
pub(crate) struct Above {
    pub(crate) stage: Stage,
    settings: Arc<StreamSettings>,
    stream: Option<Server>,
    /// How many streams it has had, and how much it had published when the last one was told.
    streams: u32,
    told: usize,
}

impl Above {
    pub(crate) fn new(stage: Stage) -> Self {
        let settings = StreamSettings {
            types: Types::default(),
            limits: StreamLimits::default(),
            timers: StreamTimers::default(),
            classes: Classes::default(),
            anonymous: false,
            relay_id: "above".to_owned(),
            access: Arc::default(),
        };
        Self {
            stage,
            settings: Arc::new(settings),
            stream: None,
            streams: 0,
            told: 0,
        }
    }

    /// The stream of the one below ends.
    pub(crate) fn hang_up(&mut self) {
        self.stream = None;
    }

    /// The one below asks.
    pub(crate) fn hear(&mut self, request: Request, node: Option<Bytes>) {
        let now = self.stage.upstream.now;
        let stream = self.stream.get_or_insert_with(|| {
            self.streams += 1;
            let opening = Opening {
                dialect: self.stage.dialect,
                service: None,
                nonce_prefix: self.streams,
                identity: Identity::default(),
                polls: false,
            };
            Server::new(self.settings.clone(), opening)
        });
        let node = node.map(|node| Node::decode(node).unwrap());
        let request: ClientRequest = match request {
            Request::Delta(request) => DeltaDiscoveryRequest { node, ..request }.into(),
            Request::Sotw(request) => DiscoveryRequest { node, ..request }.into(),
        };
        stream.handle(request, &ANSWERS, now).unwrap();
        // What nobody wants any more lingers.
        for want in std::iter::from_fn(|| stream.poll_want()).filter(|want| want.wanted) {
            if let Target::Name(name) = &want.target {
                self.stage.wanted.insert(name.to_string());
            }
            let changes = self.stage.upstream.client.handle_want(&want);
            self.stage.publish(changes);
        }
    }

    /// Returns what it has to say to the one below; `None`: it ends the stream.
    pub(crate) fn replies(&mut self) -> Option<Vec<Reply>> {
        self.stage.exchange();
        let now = self.stage.upstream.now;
        let Some(stream) = &mut self.stream else {
            return Some(Vec::new());
        };
        if std::mem::replace(&mut self.told, self.stage.cuts) != self.stage.cuts {
            let types = self.stage.upstream.cut.slots().map(|(of, _)| of);
            types.for_each(|of| stream.handle_dirty(of, Dirty::All));
        }
        if stream.poll_timeout().is_some_and(|due| due <= now) {
            stream.handle_timeout(now);
        }
        let cut = self.stage.upstream.cut.with_server_state(self.stage.state);
        let sight = Sight::from(Arc::new(cut));
        let replies = std::iter::from_fn(|| stream.poll_response(&sight, &ANSWERS, now));
        let replies = replies.map(|response| read(&response)).collect();
        stream.poll_end().is_none().then_some(replies)
    }

    /// When something happens by itself.
    pub(crate) fn due(&self) -> Option<Instant> {
        let told = self.stream.as_ref().and_then(Server::poll_timeout);
        let told = told.filter(|at| *at > self.stage.upstream.now);
        told.into_iter().chain(self.stage.due()).min()
    }
}

/// A response as the one below reads it.
fn read(response: &Response) -> Reply {
    let (type_url, nonce) = (response.type_url.url().to_owned(), response.nonce.to_string());
    let (control_plane, body) = (relay(), response.batch.encoded(response.dialect).0.concat());
    match response.dialect {
        Dialect::Delta => Reply::Delta(DeltaDiscoveryResponse {
            type_url,
            nonce,
            control_plane,
            ..DeltaDiscoveryResponse::decode(&*body).unwrap()
        }),
        Dialect::Sotw => Reply::Sotw(DiscoveryResponse {
            type_url,
            nonce,
            control_plane,
            version_info: response.version.to_string(),
            ..DiscoveryResponse::decode(&*body).unwrap()
        }),
    }
}
