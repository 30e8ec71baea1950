// SPDX-License-Identifier: Apache-2.0
//! The sensitive values of messages.
//!
//! Owns where they are found, and how much of a message is searched: parts of a type that can have none are passed over. What a type
//! without descriptors has is not found.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use prost_reflect::{DescriptorPool, Kind, MessageDescriptor};

use super::Schemas;
use crate::DEPTH_MAX;
use crate::form::full_name;
use crate::write::is_sensitive;
use crate::write::raw::{Raw, each};

/// How many fields are looked at, and how many bytes of values are kept.
const FIELDS_MAX: usize = 400_000;
const VALUES_MAX: usize = 256 * 1024;
const ANY: &str = "google.protobuf.Any";

struct Search {
    pool: DescriptorPool,
    /// Whether messages of a type can have a sensitive value, by its full name.
    can_have: BTreeMap<String, bool>,
    values: Vec<Vec<u8>>,
    bytes: usize,
    fields: usize,
}

impl Schemas {
    /// Returns the values of these messages of one type that the API marks as sensitive, each as it is, and as texts write bytes; and whether these
    /// are all that the messages of known types have.
    pub fn sensitive(&self, type_url: &str, messages: impl Iterator<Item = Bytes>) -> (Vec<Vec<u8>>, bool) {
        let mut search = Search {
            pool: self.pool(),
            can_have: BTreeMap::new(),
            values: Vec::new(),
            bytes: 0,
            fields: 0,
        };
        let Some(descriptor) = search.pool.get_message_by_name(full_name(type_url)) else {
            return (Vec::new(), true);
        };
        let mut complete = true;
        for body in messages {
            complete &= search.message(&descriptor, &body, false, 0).is_some();
        }
        (search.values, complete)
    }
}

impl Search {
    /// Searches a message; all of it is sensitive if it is part of something that is. `None`: not all of it could be searched.
    fn message(&mut self, descriptor: &MessageDescriptor, body: &[u8], secret: bool, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        if descriptor.full_name() == ANY {
            return self.any(body, secret, depth);
        }
        let mut sound = Some(());
        each(body, |number, raw| {
            sound = sound.and_then(|()| self.field(descriptor, number, raw, secret, depth))
        })?;
        sound
    }

    fn field(&mut self, of: &MessageDescriptor, number: u32, raw: Raw<'_>, secret: bool, depth: usize) -> Option<()> {
        self.fields += 1;
        if self.fields > FIELDS_MAX {
            return None;
        }
        let Raw::Bytes(bytes) = raw else { return Some(()) };
        let Some(field) = of.get_field(number) else {
            return if secret { self.found(bytes) } else { Some(()) };
        };
        let is_key = number == 1 && of.is_map_entry();
        let secret = !is_key && (secret || is_sensitive(&field));
        let kind = field.kind();
        if let Kind::Message(inner) = &kind
            && (secret || self.can_have(inner))
        {
            return self.message(inner, bytes, secret, depth + 1);
        }
        if secret && matches!(kind, Kind::String | Kind::Bytes) {
            return self.found(bytes);
        }
        Some(())
    }

    fn any(&mut self, body: &[u8], secret: bool, depth: usize) -> Option<()> {
        let (mut type_url, mut value) = (&[][..], &[][..]);
        each(body, |number, raw| match (number, raw) {
            (1, Raw::Bytes(found)) => type_url = found,
            (2, Raw::Bytes(found)) => value = found,
            _ => {}
        })?;
        let name = full_name(str::from_utf8(type_url).ok()?);
        match self.pool.get_message_by_name(name) {
            Some(descriptor) if secret || self.can_have(&descriptor) => {
                self.message(&descriptor, value, secret, depth + 1)
            }
            None if secret => self.found(value),
            Some(_) | None => Some(()),
        }
    }

    fn found(&mut self, value: &[u8]) -> Option<()> {
        self.bytes += value.len();
        if self.bytes > VALUES_MAX {
            return None;
        }
        let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        let written = [
            STANDARD_NO_PAD.encode(value),
            URL_SAFE_NO_PAD.encode(value),
            hex.to_uppercase(),
            hex,
        ];
        self.values.push(value.to_vec());
        // In few letters any word could be found.
        let long = written.into_iter().filter(|text| text.len() >= 8);
        self.values.extend(long.map(String::into_bytes));
        Some(())
    }

    /// Whether messages of this type, or those in them, can have a sensitive field.
    fn can_have(&mut self, descriptor: &MessageDescriptor) -> bool {
        if let Some(known) = self.can_have.get(descriptor.full_name()) {
            return *known;
        }
        let (mut seen, mut next) = (BTreeSet::new(), vec![descriptor.clone()]);
        let mut found = false;
        while let Some(one) = next.pop().filter(|_| !found) {
            if !seen.insert(one.full_name().to_owned()) {
                continue;
            }
            found = one.full_name() == ANY || one.fields().any(|field| is_sensitive(&field));
            next.extend(one.fields().filter_map(|field| field.kind().as_message().cloned()));
        }
        self.can_have.insert(descriptor.full_name().to_owned(), found);
        found
    }
}
