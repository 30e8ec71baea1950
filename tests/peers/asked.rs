// SPDX-License-Identifier: Apache-2.0
//! What the requests of one type on one stream ask for.
//!
//! Owns a naive reading of requests, for control planes and for observers. Does not know what was answered.

use std::collections::BTreeSet;

use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};

use crate::messages::{CDS, LDS};
use crate::names::covers;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// How many requests there were.
    pub serial: u64,
    /// SotW: whether any request has listed a name.
    named: bool,
    pub wildcard: bool,
    pub names: BTreeSet<String>,
}

/// Whether an empty first request means everything, and in SotW each response lists all there is (B-10, B-16).
#[must_use]
pub fn is_full(type_url: &str) -> bool {
    const SRDS: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";
    [CDS, LDS, SRDS].contains(&type_url)
}

impl Asked {
    /// What is asked for after this request.
    #[must_use]
    pub fn after_sotw(&self, request: &DiscoveryRequest) -> Self {
        let mut names: BTreeSet<String> = request.resource_names.iter().cloned().collect();
        let named = self.named || !names.is_empty();
        Self {
            serial: self.serial + 1,
            named,
            wildcard: names.remove("*") || !named && is_full(&request.type_url),
            names,
        }
    }

    #[must_use]
    pub fn after_delta(&self, request: &DeltaDiscoveryRequest) -> Self {
        let mut asked = self.clone();
        let (more, less) = (&request.resource_names_subscribe, &request.resource_names_unsubscribe);
        let all = |names: &[String]| names.iter().any(|name| name == "*");
        asked.wildcard |= self.serial == 0 && more.is_empty() && less.is_empty() && is_full(&request.type_url);
        asked.wildcard = (asked.wildcard || all(more)) && !all(less);
        asked.serial += 1;
        asked.names.extend(more.iter().filter(|name| *name != "*").cloned());
        asked.names.retain(|name| !less.contains(name));
        asked
    }

    /// Whether the wildcard is about this name: it covers no names of new style.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        self.wildcard && !name.starts_with("xdstp:")
    }

    /// Whether a name is asked for, by itself or with its collection.
    #[must_use]
    pub fn asks(&self, name: &str) -> bool {
        let collection = |collection: &String| covers(collection, name);
        self.names.contains(name) || name.starts_with("xdstp:") && self.names.iter().any(collection)
    }
}
