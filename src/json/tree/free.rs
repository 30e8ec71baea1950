// SPDX-License-Identifier: Apache-2.0
//! A tree as a `google.protobuf.Value`, for text that no field describes.

use super::{Tree, Value};
use crate::plain::Plain;
use proto::google::protobuf::value::Kind;
use proto::google::protobuf::{self, ListValue, Struct};

impl Tree {
    /// Returns it as a value of any structure. An unquoted scalar has the type that YAML gives it.
    pub fn to_value(&self) -> protobuf::Value {
        let kind = match &self.value {
            Value::Null => Kind::NullValue(0),
            Value::Bool(truth) => Kind::BoolValue(*truth),
            Value::Number(text) => text
                .parse()
                .map_or_else(|_| Kind::StringValue(text.clone()), Kind::NumberValue),
            Value::Text(text) => Kind::StringValue(text.clone()),
            Value::Plain(text) => match Plain::of(text) {
                Plain::Bool(truth) => Kind::BoolValue(truth),
                // JSON has no other numbers.
                Plain::Number(number) if number.is_finite() => Kind::NumberValue(number),
                Plain::Number(_) => Kind::StringValue(text.clone()),
                Plain::Text(text) => Kind::StringValue(text.to_owned()),
            },
            Value::List(items) => Kind::ListValue(ListValue {
                values: items.iter().map(Self::to_value).collect(),
            }),
            Value::Map(entries) => Kind::StructValue(Struct {
                fields: entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.to_value()))
                    .collect(),
            }),
        };
        protobuf::Value { kind: Some(kind) }
    }
}
