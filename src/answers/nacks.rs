// SPDX-License-Identifier: Apache-2.0
//! `/nacks`: what clients reject.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The list of rejections.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Nacks {
    pub(crate) rejections: Vec<RejectedContent>,
    /// How many more there are.
    pub(crate) left_out: usize,
    /// How many streams did not answer in time.
    #[serde(default)]
    pub(crate) unanswered: usize,
}

/// A content that clients reject for one reason.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct RejectedContent {
    /// The content, if it was asked for.
    pub(crate) content: Value,
    /// What was there before.
    pub(crate) before: Option<EarlierContent>,
    #[serde(rename = "type")]
    pub(crate) type_url: String,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    /// The words of the clients.
    pub(crate) rejection: String,
    pub(crate) clients: usize,
    pub(crate) some: Vec<RejecterRow>,
    /// How many clients by their software and its version.
    pub(crate) software: BTreeMap<String, usize>,
    /// How many have accepted it, and how many have done neither: if a name was chosen.
    pub(crate) accepted: Option<BTreeMap<String, usize>>,
    pub(crate) waiting: Option<BTreeMap<String, usize>>,
    pub(crate) since: Option<String>,
    /// When the control plane was told.
    pub(crate) reported: Option<String>,
    /// How many of the clients were sent older content in its place, because they had nothing.
    pub(crate) older: usize,
}

/// The content before one that is rejected.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct EarlierContent {
    pub(crate) version: String,
    pub(crate) content: Value,
}

/// A client that rejects something.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct RejecterRow {
    pub(crate) stream: String,
    pub(crate) node: String,
}
