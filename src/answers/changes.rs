// SPDX-License-Identifier: Apache-2.0
//! `/changes` and `/history`: what has changed last, and the counts of the last hour.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The last changes.
#[derive(Debug, Serialize)]
pub(crate) struct ChangeList {
    pub(crate) changes: Vec<ChangeRow>,
}

/// What arrived together, or is not held any more.
#[derive(Debug, Serialize)]
pub(crate) struct ChangeRow {
    #[serde(rename = "type")]
    pub(crate) type_url: String,
    pub(crate) class: String,
    pub(crate) received: String,
    pub(crate) count: usize,
    pub(crate) some: Vec<String>,
    /// That of the first one.
    pub(crate) adoption: Option<AdoptionCounts>,
    #[serde(flatten)]
    pub(crate) end: Option<EndedHold>,
}

/// How it came that something is not held any more.
#[derive(Debug, Serialize)]
pub(crate) struct EndedHold {
    pub(crate) ended: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) words: &'static str,
    pub(crate) trouble: bool,
}

/// How many clients have accepted a content.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct AdoptionCounts {
    pub(crate) accepted: usize,
    /// Those of them whose streams began after it arrived.
    pub(crate) came_later: usize,
    /// The other clients that want it.
    pub(crate) not_accepted: usize,
    /// Those of them that have rejected it.
    pub(crate) rejected: usize,
    /// Within which time all had that were there, if it is known.
    pub(crate) at_latest_seconds: Option<f64>,
}

/// The counts of the last hour, the oldest first, each list by itself.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct HourCounts {
    pub(crate) since: String,
    pub(crate) every_seconds: u64,
    pub(crate) seconds_ago: VecDeque<u64>,
    pub(crate) streams: VecDeque<u32>,
    /// A second.
    pub(crate) changes: VecDeque<f32>,
    pub(crate) deliveries: VecDeque<f32>,
    /// Of the time until changes were acknowledged, in seconds; none if nothing was.
    pub(crate) median: VecDeque<Option<f32>>,
    pub(crate) slowest: VecDeque<Option<f32>>,
    pub(crate) rejections: VecDeque<u32>,
    /// How many control planes could not be reached.
    pub(crate) away: VecDeque<u32>,
    pub(crate) holds: VecDeque<u32>,
    pub(crate) memory: VecDeque<u64>,
    /// Processors.
    pub(crate) processor: VecDeque<f32>,
}
