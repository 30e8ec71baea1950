// SPDX-License-Identifier: Apache-2.0
//! `/holds`: what is held, and older contents that clients use.

use serde::{Deserialize, Serialize};

/// What is held, and the older contents in use.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct HoldList {
    pub(crate) holds: Vec<HoldRow>,
    pub(crate) older: Vec<OlderContent>,
    /// The same for people.
    pub(crate) text: String,
}

/// What is held for one reason.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct HoldRow {
    pub(crate) id: String,
    pub(crate) server: String,
    pub(crate) class: String,
    #[serde(rename = "type")]
    pub(crate) type_url: String,
    pub(crate) reason: String,
    pub(crate) judgement: Option<u32>,
    /// Whether somebody should look.
    pub(crate) trouble: bool,
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    /// How many sessions want any of the resources.
    pub(crate) clients: usize,
    pub(crate) count: usize,
    /// How many of them are not listed.
    pub(crate) left_out: usize,
    pub(crate) resources: Vec<HeldName>,
}

/// One resource that is held.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct HeldName {
    pub(crate) name: String,
    pub(crate) why: String,
    pub(crate) since: String,
    pub(crate) until: Option<String>,
    /// What refers to it.
    pub(crate) by: Option<String>,
    /// Whether clients may have that.
    pub(crate) said: Option<bool>,
    pub(crate) emptied: bool,
    /// Why a person holds it for longer.
    pub(crate) extended: Option<String>,
}

/// An older content that clients use.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct OlderContent {
    pub(crate) id: String,
    pub(crate) server: String,
    pub(crate) class: String,
    #[serde(rename = "type")]
    pub(crate) type_url: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) clients: usize,
    /// Some of the clients.
    pub(crate) nodes: Vec<String>,
    pub(crate) since: String,
    /// Whether what it names is kept.
    pub(crate) refers: bool,
}

/// Why a resource is held in one view.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct HeldHere {
    pub(crate) reason: String,
    pub(crate) removal: HeldName,
}
