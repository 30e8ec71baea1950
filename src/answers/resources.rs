// SPDX-License-Identifier: Apache-2.0
//! `/resources`: what a relay has of its control planes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AdoptionCounts, HeldHere};

/// The list of resources, by type.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Resources {
    pub(crate) resources: BTreeMap<String, Vec<ResourceRow>>,
}

/// What a relay knows of a name, without its content.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ResourceRow {
    pub(crate) name: String,
    pub(crate) class: String,
    /// Whether no client reads the view that has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unread: bool,
    /// Whether the wildcard covers it.
    pub(crate) wildcard: bool,
    pub(crate) state: String,
    pub(crate) version: Option<String>,
    pub(crate) digest: Option<String>,
    pub(crate) bytes: Option<usize>,
    pub(crate) received: Option<String>,
    pub(crate) error: Option<String>,
}

/// `/resources/NAME`: all that a relay knows of a name, and who has it.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Whole {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) type_url: String,
    pub(crate) contents: Vec<ContentRow>,
    /// By how it stands with them.
    pub(crate) clients: BTreeMap<String, Holders>,
    pub(crate) adoption: Option<AdoptionCounts>,
    /// How many streams did not answer in time.
    #[serde(default)]
    pub(crate) unanswered: usize,
}

/// A content in one view.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ContentRow {
    #[serde(flatten)]
    pub(crate) listed: ResourceRow,
    /// What is only said if there is a content.
    #[serde(flatten)]
    pub(crate) said: Option<SaidContent>,
}

/// What a control plane has said about a content, and the content.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct SaidContent {
    pub(crate) version_info: Option<String>,
    pub(crate) nonce: Option<String>,
    pub(crate) control_plane: Option<String>,
    #[serde(default)]
    pub(crate) content: Value,
    pub(crate) held: Option<HeldHere>,
}

/// Clients with which a resource stands alike.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Holders {
    pub(crate) count: usize,
    /// How many by the relay's version of what the control plane has sent for them.
    pub(crate) versions: BTreeMap<String, usize>,
    pub(crate) some: Vec<HolderRow>,
}

/// One of them.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct HolderRow {
    #[serde(default)]
    pub(crate) stream: String,
    pub(crate) node: String,
    pub(crate) rejection: Option<String>,
}
