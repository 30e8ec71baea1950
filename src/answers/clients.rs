// SPDX-License-Identifier: Apache-2.0
//! `/clients`: the client streams.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The list of client streams.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Clients {
    pub(crate) clients: Vec<ClientRow>,
    #[serde(flatten)]
    pub(crate) end: ClientsEnd,
}

/// What stands behind the list.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ClientsEnd {
    /// Clients that wait and have no stream at present, if the query may mean them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) away: Option<usize>,
    /// Whether there are more than were asked for.
    #[serde(default)]
    pub(crate) more: bool,
    /// How many streams did not answer in time.
    pub(crate) unanswered: usize,
}

/// One client stream.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct ClientRow {
    pub(crate) stream: String,
    pub(crate) node: ClientNode,
    pub(crate) identity: String,
    pub(crate) class: String,
    pub(crate) address: String,
    pub(crate) dialect: String,
    pub(crate) service: String,
    pub(crate) since: String,
    pub(crate) requests: u64,
    pub(crate) request_bytes: u64,
    /// Only the list says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) state: String,
    pub(crate) types: BTreeMap<String, ClientTypeRow>,
}

/// The node of a client.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct ClientNode {
    pub(crate) id: String,
    pub(crate) cluster: String,
    pub(crate) locality: NodeLocality,
    pub(crate) user_agent_name: String,
    pub(crate) user_agent_version: String,
}

/// Where a node is.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct NodeLocality {
    pub(crate) region: String,
    pub(crate) zone: String,
    pub(crate) sub_zone: String,
}

/// What a client has of a type.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct ClientTypeRow {
    pub(crate) status: String,
    /// The control plane from which it is read.
    pub(crate) server: Option<String>,
    pub(crate) wildcard: bool,
    pub(crate) names: usize,
    pub(crate) last_sent: Option<String>,
    pub(crate) last_accepted: Option<String>,
    pub(crate) unanswered_since: Option<String>,
    /// The error texts of what it rejects.
    pub(crate) rejections: Vec<String>,
    /// What it was sent older content of, because it rejects the current one and had nothing: some of that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) older: Vec<OlderRow>,
    /// What it keeps as it was, because it rejects the current content: some of that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rejecting: Vec<OlderRow>,
    /// What is only said of one client that is shown in full.
    #[serde(flatten)]
    pub(crate) full: Option<ClientResources>,
}

/// A name of which a client rejects the current content.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct OlderRow {
    pub(crate) name: String,
    /// The version that it rejects.
    pub(crate) version: String,
    /// The version that it was sent instead, if it had nothing.
    pub(crate) served: String,
    pub(crate) why: String,
    pub(crate) since: String,
    pub(crate) words: String,
}

/// All resources of a type that a client asks for.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ClientResources {
    /// Whether the client has accepted all of them.
    pub(crate) ready: bool,
    /// How many by how they stand.
    pub(crate) standings: BTreeMap<String, usize>,
    pub(crate) resources: Vec<OfClient>,
}

/// A resource that a client asks for.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct OfClient {
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) version: Option<String>,
    pub(crate) rejection: Option<String>,
}
