// SPDX-License-Identifier: Apache-2.0
//! A decoded request, the same for both dialects.
//!
//! Owns which field of either message says what. Does not know what a name means.

use std::collections::BTreeMap;

use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest, ResourceLocator};
use proto::google::rpc::Status;

/// A request of a client.
#[derive(Debug, Default)]
pub struct ClientRequest {
    pub(super) node: Option<Node>,
    pub(super) type_url: String,
    nonce: String,
    pub(super) error: Option<Status>,
    pub(super) lists: RequestLists,
}

/// What a request lists.
#[derive(Debug, Default)]
pub(super) struct RequestLists {
    /// SotW: all names that the client asks for. Delta: those that it asks for from now on.
    pub(super) begun: Vec<String>,
    pub(super) ended: Vec<String>,
    /// The versions that the client says it holds. SotW has one for all names.
    pub(super) versions: BTreeMap<String, String>,
    pub(super) version: String,
}

impl From<DiscoveryRequest> for ClientRequest {
    fn from(request: DiscoveryRequest) -> Self {
        Self {
            node: request.node,
            type_url: request.type_url,
            nonce: request.response_nonce,
            error: request.error_detail,
            lists: RequestLists {
                begun: names(request.resource_names, request.resource_locators),
                version: request.version_info,
                ..RequestLists::default()
            },
        }
    }
}

impl From<DeltaDiscoveryRequest> for ClientRequest {
    fn from(request: DeltaDiscoveryRequest) -> Self {
        Self {
            node: request.node,
            type_url: request.type_url,
            nonce: request.response_nonce,
            error: request.error_detail,
            lists: RequestLists {
                begun: names(request.resource_names_subscribe, request.resource_locators_subscribe),
                ended: names(
                    request.resource_names_unsubscribe,
                    request.resource_locators_unsubscribe,
                ),
                versions: request.initial_resource_versions,
                ..RequestLists::default()
            },
        }
    }
}

/// TP2: a locator counts as its name.
fn names(mut names: Vec<String>, locators: Vec<ResourceLocator>) -> Vec<String> {
    names.extend(locators.into_iter().map(|locator| locator.name));
    names
}

impl ClientRequest {
    /// Returns the URL of its type, as the client wrote it.
    pub fn type_url(&self) -> &str {
        &self.type_url
    }

    /// Returns the nonce of the response that it answers.
    pub fn nonce(&self) -> &str {
        &self.nonce
    }
}
