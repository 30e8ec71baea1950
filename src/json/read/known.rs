// SPDX-License-Identifier: Apache-2.0
//! Encodes the messages with a special form in JSON: `Any`, times, structures, wrappers, field masks. Owns what their JSON
//! means.

use std::collections::BTreeMap;

use prost::encoding::{WireType, encode_key, encode_varint};
use prost_reflect::{Kind, MessageDescriptor};

use super::scalar::{Scalar, quoted};
use super::{Reader, put_bytes};
use crate::fault::Fault;
use crate::form::{Form, full_name};
use crate::plain::Plain;
use crate::time::Instant;
use crate::tree::{Tree, Value, too_deep};
use xds::meant;

impl Reader<'_> {
    /// Writes a message with a special form; returns false if it has none.
    pub(super) fn known(
        &mut self,
        descriptor: &MessageDescriptor,
        tree: &Tree,
        out: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        match Form::of(descriptor.full_name()) {
            Form::Usual => return Ok(false),
            Form::Any => self.any(tree, out)?,
            Form::Duration => self.time(tree, "a duration, such as 1.5s", Instant::from_duration, out)?,
            Form::Timestamp => self.time(
                tree,
                "a time, such as 2026-01-02T03:04:05Z",
                Instant::from_timestamp,
                out,
            )?,
            Form::FieldMask => self.field_mask(tree, out)?,
            Form::Struct => self.structure(tree, out)?,
            Form::Value => self.value(tree, out)?,
            Form::ListValue => self.values(tree, out)?,
            Form::Wrapper => {
                let kind = descriptor.get_field(1).map_or(Kind::Bool, |field| field.kind());
                self.single(1, &kind, false, tree, out)?;
            }
        }
        Ok(true)
    }

    /// J-03: an object with `@type` and the message's fields, or with `value` if the message has a special form.
    fn any(&mut self, tree: &Tree, out: &mut Vec<u8>) -> Result<(), Fault> {
        let Some(entries) = tree.entries() else {
            return Err(self.expected("an object with `@type`", tree));
        };
        if entries.is_empty() {
            return Ok(());
        }
        let (type_url, body) = self.any_parts(tree)?;
        put_bytes(1, type_url.as_bytes(), out);
        if !body.is_empty() {
            put_bytes(2, &body, out);
        }
        Ok(())
    }

    /// Returns the type and the body of an `Any`.
    pub(crate) fn any_parts(&mut self, tree: &Tree) -> Result<(String, Vec<u8>), Fault> {
        let Some(written) = tree.get("@type") else {
            let message = "`@type` is missing; write type.googleapis.com/ and the message's full name";
            return Err(self.fault(tree, message));
        };
        let type_url = match written.text() {
            Some(text) if text.contains('/') => text.to_owned(),
            Some(text) => {
                let message = format!("{} is not a type; write type.googleapis.com/{text}", quoted(text));
                return Err(self.fault(written, message));
            }
            None => return Err(self.expected("a type", written)),
        };
        // J-04: a type without descriptor is a fault that names it.
        let Some(descriptor) = self.schemas.message(full_name(&type_url)) else {
            let what = format!("the type {} is not known", quoted(&type_url));
            let meant = self.type_instead(full_name(&type_url));
            let message = match meant.is_empty() {
                true => format!("{what}; add its descriptors to `descriptors` in the configuration"),
                false => format!("{what}{meant}"),
            };
            return Err(self.fault(written, message));
        };
        let mut body = Vec::new();
        if Form::of(descriptor.full_name()) == Form::Usual {
            self.depth += 1;
            if self.depth > crate::DEPTH_MAX {
                return Err(too_deep(tree.place()));
            }
            // Some writers add a `value` to the empty message.
            let empty = descriptor.full_name() == "google.protobuf.Empty" && tree.get("value").is_some();
            if !empty {
                self.fields(&descriptor, tree, true, &mut body)?;
            }
            self.depth -= 1;
            return Ok((type_url, body));
        }
        for entry in tree.entries().unwrap_or_default() {
            if entry.key != "@type" && entry.key != "value" {
                let message = format!("beside `@type`, {} has only a `value`", descriptor.full_name());
                let fault = Fault::at(entry.place, self.path.as_str(), message);
                self.unknown(fault)?;
            }
        }
        if let Some(value) = tree.get("value") {
            let before = self.enter("value");
            self.message(&descriptor, value, &mut body)?;
            self.path.truncate(before);
        }
        Ok((type_url, body))
    }

    /// Says which type was probably meant: one of the same package, or one of this name in another package.
    fn type_instead(&self, name: &str) -> String {
        let Some((package, short)) = name.rsplit_once('.').filter(|_| self.found.is_some()) else {
            return String::new();
        };
        let pool = self.schemas.pool();
        let all = pool.all_messages().map(|message| message.full_name().to_owned());
        let alike = all.filter(|other| {
            other
                .rsplit_once('.')
                .is_some_and(|(its_package, its_short)| match its_package == package {
                    true => meant(short, [its_short]).is_some(),
                    false => its_short == short && meant(package, [its_package]).is_some(),
                })
        });
        self.instead(name, alike)
    }

    fn time(
        &self,
        tree: &Tree,
        what: &str,
        parse: fn(&str) -> Result<Instant, String>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let text = tree.text().ok_or_else(|| self.expected(what, tree))?;
        let Instant { seconds, nanos } = parse(text).map_err(|message| self.fault(tree, message))?;
        for (number, part) in [(1, seconds), (2, i64::from(nanos))] {
            if part != 0 {
                encode_key(number, WireType::Varint, out);
                encode_varint(part.cast_unsigned(), out);
            }
        }
        Ok(())
    }

    /// Reads a field mask: `user.displayName,photo` means the paths `user.display_name` and `photo`.
    fn field_mask(&self, tree: &Tree, out: &mut Vec<u8>) -> Result<(), Fault> {
        let text = tree
            .text()
            .ok_or_else(|| self.expected("paths separated by commas", tree))?;
        for path in text.split(',').filter(|path| !path.is_empty()) {
            if path.contains('_') {
                let message = format!("{} is not a path; write it in lowerCamelCase", quoted(path));
                return Err(self.fault(tree, message));
            }
            let mut snake = String::new();
            for character in path.chars() {
                if character.is_ascii_uppercase() {
                    snake.push('_');
                }
                snake.push(character.to_ascii_lowercase());
            }
            put_bytes(1, snake.as_bytes(), out);
        }
        Ok(())
    }

    fn structure(&mut self, tree: &Tree, out: &mut Vec<u8>) -> Result<(), Fault> {
        let Some(entries) = tree.entries() else {
            return Err(self.expected("an object", tree));
        };
        let sorted: BTreeMap<&str, &Tree> = entries.iter().map(|entry| (entry.key.as_str(), &entry.value)).collect();
        for (key, value) in sorted {
            let before = self.enter_key(key);
            let mut body = Vec::new();
            put_bytes(1, key.as_bytes(), &mut body);
            let mut inner = Vec::new();
            self.value(value, &mut inner)?;
            put_bytes(2, &inner, &mut body);
            put_bytes(1, &body, out);
            self.path.truncate(before);
        }
        Ok(())
    }

    fn values(&mut self, tree: &Tree, out: &mut Vec<u8>) -> Result<(), Fault> {
        let Some(items) = tree.items() else {
            return Err(self.expected("a list", tree));
        };
        for (index, item) in items.iter().enumerate() {
            let before = self.enter_item(index);
            let mut body = Vec::new();
            self.value(item, &mut body)?;
            put_bytes(1, &body, out);
            self.path.truncate(before);
        }
        Ok(())
    }

    /// Writes a value of any kind. Each of its levels counts as two, because it becomes two nested messages.
    fn value(&mut self, tree: &Tree, out: &mut Vec<u8>) -> Result<(), Fault> {
        if self.depth + 2 > crate::DEPTH_MAX {
            return Err(too_deep(tree.place()));
        }
        self.depth += 2;
        let (number, scalar) = match &tree.value {
            Value::Null => (1, Scalar::Varint(0)),
            Value::Bool(truth) => (4, Scalar::Varint(u64::from(*truth))),
            Value::Text(text) => (3, Scalar::Bytes(text.as_bytes().to_vec())),
            Value::Number(_) => (
                2,
                Scalar::of(&Kind::Double, tree).map_err(|message| self.fault(tree, message))?,
            ),
            Value::Plain(text) => match Plain::of(text) {
                Plain::Bool(truth) => (4, Scalar::Varint(u64::from(truth))),
                Plain::Text(text) => (3, Scalar::Bytes(text.as_bytes().to_vec())),
                Plain::Number(number) if number.is_finite() => (2, Scalar::Fixed64(number.to_bits())),
                Plain::Number(_) => return Err(self.fault(tree, "not a JSON number; quote it")),
            },
            Value::Map(_) => {
                let mut body = Vec::new();
                self.structure(tree, &mut body)?;
                put_bytes(5, &body, out);
                self.depth -= 2;
                return Ok(());
            }
            Value::List(_) => {
                let mut body = Vec::new();
                self.values(tree, &mut body)?;
                put_bytes(6, &body, out);
                self.depth -= 2;
                return Ok(());
            }
        };
        encode_key(number, scalar.wire_type(), out);
        scalar.put(out);
        self.depth -= 2;
        Ok(())
    }
}
