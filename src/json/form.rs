// SPDX-License-Identifier: Apache-2.0
//! The messages with a special form in JSON. Owns the list; both directions follow it.

/// The form of a message in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An object with its fields.
    Usual,
    Any,
    Duration,
    Timestamp,
    FieldMask,
    Struct,
    Value,
    ListValue,
    /// Only the value inside the wrapper.
    Wrapper,
}

impl Form {
    pub(super) fn of(full_name: &str) -> Self {
        let Some(name) = full_name.strip_prefix("google.protobuf.") else {
            return Self::Usual;
        };
        match name {
            "Any" => Self::Any,
            "Duration" => Self::Duration,
            "Timestamp" => Self::Timestamp,
            "FieldMask" => Self::FieldMask,
            "Struct" => Self::Struct,
            "Value" => Self::Value,
            "ListValue" => Self::ListValue,
            "BoolValue" | "Int32Value" | "Int64Value" | "UInt32Value" | "UInt64Value" | "FloatValue"
            | "DoubleValue" | "StringValue" | "BytesValue" => Self::Wrapper,
            _ => Self::Usual,
        }
    }
}

/// Returns the message's full name in a type URL.
pub(super) fn full_name(type_url: &str) -> &str {
    type_url.rsplit_once('/').map_or(type_url, |(_, name)| name)
}
