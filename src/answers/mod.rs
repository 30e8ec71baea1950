// SPDX-License-Identifier: Apache-2.0
//! What the admin address answers, as the commands read it.
//!
//! Owns the fields and their names. Neither fills nor shows them. What an earlier version does not say has a default.

mod changes;
mod clients;
mod events;
mod holds;
mod nacks;
mod resources;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use changes::{AdoptionCounts, ChangeList, ChangeRow, EndedHold, HourCounts};
pub(crate) use clients::{
    ClientNode, ClientResources, ClientRow, ClientTypeRow, Clients, ClientsEnd, NodeLocality, OfClient, OlderRow,
};
pub(crate) use events::{CountSums, HoldGlimpse, PressureGlimpse, SentencePart, ServerGlimpse};
pub(crate) use holds::{HeldHere, HeldName, HoldList, HoldRow, OlderContent};
pub(crate) use nacks::{EarlierContent, Nacks, RejectedContent, RejecterRow};
pub(crate) use resources::{ContentRow, HolderRow, Holders, ResourceRow, Resources, SaidContent, Whole};

/// `/clusters`
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ClusterList {
    pub(crate) authorities: Vec<AuthorityRow>,
    /// What is wrong with the relay's own files.
    #[serde(default)]
    pub(crate) faults: Vec<String>,
    /// How its client streams stand.
    pub(crate) clients: Option<StandingCounts>,
}

/// How the client streams of a relay stand.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct StandingCounts {
    pub(crate) streams: usize,
    pub(crate) up_to_date: usize,
    pub(crate) rejecting: usize,
    /// Clients that were sent older content in the place of what they reject.
    pub(crate) older: usize,
    pub(crate) lagging: usize,
    pub(crate) waiting: usize,
    /// Clients that wait and have no stream at present.
    pub(crate) away: usize,
    /// How many hung and were cut off in the last ten minutes.
    pub(crate) hung: usize,
    /// The last of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hung_clients: Vec<HungClient>,
    /// The counts in a sentence.
    pub(crate) why: String,
}

/// A client that hung and was cut off.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct HungClient {
    pub(crate) name: String,
    pub(crate) at: String,
    pub(crate) why: String,
}

impl StandingCounts {
    /// Returns how many clients there are.
    pub(crate) const fn clients(&self) -> usize {
        self.streams.saturating_add(self.away)
    }
}

/// The control planes of one authority, by priority.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct AuthorityRow {
    pub(crate) name: String,
    pub(crate) servers: Vec<ServerRow>,
}

/// One control plane.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct ServerRow {
    pub(crate) server: String,
    pub(crate) state: String,
    pub(crate) since: Option<String>,
    pub(crate) last_error: Option<String>,
    pub(crate) next_attempt: Option<String>,
    pub(crate) last_success: Option<String>,
    pub(crate) streams: usize,
    pub(crate) refused: usize,
    pub(crate) dialects: BTreeMap<String, SpokenDialect>,
    /// The types for which it ends streams, with its error texts.
    pub(crate) suspected: BTreeMap<String, String>,
    /// The types that are not requested from it, with the reasons.
    pub(crate) unserved: BTreeMap<String, String>,
    pub(crate) sessions: usize,
    pub(crate) watching: usize,
    pub(crate) types: BTreeMap<String, OfType>,
    pub(crate) lacking: LackingNames,
    /// The state and its reasons, in a sentence.
    pub(crate) why: String,
}

/// A dialect in use.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct SpokenDialect {
    pub(crate) streams: usize,
    pub(crate) reason: String,
}

/// What there is of a type.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct OfType {
    pub(crate) resources: usize,
    /// Whether some are not confirmed: the server is away, or they come from a snapshot.
    pub(crate) stale: bool,
    /// Whether some come from a snapshot; `why` says so.
    #[serde(skip)]
    pub(crate) restored: bool,
}

/// What is wanted and was not sent.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct LackingNames {
    pub(crate) sessions: usize,
    pub(crate) count: usize,
    pub(crate) some: Vec<String>,
}

/// `/views`
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ViewList {
    #[serde(default)]
    pub(crate) left_out: usize,
    pub(crate) views: Vec<ViewRow>,
}

impl ViewList {
    /// Returns how many removals are held at which somebody should look. An older relay does not tell them apart.
    pub(crate) fn in_trouble(&self) -> usize {
        let views = self.views.iter();
        views.map(|view| view.held_in_trouble.unwrap_or(view.held)).sum()
    }
}

/// One view.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct ViewRow {
    pub(crate) class: String,
    pub(crate) server: Option<String>,
    pub(crate) reading: usize,
    pub(crate) watching: usize,
    /// How many removed resources are still served.
    pub(crate) held: usize,
    /// How many of them somebody should look at.
    pub(crate) held_in_trouble: Option<usize>,
    /// How many clients were sent older content in the place of what they reject.
    pub(crate) older: usize,
    pub(crate) types: BTreeMap<String, Halves>,
}

impl ViewRow {
    /// Whether any client reads it.
    pub(crate) const fn is_read(&self) -> bool {
        self.reading > 0
    }
}

/// What the wildcard covers, and what was asked for by name.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Halves {
    pub(crate) wildcard: Option<HalfRow>,
    pub(crate) named: HalfRow,
}

/// One of the two. The digests of equal contents are equal.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct HalfRow {
    pub(crate) resources: usize,
    pub(crate) bytes: usize,
    pub(crate) complete: bool,
    pub(crate) stale: bool,
    pub(crate) digest: String,
}
