// SPDX-License-Identifier: Apache-2.0
//! What describes the relay and its data in OTLP.
//!
//! Owns the forms that all signals share. Knows no metric and no span.

use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::common::v1 as otlp;
use opentelemetry_proto::transform::common::tonic::{Attributes, ResourceAttributesWithSchema};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::TelemetryResourceDetector;

use crate::telemetry::VERSION;

/// Returns what describes the relay. Attributes of operators replace those of the SDK.
pub(super) fn resource(given: &[(String, String)]) -> ResourceAttributesWithSchema {
    let given = given
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let resource = Resource::builder_empty()
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_attributes(given);
    (&resource.build()).into()
}

/// Returns what made the data.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope::builder(env!("CARGO_PKG_NAME"))
        .with_version(VERSION)
        .build()
}

/// Returns attributes that are texts.
pub(super) fn attributes<'a>(pairs: impl Iterator<Item = (String, &'a str)>) -> Vec<otlp::KeyValue> {
    let pairs = pairs.map(|(key, value)| KeyValue::new(key, value.to_owned()));
    Attributes::from(pairs).0
}
