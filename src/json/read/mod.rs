// SPDX-License-Identifier: Apache-2.0
//! Encodes trees as bytes. Owns what a JSON value means for a field (J-01, J-02), the order of the fields, so that equal trees
//! become equal bytes (J-05), and the path of a fault. `known` has the messages with a special form, `scalar` the single
//! values.

mod known;
mod scalar;

use std::collections::BTreeMap;

use prost::encoding::{WireType, encode_key, encode_varint};
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use self::scalar::{MapKey, Scalar};
use super::fault::Fault;
use super::schemas::Schemas;
use super::tree::{Tree, Value, shortened, too_deep};
use xds::meant;

/// How to treat fields and enum values that the descriptors do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// They are faults.
    Deny,
    /// They are skipped and reported.
    Warn,
    /// They are skipped.
    Ignore,
}

/// A parsed value, and what was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The value.
    pub value: T,
    /// Warnings about the parts that were skipped.
    pub warnings: Vec<Fault>,
}

/// Encodes one tree.
pub(super) struct Reader<'a> {
    schemas: &'a Schemas,
    unknown: Unknown,
    pub(super) warnings: Vec<Fault>,
    path: String,
    depth: usize,
    /// Set to find all faults: those that were found so far. What is read then is of no use.
    found: Option<Vec<Fault>>,
}

/// After so many faults in one resource it is not read any further.
const FAULTS_MAX: usize = 100;

impl<'a> Reader<'a> {
    pub(super) fn new(schemas: &'a Schemas, unknown: Unknown, path: String) -> Self {
        Self {
            schemas,
            unknown,
            warnings: Vec::new(),
            path,
            depth: 0,
            found: None,
        }
    }

    /// Reads on after a fault, and says which word was probably meant.
    pub(super) fn thorough(mut self) -> Self {
        self.found = Some(Vec::new());
        self
    }

    /// Returns all faults; `last` is the one that ended the reading, if any did.
    pub(super) fn faults(self, last: Option<Fault>) -> Vec<Fault> {
        self.found.into_iter().flatten().chain(last).collect()
    }

    /// Goes on after a fault in a part, if all faults are wanted.
    fn past(&mut self, read: Result<(), Fault>, depth: usize) -> Result<(), Fault> {
        let (Err(fault), Some(found)) = (&read, &mut self.found) else {
            return read;
        };
        if found.len() + 1 >= FAULTS_MAX {
            return read;
        }
        found.push(fault.clone());
        self.depth = depth;
        Ok(())
    }

    /// Returns the end of a message that says which word was probably meant.
    fn instead(&self, written: &str, words: impl Iterator<Item = String>) -> String {
        if self.found.is_none() {
            return String::new();
        }
        let words: Vec<String> = words.collect();
        let meant = meant(written, words.iter().map(String::as_str));
        meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
    }

    /// Returns a fault of a value, with the current path.
    fn fault(&self, tree: &Tree, message: impl Into<String>) -> Fault {
        Fault::at(tree.place(), self.path.as_str(), message)
    }

    fn expected(&self, what: &str, tree: &Tree) -> Fault {
        self.fault(tree, format!("expected {what}, found {}", tree.description()))
    }

    /// Appends a field to the path; returns the length to truncate it to afterwards.
    fn enter(&mut self, name: &str) -> usize {
        let before = self.path.len();
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(&shortened(name));
        before
    }

    fn enter_item(&mut self, index: usize) -> usize {
        let before = self.path.len();
        self.path.push_str(&format!("[{index}]"));
        before
    }

    fn enter_key(&mut self, key: &str) -> usize {
        let before = self.path.len();
        self.path.push_str(&format!("[{:?}]", shortened(key)));
        before
    }

    /// Handles a field or enum value that the descriptors do not have.
    fn unknown(&mut self, fault: Fault) -> Result<(), Fault> {
        match self.unknown {
            Unknown::Deny => self.past(Err(fault), self.depth),
            Unknown::Warn => {
                self.warnings.push(fault);
                Ok(())
            }
            Unknown::Ignore => Ok(()),
        }
    }

    /// Writes the fields of a message.
    pub(super) fn message(
        &mut self,
        descriptor: &MessageDescriptor,
        tree: &Tree,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        if self.depth >= super::DEPTH_MAX {
            return Err(too_deep(tree.place()));
        }
        self.depth += 1;
        let written = self.known(descriptor, tree, out)?;
        if !written {
            self.fields(descriptor, tree, false, out)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Writes the fields of a message without a special form; `in_any` if `@type` is among them.
    fn fields(
        &mut self,
        descriptor: &MessageDescriptor,
        tree: &Tree,
        in_any: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let Some(entries) = tree.entries() else {
            return Err(self.expected(&format!("an object ({})", descriptor.full_name()), tree));
        };
        let mut found: BTreeMap<u32, (FieldDescriptor, &str, &Tree)> = BTreeMap::new();
        let mut chosen: BTreeMap<String, &str> = BTreeMap::new();
        for entry in entries {
            let (key, value) = (entry.key.as_str(), &entry.value);
            if in_any && key == "@type" {
                continue;
            }
            let complaint = |message: String| Fault::at(entry.place, self.path.as_str(), message);
            // J-01: both spellings of a field are valid.
            let by_name = descriptor.get_field_by_name(key);
            let Some(field) = by_name.or_else(|| descriptor.get_field_by_json_name(key)) else {
                let meant = self.instead(key, descriptor.fields().map(|field| field.name().to_owned()));
                let name = descriptor.full_name();
                let fault = complaint(format!("{name} has no field `{}`{meant}", shortened(key)));
                self.unknown(fault)?;
                continue;
            };
            if let Some((_, other, _)) = found.get(&field.number()) {
                return Err(complaint(format!(
                    "`{key}` and `{other}` are the same field; remove one"
                )));
            }
            if !value.is_null()
                && let Some(oneof) = field.containing_oneof()
                && let Some(other) = chosen.insert(oneof.full_name().to_owned(), key)
            {
                return Err(complaint(format!(
                    "`{key}` and `{other}` exclude each other; remove one"
                )));
            }
            found.insert(field.number(), (field, key, value));
        }
        for (field, key, value) in found.into_values() {
            // J-02: null is the default of every field, except where null is a value.
            if value.is_null() && (field.is_list() || field.is_map() || !takes_null(&field.kind())) {
                continue;
            }
            let (before, depth) = (self.enter(key), self.depth);
            let read = self.field(&field, value, out);
            self.past(read, depth)?;
            self.path.truncate(before);
        }
        Ok(())
    }

    fn field(&mut self, field: &FieldDescriptor, tree: &Tree, out: &mut Vec<u8>) -> Result<(), Fault> {
        if field.is_group() {
            return Err(self.fault(tree, "a group (protobuf 2) has no JSON form"));
        }
        if field.is_map() {
            self.map(field, tree, out)
        } else if field.is_list() {
            self.list(field, tree, out)
        } else {
            self.single(field.number(), &field.kind(), field.supports_presence(), tree, out)
        }
    }

    /// Writes a field with one value. Omits a default value if the field has no presence.
    fn single(
        &mut self,
        number: u32,
        kind: &Kind,
        presence: bool,
        tree: &Tree,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        if let Kind::Message(descriptor) = kind {
            let mut body = Vec::new();
            self.message(descriptor, tree, &mut body)?;
            put_bytes(number, &body, out);
        } else if let Some(scalar) = self.scalar(kind, tree)?
            && (presence || !scalar.is_default())
        {
            encode_key(number, scalar.wire_type(), out);
            scalar.put(out);
        }
        Ok(())
    }

    fn list(&mut self, field: &FieldDescriptor, tree: &Tree, out: &mut Vec<u8>) -> Result<(), Fault> {
        let Some(items) = tree.items() else {
            return Err(self.expected("a list", tree));
        };
        let kind = field.kind();
        let mut packed = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let (before, depth) = (self.enter_item(index), self.depth);
            let read = if item.is_null() && !takes_null(&kind) {
                Err(self.fault(item, "null is not allowed in a list; remove it"))
            } else if field.is_packed() {
                let scalar = self.scalar(&kind, item);
                scalar.map(|scalar| scalar.iter().for_each(|scalar| scalar.put(&mut packed)))
            } else {
                self.single(field.number(), &kind, true, item, out)
            };
            self.past(read, depth)?;
            self.path.truncate(before);
        }
        if !packed.is_empty() {
            put_bytes(field.number(), &packed, out);
        }
        Ok(())
    }

    /// J-05: writes a map in the order of the keys, not of the text.
    fn map(&mut self, field: &FieldDescriptor, tree: &Tree, out: &mut Vec<u8>) -> Result<(), Fault> {
        let (Some(entries), Kind::Message(descriptor)) = (tree.entries(), field.kind()) else {
            return Err(self.expected("an object", tree));
        };
        let key_kind = descriptor.map_entry_key_field().kind();
        let value_kind = descriptor.map_entry_value_field().kind();
        let mut sorted: BTreeMap<MapKey, (&str, &Tree)> = BTreeMap::new();
        for entry in entries {
            let Some(key) = MapKey::of(&key_kind, &entry.key) else {
                let message = format!("`{}` is not a key of this map", shortened(&entry.key));
                return Err(Fault::at(entry.place, self.path.as_str(), message));
            };
            if sorted.insert(key, (&entry.key, &entry.value)).is_some() {
                let message = format!("the key `{}` is there twice; remove one", shortened(&entry.key));
                return Err(Fault::at(entry.place, self.path.as_str(), message));
            }
        }
        for (key, (text, value)) in sorted {
            let (before, depth) = (self.enter_key(text), self.depth);
            if value.is_null() && !takes_null(&value_kind) {
                return Err(self.fault(value, "null is not allowed in a map; remove it"));
            }
            let mut body = Vec::new();
            let key = key.scalar(&key_kind);
            encode_key(1, key.wire_type(), &mut body);
            key.put(&mut body);
            let bare = body.len();
            let read = self.single(2, &value_kind, true, value, &mut body);
            self.past(read, depth)?;
            // If an unknown enum value was skipped, its key is skipped, too.
            if body.len() > bare {
                put_bytes(field.number(), &body, out);
            }
            self.path.truncate(before);
        }
        Ok(())
    }

    /// Reads a value that is not a message; returns `None` for an unknown enum value that is skipped.
    fn scalar(&mut self, kind: &Kind, tree: &Tree) -> Result<Option<Scalar>, Fault> {
        if let Kind::Enum(descriptor) = kind {
            return self.enumeration(descriptor, tree);
        }
        Scalar::of(kind, tree)
            .map(Some)
            .map_err(|message| self.fault(tree, message))
    }

    fn enumeration(&mut self, descriptor: &EnumDescriptor, tree: &Tree) -> Result<Option<Scalar>, Fault> {
        // J-02: names, and numbers even without a name.
        if let Some(value) = tree.text().and_then(|name| descriptor.get_value_by_name(name)) {
            return Ok(Some(Scalar::enumeration(value.number())));
        }
        match &tree.value {
            Value::Null if descriptor.full_name() == NULL_VALUE => Ok(Some(Scalar::enumeration(0))),
            Value::Number(text) | Value::Plain(text) if scalar::integer(text).is_some() => {
                Scalar::of(&Kind::Int32, tree)
                    .map(Some)
                    .map_err(|message| self.fault(tree, message))
            }
            Value::Text(_) | Value::Plain(_) => {
                let names: Vec<String> = descriptor
                    .values()
                    .take(8)
                    .map(|value| value.name().to_owned())
                    .collect();
                let more = if descriptor.values().len() > names.len() {
                    ", ..."
                } else {
                    ""
                };
                let what = format!("one of {}{more}", names.join(", "));
                let mut fault = self.expected(&what, tree);
                let all = descriptor.values().map(|value| value.name().to_owned());
                fault.message += &self.instead(tree.text().unwrap_or_default(), all);
                self.unknown(fault).map(|()| None)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => {
                Err(self.expected(&format!("a name of {}", descriptor.full_name()), tree))
            }
        }
    }
}

pub(super) const NULL_VALUE: &str = "google.protobuf.NullValue";

/// Whether null is a value of this kind.
fn takes_null(kind: &Kind) -> bool {
    let is_value = |message: &MessageDescriptor| message.full_name() == "google.protobuf.Value";
    let is_null = |values: &EnumDescriptor| values.full_name() == NULL_VALUE;
    kind.as_message().is_some_and(is_value) || kind.as_enum().is_some_and(is_null)
}

fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}
