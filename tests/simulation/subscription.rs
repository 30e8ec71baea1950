// SPDX-License-Identifier: Apache-2.0
//! What a client asks for of one type, by its requests.
//!
//! Owns the naive reading of requests in both dialects. Knows nothing of answers.

use std::collections::BTreeSet;

use super::body::Type;
use super::names::covers;
use super::wire::Up;

/// What was asked for, as of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subscription {
    /// How many requests of the type there were on the stream.
    pub(crate) serial: u64,
    /// Whether any request has listed a name.
    named: bool,
    pub(crate) wildcard: bool,
    pub(crate) names: BTreeSet<String>,
}

impl Subscription {
    /// What is asked for after this request.
    pub(crate) fn after(&self, kind: Type, request: &Up) -> Self {
        let mut want = self.clone();
        let first = want.serial == 0;
        want.serial += 1;
        match request {
            Up::Sotw(request) => {
                let mut names: BTreeSet<String> = request.resource_names.iter().cloned().collect();
                let all = names.remove("*");
                want.named |= all || !names.is_empty();
                want.wildcard = all || !want.named && kind.full_state();
                want.names = names;
            }
            Up::Delta(request) => {
                let (more, less) = (&request.resource_names_subscribe, &request.resource_names_unsubscribe);
                want.wildcard |= first && more.is_empty() && less.is_empty() && kind.full_state();
                want.wildcard |= more.iter().any(|name| name == "*");
                want.wildcard &= !less.iter().any(|name| name == "*");
                want.names.extend(more.iter().filter(|name| *name != "*").cloned());
                want.names.retain(|name| !less.contains(name));
            }
        }
        want
    }

    /// Whether the wildcard is about this name: it covers no names of new style.
    pub(crate) fn covers(&self, name: &str) -> bool {
        self.wildcard && !name.starts_with("xdstp:")
    }

    /// Whether a name is asked for, by itself or with its collection.
    pub(crate) fn asks(&self, name: &str) -> bool {
        let collection = |collection: &String| covers(collection, name);
        self.names.contains(name) || name.starts_with("xdstp:") && self.names.iter().any(collection)
    }
}
