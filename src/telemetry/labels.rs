// SPDX-License-Identifier: Apache-2.0
//! The values of labels that are known before anything has happened, so that their series begin at 0.
//!
//! Owns which types have a label of their own; all others share one, because clients may invent types. Does not own other words.

use std::collections::BTreeSet;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Metric, Registry};

use crate::xds::TypeUrl;

/// The labels of a series, with their values.
pub(super) type Labels<const N: usize> = [(&'static str, String); N];

/// The label of all types that are neither known nor configured.
const OTHER: &str = "other";

/// The labels of types.
#[derive(Debug)]
pub(super) struct TypeLabels {
    /// The full names of types that the operator configured and that are not known anyway.
    configured: BTreeSet<String>,
}

impl TypeLabels {
    pub(super) fn new<'a>(configured: impl IntoIterator<Item = &'a str>) -> Self {
        let configured = configured.into_iter().map(TypeUrl::new);
        let configured = configured.filter(|type_url| type_url.short().is_none());
        Self {
            configured: configured.map(|type_url| type_url.full_name().to_owned()).collect(),
        }
    }

    /// Returns the label of a type in the relay's own metrics: its short name, or its full one if the operator configured it.
    pub(super) fn own(&self, type_url: &TypeUrl) -> &str {
        match (type_url.short(), self.configured.get(type_url.full_name())) {
            (Some(short), _) => short,
            (None, Some(configured)) => configured,
            (None, None) => OTHER,
        }
    }

    /// A78: returns the label of a type in the metrics of gRPC: its full name.
    pub(super) fn grpc<'a>(&self, type_url: &'a TypeUrl) -> &'a str {
        let known = type_url.short().is_some() || self.configured.contains(type_url.full_name());
        if known { type_url.full_name() } else { OTHER }
    }

    /// Returns all labels in the relay's own metrics.
    pub(super) fn all_own(&self) -> impl Iterator<Item = String> {
        TypeUrl::short_names().map(str::to_owned).chain(self.others())
    }

    /// Returns all labels in the metrics of gRPC.
    pub(super) fn all_grpc(&self) -> impl Iterator<Item = String> {
        let known = TypeUrl::short_names().filter_map(TypeUrl::called);
        let known = known.map(|type_url| type_url.full_name().to_owned());
        known.chain(self.others())
    }

    fn others(&self) -> impl Iterator<Item = String> {
        self.configured.iter().cloned().chain([OTHER.to_owned()])
    }
}

/// Counters with one label, whose values are all known.
#[derive(Clone, Debug)]
pub(super) struct WordCounters {
    family: Family<Labels<1>, Counter>,
    label: &'static str,
    words: &'static str,
}

impl WordCounters {
    /// Creates a counter for each of these values of the label.
    pub(super) fn new(label: &'static str, words: &'static str) -> Self {
        let counters = Self {
            family: Family::default(),
            label,
            words,
        };
        for word in words.split(' ') {
            drop(counters.of(word));
        }
        counters
    }

    pub(super) fn register(self, registry: &mut Registry, name: &str, help: &str) -> Self {
        registry.register(name, help, self.family.clone());
        self
    }

    /// Returns the counter with this value of the label, one of those with which it was created.
    pub(super) fn of(&self, word: &'static str) -> Counter {
        debug_assert!(
            self.words.split(' ').any(|one| one == word),
            "{} has no {word}",
            self.label
        );
        self.family.get_or_create(&[(self.label, word.to_owned())]).clone()
    }
}

/// Adds a metric to a registry. A counter is shown with the suffix `_total`.
pub(super) fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}
