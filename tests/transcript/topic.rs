// SPDX-License-Identifier: Apache-2.0
//! One type on a client of a story: what it has asked for and what it holds.
//!
//! Owns the client's memory. Knows nothing of the relay.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use distributary::xds::{Dialect, TypeUrl};

use crate::client::Client;
use crate::text::listed;
use crate::wire::Said;

/// One type on a client.
#[derive(Default)]
pub(crate) struct Topic {
    /// Whether it has sent a request on this stream.
    pub(crate) started: bool,
    pub(crate) names: BTreeSet<String>,
    /// Whether it subscribed with an empty first request.
    pub(crate) legacy: bool,
    /// The last accepted version.
    pub(crate) version: String,
    /// The newest nonce on this stream.
    pub(crate) nonce: String,
    /// What it holds: name to label and version.
    pub(crate) held: BTreeMap<String, (String, String)>,
    pub(crate) unsettled: VecDeque<Said>,
    /// All responses on all streams, for requests that refer to one of them.
    pub(crate) history: Vec<(String, String)>,
}

/// A request in the terms of a story.
#[derive(Default)]
pub(crate) struct Raw {
    pub(crate) names: Vec<String>,
    pub(crate) subscribe: Vec<String>,
    pub(crate) unsubscribe: Vec<String>,
    pub(crate) initial: BTreeMap<String, String>,
    pub(crate) version: String,
    pub(crate) nonce: String,
    pub(crate) error: Option<String>,
}

impl Topic {
    /// A request that changes nothing.
    pub(crate) fn request(&self) -> Raw {
        Raw {
            names: self.names.iter().cloned().collect(),
            version: self.version.clone(),
            nonce: self.nonce.clone(),
            ..Raw::default()
        }
    }

    /// What the client is subscribed to after a request.
    pub(crate) fn note(&mut self, raw: &Raw, dialect: Dialect) {
        let first = !std::mem::replace(&mut self.started, true);
        match dialect {
            Dialect::Sotw => {
                self.legacy = (first || self.legacy) && self.names.is_empty() && raw.names.is_empty();
                self.names = raw.names.iter().cloned().collect();
            }
            Dialect::Delta => {
                self.legacy |= first && raw.subscribe.is_empty() && raw.unsubscribe.is_empty();
                self.names.extend(raw.subscribe.iter().cloned());
                self.names.retain(|name| !raw.unsubscribe.contains(name));
            }
        }
    }

    pub(crate) fn take(&mut self, said: &Said, full: bool) {
        self.version.clone_from(&said.version);
        if full {
            self.held.clear();
        }
        for item in &said.items {
            if let Some(label) = &item.label {
                self.held
                    .insert(item.name.clone(), (label.clone(), item.version.clone()));
            }
        }
        for name in &said.removed {
            self.held.remove(name);
        }
    }
}

/// The label of a content in stories and checks.
pub(crate) fn identity(name: &str, label: Option<&str>) -> String {
    format!("{name}@{}", label.unwrap_or("-"))
}

/// A request as a story writes it.
pub(crate) fn raw(text: &str, client: &Client, topic: &TypeUrl) -> Raw {
    let mut raw = Raw::default();
    let mut text = text.trim();
    if let Some((list, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        raw.names = listed(&format!("[{list}]")).into_iter().map(str::to_owned).collect();
        text = rest;
    }
    for word in text.split_whitespace() {
        let number = || word[1..].parse().ok();
        match word.split_at(1) {
            ("+", name) => raw.subscribe.push(name.to_owned()),
            ("-", name) => raw.unsubscribe.push(name.to_owned()),
            ("=", content) => {
                let name = content.split('@').next().unwrap_or_default().to_owned();
                raw.initial.insert(name, client.version_of(topic, content));
            }
            ("!", "") => raw.error = Some("it is bad".to_owned()),
            ("v", text) => raw.version = number().map_or_else(|| text.to_owned(), |n| client.quote(topic, n).1.clone()),
            ("n", text) => raw.nonce = number().map_or_else(|| text.to_owned(), |n| client.quote(topic, n).0.clone()),
            _ => panic!("`{word}` is no part of a request"),
        }
    }
    raw
}
