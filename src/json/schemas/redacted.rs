//! Messages without what must stay secret, on the wire.
//!
//! Owns what takes the place of a secret in a message that is not written as JSON. The API says which fields are secret.

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage as _, Value};

use super::Schemas;
use crate::DEPTH_MAX;
use crate::form::full_name;
use crate::write::{REDACTED, is_sensitive};

impl Schemas {
    /// Returns a message with `[redacted]` in place of its secrets; `None` if its type is not known, or if it cannot be read.
    #[must_use]
    pub fn redacted(&self, type_url: &str, body: &Bytes) -> Option<Bytes> {
        let descriptor = self.message(full_name(type_url))?;
        self.redact_body(descriptor, body.clone(), false, 0)
    }

    fn redact_body(&self, descriptor: MessageDescriptor, body: Bytes, secret: bool, depth: usize) -> Option<Bytes> {
        let mut message = DynamicMessage::decode(descriptor, body).ok()?;
        self.redact(&mut message, secret, depth)?;
        Some(message.encode_to_vec().into())
    }

    /// Redacts a message; all of it if it is part of a secret.
    fn redact(&self, message: &mut DynamicMessage, secret: bool, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        if message.descriptor().full_name() == "google.protobuf.Any" {
            return self.redact_any(message, secret, depth);
        }
        let set: Vec<FieldDescriptor> = message.fields().map(|(field, _)| field).collect();
        for field in set {
            let secret = secret || is_sensitive(&field);
            if secret && !matches!(field.kind(), Kind::String | Kind::Bytes | Kind::Message(_)) {
                message.clear_field(&field);
            } else {
                self.redact_value(message.get_field_mut(&field), secret, depth + 1)?;
            }
        }
        Some(())
    }

    fn redact_value(&self, value: &mut Value, secret: bool, depth: usize) -> Option<()> {
        match value {
            Value::Message(message) => return self.redact(message, secret, depth),
            Value::List(list) => {
                return list
                    .iter_mut()
                    .try_for_each(|one| self.redact_value(one, secret, depth));
            }
            Value::Map(map) => {
                return map
                    .values_mut()
                    .try_for_each(|one| self.redact_value(one, secret, depth));
            }
            Value::String(text) if secret => REDACTED.clone_into(text),
            Value::Bytes(bytes) if secret => *bytes = Bytes::from_static(REDACTED.as_bytes()),
            Value::Bool(_)
            | Value::I32(_)
            | Value::I64(_)
            | Value::U32(_)
            | Value::U64(_)
            | Value::F32(_)
            | Value::F64(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::EnumNumber(_) => {}
        }
        Some(())
    }

    fn redact_any(&self, any: &mut DynamicMessage, secret: bool, depth: usize) -> Option<()> {
        let type_url = any.get_field_by_name("type_url")?.as_str()?.to_owned();
        let body = any.get_field_by_name("value")?.as_bytes()?.clone();
        // What cannot be read may be a secret.
        let known = self.message(full_name(&type_url));
        let body = known.and_then(|descriptor| self.redact_body(descriptor, body, secret, depth + 1));
        any.set_field_by_name("value", Value::Bytes(body.unwrap_or_default()));
        Some(())
    }
}
