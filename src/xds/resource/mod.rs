// SPDX-License-Identifier: Apache-2.0
//! One resource, encoded once for every client.
//!
//! Owns the bytes that go to sockets by reference, and the content hash over all of them. Does not decode a body.

mod called;
mod fields;
mod hollow;

use std::fmt;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message as _;

pub use fields::{field_len, put_field, put_key_len};
use fields::{name_len, put_name, ttl_field};

use super::version::Hasher;
use super::{Kind, Name, References, TypeUrl, Version};
use proto::envoy::service::discovery::v3::Resource as Wrapper;

/// A resource as it is forwarded. Immutable; shared in an `Arc` by everybody who holds it.
///
/// One allocation serves both dialects: a delta record (`resources` entry of a delta response) ends with its `Any`, and that
/// field has the same number in `Resource` as `resources` has in a SotW response, so that the record's tail is the SotW entry.
///
/// Two servers that say the same have it in memory once, all but the time at which each of them said it.
pub struct Resource {
    name: Name,
    received: Instant,
    content: Arc<Substance>,
}

/// What is the same whoever says it, and whenever.
struct Substance {
    version: Version,
    record: Bytes,
    passed_on_at: u32,
    any_at: u32,
    body_at: u32,
    /// Whether its body does not contain its name (F-09).
    miscalled: bool,
    /// Which software has accepted it, a bit for each; of this size it takes no room.
    accepted: AtomicU16,
    /// Boxed twice, because few have any.
    aliases: Option<Box<Box<[Name]>>>,
    endpoints: Option<Name>,
    references: OnceLock<Option<Box<References>>>,
}

/// What a resource is made of.
pub struct ResourceParts<'a> {
    /// The resource's type.
    pub type_url: &'a TypeUrl,
    /// Its canonical name.
    pub name: Name,
    /// Other names that it answers to (C-20), sorted.
    pub aliases: Vec<Name>,
    /// Encoded fields of the `Resource` message that are passed on as they came: cache control, metadata.
    pub passed_on: &'a [u8],
    /// The `Any`'s value, as it came.
    pub body: &'a [u8],
    /// For a cluster that takes its endpoints from EDS: their name (K-13).
    pub endpoints: Option<Name>,
    /// When the last byte of the message that brought it was read.
    pub received: Instant,
}

const VERSION: u32 = 1;
const RESOURCE: u32 = 2;
const NAME: u32 = 3;
const ALIASES: u32 = 4;
const TTL: u32 = 6;
/// The number of `resources` in both kinds of response.
const RESOURCES: u32 = 2;
const ANY_TYPE_URL: u32 = 1;
const ANY_VALUE: u32 = 2;
/// The length of a version as text.
const VERSION_LEN: usize = 32;

impl Resource {
    /// Encodes and hashes. `seed` is normally 0; another one distinguishes two contents whose hashes collide (K-09).
    #[must_use]
    pub fn new(parts: ResourceParts<'_>, seed: u64) -> Self {
        let version = content_hash(&parts, seed);
        let miscalled = called::otherwise(&parts);
        let url = parts.type_url.url();
        let any_len = field_len(ANY_TYPE_URL, url.len()) + field_len(ANY_VALUE, parts.body.len());
        let aliases = parts.aliases.iter().map(|alias| alias.as_str().as_bytes());
        let head_len = name_len(&parts.name)
            + field_len(VERSION, VERSION_LEN)
            + aliases
                .clone()
                .map(|alias| field_len(ALIASES, alias.len()))
                .sum::<usize>()
            + parts.passed_on.len();
        let inner_len = head_len + field_len(RESOURCE, any_len);

        let mut record = BytesMut::with_capacity(field_len(RESOURCES, inner_len));
        put_key_len(&mut record, RESOURCES, inner_len);
        put_name(&mut record, &parts.name);
        put_field(&mut record, VERSION, &version.text());
        aliases.for_each(|alias| put_field(&mut record, ALIASES, alias));
        let passed_on_at = record.len();
        record.put_slice(parts.passed_on);
        let any_at = record.len();
        put_key_len(&mut record, RESOURCE, any_len);
        put_field(&mut record, ANY_TYPE_URL, url.as_bytes());
        put_key_len(&mut record, ANY_VALUE, parts.body.len());
        let body_at = record.len();
        record.put_slice(parts.body);

        let at = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        let content = Substance {
            version,
            record: record.freeze(),
            passed_on_at: at(passed_on_at),
            any_at: at(any_at),
            body_at: at(body_at),
            miscalled,
            aliases: (!parts.aliases.is_empty()).then(|| Box::new(parts.aliases.into_boxed_slice())),
            endpoints: parts.endpoints,
            references: OnceLock::new(),
            accepted: AtomicU16::new(0),
        };
        Self {
            name: parts.name,
            received: parts.received,
            content: Arc::new(content),
        }
    }

    /// Returns the same resource with all that another one has in memory, but the time, if their bytes are the same.
    #[must_use]
    pub fn sharing(self, other: &Self) -> Self {
        if !self.same_content(other) {
            return self;
        }
        Self {
            received: self.received,
            ..other.twin()
        }
    }

    /// The canonical name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// The other names that it answers to.
    #[must_use]
    pub fn aliases(&self) -> &[Name] {
        self.content.aliases.as_deref().map_or(&[], |aliases| aliases)
    }

    /// The encoded fields of the `Resource` message that are passed on as they came.
    #[must_use]
    pub fn passed_on(&self) -> Bytes {
        let content = &self.content;
        content
            .record
            .slice(content.passed_on_at as usize..content.any_at as usize)
    }

    /// Whether this is its body, and there are no such fields.
    #[must_use]
    pub fn is_only(&self, body: &[u8]) -> bool {
        let content = &self.content;
        content.passed_on_at == content.any_at && content.record.get(content.body_at as usize..) == Some(body)
    }

    /// F-17: whether it may be kept for clients that do not want it now.
    #[must_use]
    pub fn may_be_cached(&self) -> bool {
        let content = &self.content;
        let fields = content.passed_on_at as usize..content.any_at as usize;
        let fields = content.record.get(fields).unwrap_or_default();
        let said = || Wrapper::decode(fields).ok()?.cache_control;
        fields.is_empty() || !said().is_some_and(|cache| cache.do_not_cache)
    }

    /// The content hash.
    #[must_use]
    pub fn version(&self) -> Version {
        self.content.version
    }

    /// For a cluster that takes its endpoints from EDS: their name (K-13).
    #[must_use]
    pub fn endpoints(&self) -> Option<&Name> {
        self.content.endpoints.as_ref()
    }

    /// Returns what it refers to, as a resource of this kind. It is read once.
    #[must_use]
    pub fn references(&self, kind: Kind) -> Option<&References> {
        let read = || Some(Box::new(References::read(kind, &self.body()))).filter(|found| !found.is_empty());
        self.content.references.get_or_init(read).as_deref()
    }

    /// Notes that clients with this software have accepted the content: a bit for each, which several may have in common.
    pub fn note_accepted(&self, software: u16) {
        if self.accepted() & software != software {
            self.content.accepted.fetch_or(software, Ordering::Relaxed);
        }
    }

    /// Returns which software has accepted the content.
    #[must_use]
    pub fn accepted(&self) -> u16 {
        self.content.accepted.load(Ordering::Relaxed)
    }

    /// When the last byte of the message that brought this content was read.
    #[must_use]
    pub const fn received(&self) -> Instant {
        self.received
    }

    /// The whole `resources` entry of a delta response.
    #[must_use]
    pub fn delta_record(&self) -> Bytes {
        self.content.record.clone()
    }

    /// The whole `resources` entry of a SotW response.
    #[must_use]
    pub fn sotw_record(&self) -> Bytes {
        self.content.record.slice(self.content.any_at as usize..)
    }

    /// The `Resource` message without key and length, for records that need private fields before it.
    #[must_use]
    pub fn inner(&self) -> Bytes {
        // The key takes one byte, and the last byte of the length is the first without its highest bit.
        let last = self.content.record.iter().skip(1).position(|byte| *byte < 0x80);
        self.content.record.slice(last.map_or(0, |at| at + 2)..)
    }

    /// The `Any`'s value.
    #[must_use]
    pub fn body(&self) -> Bytes {
        self.content.record.slice(self.content.body_at as usize..)
    }

    /// A delta record with fields for one client: the remaining time to live, and the name as the client wrote it (F-09).
    #[must_use]
    pub fn private_record(&self, ttl: Option<Duration>, text: Option<&Name>) -> [Bytes; 2] {
        let (fields, tail) = self.private(ttl, text);
        let mut head = BytesMut::with_capacity(16 + fields.len());
        put_key_len(&mut head, RESOURCES, fields.len() + tail.len());
        head.put_slice(&fields);
        [head.freeze(), tail]
    }

    /// A delta record that confirms this content for another `ttl` and carries no body (K-17).
    #[must_use]
    pub fn heartbeat(&self, ttl: Duration, text: Option<&Name>) -> Bytes {
        let ttl = ttl_field(ttl);
        let version = self.content.version.to_string();
        let name = text.unwrap_or(&self.name);
        let mut record = BytesMut::new();
        let inner = name_len(name) + field_len(VERSION, version.len()) + ttl.len();
        put_key_len(&mut record, RESOURCES, inner);
        put_name(&mut record, name);
        put_field(&mut record, VERSION, version.as_bytes());
        record.put_slice(&ttl);
        record.freeze()
    }

    /// A SotW entry that is this resource inside the wrapper message (B-30), with the fields for one client.
    #[must_use]
    pub fn wrapped(&self, ttl: Option<Duration>, text: Option<&Name>) -> [Bytes; 2] {
        let (fields, tail) = self.private(ttl, text);
        let value_len = fields.len() + tail.len();
        let mut head = BytesMut::new();
        put_key_len(
            &mut head,
            RESOURCES,
            field_len(ANY_TYPE_URL, WRAPPER_URL.len()) + field_len(ANY_VALUE, value_len),
        );
        put_field(&mut head, ANY_TYPE_URL, WRAPPER_URL.as_bytes());
        put_key_len(&mut head, ANY_VALUE, value_len);
        head.put_slice(&fields);
        [head.freeze(), tail]
    }

    /// The `Resource` message in two parts: the fields for one client, and the rest.
    fn private(&self, ttl: Option<Duration>, text: Option<&Name>) -> (BytesMut, Bytes) {
        let mut fields = BytesMut::new();
        if let Some(ttl) = ttl {
            fields.put_slice(&ttl_field(ttl));
        }
        let inner = self.inner();
        let Some(text) = text else {
            return (fields, inner);
        };
        put_name(&mut fields, text);
        let tail = inner.slice(name_len(&self.name)..);
        (fields, tail)
    }

    /// A delta record which says that a virtual host does not exist: its name, and no body (C-21).
    #[must_use]
    pub fn missing_host(name: &Name) -> Bytes {
        let name = name.as_str().as_bytes();
        let mut record = BytesMut::new();
        put_key_len(
            &mut record,
            RESOURCES,
            field_len(NAME, name.len()) + field_len(ALIASES, name.len()),
        );
        put_field(&mut record, NAME, name);
        put_field(&mut record, ALIASES, name);
        record.freeze()
    }

    /// Whether the bytes that are forwarded are the same.
    #[must_use]
    pub fn same_content(&self, other: &Self) -> bool {
        self.content.record == other.content.record
    }

    /// How many bytes the relay keeps for it. Those that several views share count in each.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.content.record.len() + size_of::<Self>() + size_of::<Substance>()
    }
}

/// The type of the message around a resource in a SotW response.
pub const WRAPPER_URL: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{:.8}", self.name, self.content.version.to_string())
    }
}

fn content_hash(parts: &ResourceParts<'_>, seed: u64) -> Version {
    let mut hasher = Hasher::new(seed);
    hasher.field(parts.type_url.full_name().as_bytes());
    hasher.field(parts.name.as_str().as_bytes());
    hasher.number(parts.aliases.len());
    for alias in &parts.aliases {
        hasher.field(alias.as_str().as_bytes());
    }
    hasher.field(parts.passed_on);
    hasher.field(parts.body);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both are behind two counters of eight bytes. The allocator has sizes of 48 and 112 bytes, and of 64 and 128.
    #[test]
    fn what_the_allocator_takes() {
        let sizes = [size_of::<Resource>(), size_of::<Substance>()].map(|size| size + 16);
        assert!(sizes[0] <= 48 && sizes[1] <= 112, "{sizes:?}");
    }
}
