// SPDX-License-Identifier: Apache-2.0
//! `/events`: what is told when it changes, and counts.

use std::collections::BTreeMap;

use serde::Serialize;

/// A control plane in short.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ServerGlimpse {
    pub(crate) authority: String,
    pub(crate) server: String,
    pub(crate) state: String,
    pub(crate) why: String,
}

/// What is held for one reason, or an older content, in short.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct HoldGlimpse {
    pub(crate) server: String,
    pub(crate) class: String,
    #[serde(rename = "type")]
    pub(crate) type_url: String,
    pub(crate) reason: &'static str,
    pub(crate) trouble: bool,
    pub(crate) count: usize,
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) some: Vec<String>,
    pub(crate) words: Vec<SentencePart>,
    pub(crate) nouns: [&'static str; 2],
    /// The order that a person is most likely to want.
    pub(crate) order: String,
}

/// A part of a sentence.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum SentencePart {
    Text(String),
    /// A time of which the reader wants to know how far away it is.
    Time {
        left: String,
    },
}

/// How much of each limited resource is in use, in percent, and what the relay does about it.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct PressureGlimpse {
    pub(crate) percent: BTreeMap<String, f64>,
    pub(crate) active: Vec<String>,
}

/// Metrics, added up over their labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct CountSums {
    pub(crate) connections: u64,
    pub(crate) streams: u64,
    pub(crate) views: u64,
    pub(crate) subscriptions: u64,
    pub(crate) resources: u64,
    pub(crate) bytes: u64,
    pub(crate) requests: u64,
    pub(crate) responses: u64,
    pub(crate) response_bytes: u64,
    pub(crate) acks: u64,
    pub(crate) nacks: u64,
    pub(crate) updates: u64,
    pub(crate) memory: u64,
    pub(crate) started: u64,
    pub(crate) stalls: u64,
    /// How many changes were acknowledged within each bound.
    pub(crate) convergence_seconds: BTreeMap<String, u64>,
    pub(crate) processor_millis: u64,
    pub(crate) stalled_seconds: f64,
}
