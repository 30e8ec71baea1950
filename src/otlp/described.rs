//! What describes the relay and its data in OTLP.
//!
//! Owns the forms that all signals share. Knows no metric and no span.

use crate::proto::opentelemetry::proto::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value};
use crate::proto::opentelemetry::proto::resource::v1::Resource;
use crate::telemetry::VERSION;

/// Returns what describes the relay.
pub(super) fn resource(attributes: &[(String, String)]) -> Resource {
    Resource {
        attributes: attributes.iter().map(|(key, value)| attribute(key, value)).collect(),
        ..Resource::default()
    }
}

/// Returns what made the data.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: VERSION.to_owned(),
        ..InstrumentationScope::default()
    }
}

/// Returns an attribute that is a text.
pub(super) fn attribute(key: &str, value: &str) -> KeyValue {
    of(key, text(value))
}

/// Returns an attribute that is a number.
pub(super) fn count(key: &str, value: u64) -> KeyValue {
    of(
        key,
        any_value::Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)),
    )
}

/// Returns an attribute that is a list of texts.
pub(super) fn list<'a>(key: &str, values: impl Iterator<Item = &'a str>) -> KeyValue {
    let values = values.map(|value| AnyValue {
        value: Some(text(value)),
    });
    let values = values.collect();
    of(key, any_value::Value::ArrayValue(ArrayValue { values }))
}

fn text(value: &str) -> any_value::Value {
    any_value::Value::StringValue(value.to_owned())
}

fn of(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
