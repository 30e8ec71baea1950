// SPDX-License-Identifier: Apache-2.0
//! Requests and responses of REST as JSON. Owns their outer shape; the JSON of each resource is made once and shared.

use bytes::Bytes;
use prost::Message;

use super::Schemas;
use crate::fault::Fault;
use crate::read::{Parsed, Unknown};
use crate::tree::{Bounds, Tree};
use proto::envoy::service::discovery::v3::DiscoveryRequest;
use proto::google::protobuf::Any;
use xds::meant;

/// A parsed response. Each resource has its own result: a bad one does not make the others bad.
#[derive(Clone, Debug)]
pub struct Response {
    /// The version of the response.
    pub version_info: String,
    /// The type of its resources; may be empty.
    pub type_url: String,
    /// The nonce; may be empty.
    pub nonce: String,
    /// The identifier of the control plane; may be empty.
    pub control_plane: String,
    /// The resources in their order, or what is wrong with each.
    pub resources: Vec<Result<Parsed<Any>, Fault>>,
}

/// The keys of a response. J-01: both spellings.
const KEYS: [&str; 12] = [
    "@type",
    "version_info",
    "versionInfo",
    "type_url",
    "typeUrl",
    "nonce",
    "canary",
    "control_plane",
    "controlPlane",
    "resource_errors",
    "resourceErrors",
    "resources",
];

impl Schemas {
    /// H-01: parses a request. J-05: unknown fields are ignored.
    ///
    /// # Errors
    /// The body is not JSON or not a request.
    pub fn request(&self, body: &[u8]) -> Result<DiscoveryRequest, Fault> {
        let tree = Tree::json(body, Bounds::REQUEST)?;
        let name = "envoy.service.discovery.v3.DiscoveryRequest";
        let encoded = self.encode(name, &tree, "", Unknown::Ignore)?.value;
        DiscoveryRequest::decode(encoded).map_err(|error| Fault::of("", error.to_string()))
    }

    /// Parses a response from a server or a file.
    ///
    /// # Errors
    /// The tree is not a response. The fault of a single resource is in [`Response::resources`].
    pub fn response(&self, tree: &Tree, unknown: Unknown) -> Result<Response, Fault> {
        let Some(entries) = tree.entries() else {
            let message = format!("expected a DiscoveryResponse, found {}", tree.description());
            return Err(Fault::at(tree.place(), "", message));
        };
        let text = |names: [&str; 2]| {
            let Some((name, value)) = names.into_iter().find_map(|name| Some((name, tree.get(name)?))) else {
                return Ok(String::new());
            };
            match value.text() {
                Some(text) => Ok(text.to_owned()),
                None if value.is_null() => Ok(String::new()),
                None => {
                    let message = format!("expected a string, found {}", value.description());
                    Err(Fault::at(value.place(), name, message))
                }
            }
        };
        for entry in entries {
            let key = entry.key.as_str();
            let known = KEYS.contains(&key);
            if !known && unknown == Unknown::Deny {
                let meant = meant(key, KEYS).map(|meant| format!("; did you mean `{meant}`?"));
                let message = format!("DiscoveryResponse has no field `{key}`{}", meant.unwrap_or_default());
                return Err(Fault::at(entry.place, "", message));
            }
        }
        let control_plane = tree.get("control_plane").or_else(|| tree.get("controlPlane"));
        let identifier = control_plane
            .and_then(|tree| tree.get("identifier"))
            .and_then(Tree::text);
        Ok(Response {
            version_info: text(["version_info", "versionInfo"])?,
            type_url: text(["type_url", "typeUrl"])?,
            nonce: text(["nonce", "nonce"])?,
            control_plane: identifier.unwrap_or_default().to_owned(),
            resources: self.resources(tree.get("resources"), unknown)?,
        })
    }

    fn resources(&self, tree: Option<&Tree>, unknown: Unknown) -> Result<Vec<Result<Parsed<Any>, Fault>>, Fault> {
        let Some(tree) = tree.filter(|tree| !tree.is_null()) else {
            return Ok(Vec::new());
        };
        let Some(items) = tree.items() else {
            let message = format!("expected a list, found {}", tree.description());
            return Err(Fault::at(tree.place(), "resources", message));
        };
        let read = |(index, item)| self.resource(item, &format!("resources[{index}]"), unknown);
        Ok(items.iter().enumerate().map(read).collect())
    }
}

/// H-02: returns a response around the shared JSON that [`Schemas::resource_json`] made, without copying it.
#[must_use]
pub fn response(version_info: &str, type_url: &str, control_plane: &str, resources: &[Bytes]) -> Vec<Bytes> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut parts = Vec::with_capacity(resources.len() * 2 + 2);
    parts.push(Bytes::from(format!(
        "{{\"version_info\":{},\"resources\":[",
        quoted(version_info)
    )));
    for (index, resource) in resources.iter().enumerate() {
        if index > 0 {
            parts.push(Bytes::from_static(b","));
        }
        parts.push(resource.clone());
    }
    parts.push(Bytes::from(format!(
        "],\"type_url\":{},\"control_plane\":{{\"identifier\":{}}}}}",
        quoted(type_url),
        quoted(control_plane)
    )));
    parts
}
