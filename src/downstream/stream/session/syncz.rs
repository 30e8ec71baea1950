// SPDX-License-Identifier: Apache-2.0
//! Istio's question which clients are in sync: the type `istio.io/debug/syncz` over ADS in SotW.
//!
//! Owns the question on its way, and the form of the answer. Who may ask is in `questions`, what is answered in `census`.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use prost::Message as _;
use tonic::Status;

use super::Session;
use crate::downstream::questions::allowed;
use crate::proto::envoy::config::core::v3::ControlPlane;
use crate::proto::envoy::service::discovery::v3::DiscoveryResponse;
use crate::proto::envoy::service::status::v3::ClientConfig;
use crate::proto::google::protobuf::Any;
use crate::wire::{Rope, message_of};

/// The type.
pub(super) const SYNCZ: &str = "istio.io/debug/syncz";
/// What it is answered with.
const CLIENT_CONFIG: &str = "type.googleapis.com/envoy.service.status.v3.ClientConfig";

/// The field `resources` of the answer.
const RESOURCES: u32 = 2;

/// The questions of one stream.
#[derive(Default)]
pub(super) struct Syncz {
    asking: Option<BoxFuture<'static, Result<Vec<Bytes>, Status>>>,
    answer: Option<Rope>,
    /// How often it was answered; the last nonce.
    answered: u64,
}

impl Session {
    /// Takes a request for the type with this nonce. What acknowledges or rejects the last answer is no question; any other nonce is one,
    /// because `istioctl` sends the time as the nonce of its first request.
    pub(super) fn ask_syncz(&mut self, nonce: &str) -> Result<(), Status> {
        allowed(&self.shared, self.accounts.identity())()?;
        let syncz = self.syncz.get_or_insert_default();
        if syncz.answered == 0 || nonce != syncz.answered.to_string() {
            // An earlier question that is not answered yet is not asked any more.
            syncz.asking = None;
            let shared = self.shared.clone();
            let fields = fields(syncz.answered + 1, &shared.identifier);
            syncz.asking = Some(async move { shared.status.fleet(RESOURCES, resource, &fields).await }.boxed());
        }
        Ok(())
    }

    /// Looks whether the answer is there; the task is woken when it is.
    pub(super) fn poll_syncz(&mut self, cx: &mut Context<'_>) {
        let Some(syncz) = &mut self.syncz else { return };
        let Some(Poll::Ready(found)) = syncz.asking.as_mut().map(|asking| asking.poll_unpin(cx)) else {
            return;
        };
        syncz.asking = None;
        self.stirred = true;
        match found {
            Ok(parts) => {
                syncz.answered += 1;
                syncz.answer = Some(message_of(parts));
            }
            Err(status) => drop(self.end.get_or_insert(status)),
        }
    }

    /// Returns the answer, once.
    pub(super) fn take_syncz(&mut self) -> Option<Rope> {
        self.syncz.as_mut()?.answer.take()
    }
}

/// Returns a stream as the resource that it is in the answer.
fn resource(client: &ClientConfig) -> Any {
    Any {
        type_url: CLIENT_CONFIG.to_owned(),
        value: client.encode_to_vec().into(),
    }
}

/// Returns the fields of the answer that are not its resources.
fn fields(nonce: u64, identifier: &str) -> DiscoveryResponse {
    DiscoveryResponse {
        version_info: nonce.to_string(),
        type_url: SYNCZ.to_owned(),
        nonce: nonce.to_string(),
        control_plane: Some(ControlPlane {
            identifier: identifier.to_owned(),
        }),
        ..DiscoveryResponse::default()
    }
}
