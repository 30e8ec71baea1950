// SPDX-License-Identifier: Apache-2.0
//! Messages without what must stay secret, on the wire.
//!
//! Owns what takes the place of a secret in a message that is not written as JSON. The API says which fields are secret. A message is
//! rewritten field by field, as it is: resources are large, and others wait meanwhile.

use bytes::Bytes;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use super::Schemas;
use crate::DEPTH_MAX;
use crate::form::full_name;
use crate::write::raw::{Raw, each, unpacked};
use crate::write::{REDACTED, is_sensitive};

/// The number of the key in an entry of a map.
const KEY: u32 = 1;

impl Schemas {
    /// Returns a message with `[redacted]` in place of its secrets; `None` if its type is not known, or if it cannot be read.
    pub fn redacted(&self, type_url: &str, body: &Bytes) -> Option<Bytes> {
        let descriptor = self.message(full_name(type_url))?;
        self.redact(&descriptor, body, false, 0).map(Into::into)
    }

    /// Redacts a message; all of it if it is part of a secret.
    fn redact(&self, descriptor: &MessageDescriptor, body: &[u8], secret: bool, depth: usize) -> Option<Vec<u8>> {
        if depth > DEPTH_MAX {
            return None;
        }
        if descriptor.full_name() == "google.protobuf.Any" {
            return self.redact_any(body, secret, depth);
        }
        let mut redacted = Vec::with_capacity(body.len());
        let mut sound = Some(());
        each(body, |number, raw| {
            let field = descriptor.get_field(number);
            sound = sound.and_then(|()| match field {
                Some(field) => self.redact_field(&field, raw, secret, depth, &mut redacted),
                None => {
                    // What cannot be read may be a secret.
                    if !secret {
                        raw.write(number, &mut redacted);
                    }
                    Some(())
                }
            });
        })?;
        sound.map(|()| redacted)
    }

    fn redact_field(
        &self,
        field: &FieldDescriptor,
        raw: Raw,
        secret: bool,
        depth: usize,
        into: &mut Vec<u8>,
    ) -> Option<()> {
        let number = field.number();
        let is_key = number == KEY && field.parent_message().is_map_entry();
        let secret = !is_key && (secret || is_sensitive(field));
        match (field.kind(), raw) {
            (Kind::Message(inner), Raw::Bytes(body)) => {
                // The entries of a map are no level of their own.
                let depth = depth + usize::from(!inner.is_map_entry());
                let body = self.redact(&inner, body, secret, depth)?;
                Raw::Bytes(&body).write(number, into);
            }
            (Kind::String | Kind::Bytes, Raw::Bytes(_)) if secret => {
                Raw::Bytes(REDACTED.as_bytes()).write(number, into);
            }
            (Kind::String, Raw::Bytes(text)) => {
                str::from_utf8(text).ok()?;
                raw.write(number, into);
            }
            (kind, raw) => {
                let packed = || field.is_list() && unpacked(&kind, &[raw]).is_some();
                if !raw.fits(&kind) && !packed() {
                    return None;
                }
                if !secret {
                    raw.write(number, into);
                }
            }
        }
        Some(())
    }

    fn redact_any(&self, body: &[u8], secret: bool, depth: usize) -> Option<Vec<u8>> {
        const TYPE_URL: u32 = 1;
        const VALUE: u32 = 2;
        let (mut type_url, mut value) = (&[][..], &[][..]);
        each(body, |number, raw| match (number, raw) {
            (TYPE_URL, Raw::Bytes(found)) => type_url = found,
            (VALUE, Raw::Bytes(found)) => value = found,
            _ => {}
        })?;
        // What cannot be read may be a secret.
        let known = self.message(full_name(str::from_utf8(type_url).ok()?));
        let value = known.and_then(|descriptor| self.redact(&descriptor, value, secret, depth + 1));
        let mut redacted = Vec::with_capacity(body.len());
        Raw::Bytes(type_url).write(TYPE_URL, &mut redacted);
        Raw::Bytes(&value.unwrap_or_default()).write(VALUE, &mut redacted);
        Some(redacted)
    }
}
