// SPDX-License-Identifier: Apache-2.0
//! Writes the messages with a special form in JSON.

use std::collections::BTreeMap;

use prost_reflect::{Kind, MessageDescriptor};

use super::raw::{Raw, each};
use super::scalar::REDACTED;
use super::{NOT_PROTOBUF, Writer, joined};
use crate::fault::Fault;
use crate::form::Form;
use crate::time::Instant;

impl Writer<'_> {
    pub(super) fn known(&mut self, form: Form, descriptor: &MessageDescriptor, body: &[u8]) -> Result<(), Fault> {
        match form {
            Form::Usual => Ok(()),
            Form::Any => self.known_any(body),
            Form::Duration | Form::Timestamp => self.time(form, body),
            Form::FieldMask => self.field_mask(body),
            Form::Struct => self.structure(body),
            Form::ListValue => self.values(body),
            Form::Value => self.value_of(body),
            Form::Wrapper => {
                let kind = descriptor.get_field(1).map_or(Kind::Bool, |field| field.kind());
                let mut value = Raw::default_of(&kind);
                self.scan(body, |number, raw| {
                    if number == 1 && raw.fits(&kind) {
                        value = raw;
                    }
                })?;
                if self.redacting && !super::scalar::is_text(&kind) {
                    value = Raw::default_of(&kind);
                }
                self.scalar(&kind, value)
            }
        }
    }

    fn scan<'b>(&self, body: &'b [u8], see: impl FnMut(u32, Raw<'b>)) -> Result<(), Fault> {
        each(body, see).ok_or_else(|| self.fault(NOT_PROTOBUF))
    }

    fn known_any(&mut self, body: &[u8]) -> Result<(), Fault> {
        let (mut type_url, mut value): (&[u8], &[u8]) = (&[], &[]);
        self.scan(body, |number, raw| match (number, raw) {
            (1, Raw::Bytes(bytes)) => type_url = bytes,
            (2, Raw::Bytes(bytes)) => value = bytes,
            _ => {}
        })?;
        if type_url.is_empty() && value.is_empty() {
            self.out.extend_from_slice(b"{}");
            return Ok(());
        }
        let type_url = std::str::from_utf8(type_url).map_err(|_| self.fault("this type is not UTF-8"))?;
        self.any_object(type_url, value)
    }

    fn time(&mut self, form: Form, body: &[u8]) -> Result<(), Fault> {
        let mut time = Instant::default();
        self.scan(body, |number, raw| match (number, raw) {
            (1, Raw::Varint(seconds)) => time.seconds = seconds.cast_signed(),
            (2, Raw::Varint(nanos)) => time.nanos = nanos as i32,
            _ => {}
        })?;
        let text = if form == Form::Duration {
            time.to_duration()
        } else {
            time.to_timestamp()
        };
        let text = text.map_err(|message| self.fault(message))?;
        self.string(&text);
        Ok(())
    }

    fn field_mask(&mut self, body: &[u8]) -> Result<(), Fault> {
        let mut paths = Vec::new();
        self.scan(body, |number, raw| {
            if let (1, Raw::Bytes(path)) = (number, raw) {
                paths.push(String::from_utf8_lossy(path).into_owned());
            }
        })?;
        let mut text = String::new();
        for path in paths {
            if path.is_empty() {
                return Err(self.fault("an empty path cannot be written"));
            }
            if !text.is_empty() {
                text.push(',');
            }
            let mut raise = false;
            for character in path.chars() {
                if character.is_ascii_uppercase() || (raise && !character.is_ascii_lowercase()) || character == ',' {
                    return Err(self.fault(format!("the path `{path}` cannot be written in lowerCamelCase")));
                }
                if character == '_' {
                    raise = true;
                } else if std::mem::take(&mut raise) {
                    text.push(character.to_ascii_uppercase());
                } else {
                    text.push(character);
                }
            }
            if raise {
                return Err(self.fault(format!("the path `{path}` cannot be written in lowerCamelCase")));
            }
        }
        self.string(&text);
        Ok(())
    }

    fn deeper(&mut self) -> Result<(), Fault> {
        if self.depth >= crate::DEPTH_MAX {
            return Err(self.fault(format!("nested deeper than {} levels", crate::DEPTH_MAX)));
        }
        self.depth += 1;
        Ok(())
    }

    /// Writes a structure in the order of its keys; of a repeated key the last value counts.
    fn structure(&mut self, body: &[u8]) -> Result<(), Fault> {
        let mut entries: Vec<&[u8]> = Vec::new();
        self.scan(body, |number, raw| {
            if let (1, Raw::Bytes(entry)) = (number, raw) {
                entries.push(entry);
            }
        })?;
        let mut sorted: BTreeMap<&str, Vec<Raw<'_>>> = BTreeMap::new();
        for entry in entries {
            let (mut key, mut value): (&[u8], Vec<Raw<'_>>) = (&[], Vec::new());
            self.scan(entry, |number, raw| match (number, raw) {
                (1, Raw::Bytes(bytes)) => key = bytes,
                (2, Raw::Bytes(_)) => value.push(raw),
                _ => {}
            })?;
            let key = std::str::from_utf8(key).map_err(|_| self.fault("this key is not UTF-8"))?;
            sorted.insert(key, value);
        }
        self.out.push(b'{');
        for (index, (key, value)) in sorted.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.string(key);
            self.out.push(b':');
            let before = self.enter(key);
            self.value_of(&joined(&value))?;
            self.path.truncate(before);
        }
        self.out.push(b'}');
        Ok(())
    }

    fn values(&mut self, body: &[u8]) -> Result<(), Fault> {
        let mut items: Vec<&[u8]> = Vec::new();
        self.scan(body, |number, raw| {
            if let (1, Raw::Bytes(item)) = (number, raw) {
                items.push(item);
            }
        })?;
        self.out.push(b'[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.value_of(item)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn value_of(&mut self, body: &[u8]) -> Result<(), Fault> {
        let (mut member, mut raws) = (0, Vec::new());
        self.scan(body, |number, raw| {
            let fits = match number {
                1 | 4 => matches!(raw, Raw::Varint(_)),
                2 => matches!(raw, Raw::Fixed64(_)),
                3 | 5 | 6 => matches!(raw, Raw::Bytes(_)),
                _ => false,
            };
            // A member replaces another one that precedes it.
            if fits {
                if member != number {
                    member = number;
                    raws.clear();
                }
                raws.push(raw);
            }
        })?;
        match (member, raws.last().copied()) {
            (5, _) => {
                self.deeper()?;
                self.structure(&joined(&raws))?;
                self.depth -= 1;
            }
            (6, _) => {
                self.deeper()?;
                self.values(&joined(&raws))?;
                self.depth -= 1;
            }
            (3, Some(Raw::Bytes(_))) if self.redacting => self.string(REDACTED),
            (3, Some(Raw::Bytes(bytes))) => {
                let text = std::str::from_utf8(bytes).map_err(|_| self.fault("this string is not UTF-8"))?;
                self.string(text);
            }
            (4, Some(Raw::Varint(truth))) if !self.redacting => {
                let text: &[u8] = if truth == 0 { b"false" } else { b"true" };
                self.out.extend_from_slice(text);
            }
            (2, Some(Raw::Fixed64(bits))) if !self.redacting => {
                let number = f64::from_bits(bits);
                if !number.is_finite() {
                    return Err(self.fault(format!("{number} is not allowed in a structure")));
                }
                self.double(number);
            }
            _ => self.out.extend_from_slice(b"null"),
        }
        Ok(())
    }
}
