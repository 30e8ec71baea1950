//! What one or several responses carry, encoded once for all who are sent it.
//!
//! Owns the cut into chunks and the shared bytes. Refuses to know nonces and who is sent what.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message as _;

use super::held::next_id;
use super::pieces::Pieces;
use super::resource::{full_name, put_field};
use super::{Name, Resource, ResourceError, Version};
use crate::proto::envoy::service::discovery::v3 as discovery;
use crate::proto::google::rpc::Status;

/// The two dialects of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// State of the world.
    Sotw,
    /// Incremental.
    Delta,
}

impl Dialect {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Sotw => Self::Delta,
            Self::Delta => Self::Sotw,
        }
    }

    /// Its name in the configuration, in metrics and for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sotw => "sotw",
            Self::Delta => "delta",
        }
    }
}

/// One resource in a response, and how it is written.
#[derive(Clone, Debug)]
pub struct Item {
    /// The resource.
    pub resource: Arc<Resource>,
    /// What remains of its life, towards clients that understand it (K-17).
    pub ttl: Option<Duration>,
    /// How it is written.
    pub form: Form,
}

/// How a resource is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Whole,
    /// In the wrapper message, which only SotW needs (B-30).
    Wrapped,
    /// Without its body: the client holds it (K-17).
    Heartbeat,
    /// As it is although the client holds it: what is new stands beside the body (E-11).
    Repeated,
}

impl Item {
    /// A resource as it is.
    #[must_use]
    pub const fn plain(resource: Arc<Resource>) -> Self {
        Self {
            resource,
            ttl: None,
            form: Form::Whole,
        }
    }
}

/// Resources and removed names, cut into chunks.
#[derive(Debug)]
pub struct Batch {
    id: u64,
    items: Vec<Item>,
    removed: Vec<Name>,
    missing: BTreeSet<Name>,
    hosts: bool,
    texts: Texts,
    errors: Errors,
    withdrawn: BTreeMap<Name, Bytes>,
    chunks: Vec<Chunk>,
}

/// By name, the texts that a client wrote it with, where they are not the name's own (F-09).
pub type Texts = BTreeMap<Name, BTreeSet<Name>>;

/// What a server says is wrong with names (B-31).
pub type Errors = BTreeMap<Name, Arc<ResourceError>>;

/// What one response carries.
#[derive(Debug)]
pub struct Chunk {
    items: Range<usize>,
    removed: Range<usize>,
    sotw: OnceLock<Arc<[Bytes]>>,
    delta: OnceLock<Arc<[Bytes]>>,
}

/// Protobuf's number of `removed_resources`.
const REMOVED_RESOURCES: u32 = 6;
/// Protobuf's number of `removed_resource_names`.
const REMOVED_NAMES: u32 = 8;
/// The numbers of `resource_errors` in the two kinds of response.
const SOTW_ERRORS: u32 = 7;
const DELTA_ERRORS: u32 = 9;

impl Batch {
    /// Cuts into chunks of about `chunk` bytes; there is always one, if only to say that there is nothing.
    #[must_use]
    pub fn new(items: Vec<Item>, removed: Vec<Name>, chunk: usize) -> Self {
        let sizes = items
            .iter()
            .map(|item| item.resource.weight())
            .chain(removed.iter().map(|name| name.as_str().len() + 4));
        let (count, mut start, mut bytes) = (items.len(), 0, 0);
        let mut chunks = Vec::new();
        let part = |from: usize, to: usize| Chunk {
            items: from.min(count)..to.min(count),
            removed: from.saturating_sub(count)..to.saturating_sub(count),
            sotw: OnceLock::new(),
            delta: OnceLock::new(),
        };
        for (at, size) in sizes.enumerate() {
            if bytes > 0 && bytes + size > chunk {
                chunks.push(part(start, at));
                (start, bytes) = (at, 0);
            }
            bytes += size;
        }
        chunks.push(part(start, count + removed.len()));
        Self {
            id: next_id(),
            items,
            removed,
            missing: BTreeSet::new(),
            hosts: false,
            texts: Texts::new(),
            errors: Errors::new(),
            withdrawn: BTreeMap::new(),
            chunks,
        }
    }

    /// Of the removed names, those of which the client holds nothing. C-21: of virtual hosts (`hosts`) it is told so by a resource
    /// without a body, while one that it holds, or of which an error is said (B-31), is removed like any other.
    #[must_use]
    pub fn with_missing(self, missing: BTreeSet<Name>, hosts: bool) -> Self {
        Self { missing, hosts, ..self }
    }

    /// F-09: these names are written as the client wrote them, each as often as it did so in different ways.
    #[must_use]
    pub fn with_texts(self, texts: Texts) -> Self {
        Self { texts, ..self }
    }

    /// C-23: under these names the client has variants with these constraints, which go: by their full name, and C-26 in the same
    /// part as what comes in their place.
    #[must_use]
    pub fn with_withdrawn(self, withdrawn: BTreeMap<Name, Bytes>) -> Self {
        Self { withdrawn, ..self }
    }

    /// B-31: with its first part these errors are said, of names that are not among its resources.
    #[must_use]
    pub fn with_errors(self, errors: Errors) -> Self {
        Self { errors, ..self }
    }

    /// The same with other copies of the resources.
    #[must_use]
    pub fn mapped(&self, mut copy: impl FnMut(&Arc<Resource>) -> Arc<Resource>) -> Self {
        let items = self.items.iter().map(|item| Item {
            resource: copy(&item.resource),
            ..item.clone()
        });
        let chunks = self.chunks.iter().map(|chunk| Chunk {
            items: chunk.items.clone(),
            removed: chunk.removed.clone(),
            sotw: OnceLock::new(),
            delta: OnceLock::new(),
        });
        Self {
            id: next_id(),
            items: items.collect(),
            removed: self.removed.clone(),
            missing: self.missing.clone(),
            hosts: self.hosts,
            chunks: chunks.collect(),
            texts: self.texts.clone(),
            errors: self.errors.clone(),
            withdrawn: self.withdrawn.clone(),
        }
    }

    /// One of its parts after the first alone, with these items for its own: what is said of its names stays as it is.
    #[must_use]
    pub fn later(&self, chunk: usize, items: Vec<Item>) -> Self {
        let removed = self.removed_of(chunk);
        let names = || items.iter().map(|item| item.resource.name()).chain(removed);
        Self {
            missing: names().filter(|name| self.missing.contains(*name)).cloned().collect(),
            hosts: self.hosts,
            texts: some(&self.texts, names()),
            withdrawn: some(&self.withdrawn, names()),
            ..Self::new(items, removed.to_vec(), usize::MAX)
        }
    }

    /// Whether the bytes of its resources are not here.
    #[must_use]
    pub fn is_hollow(&self) -> bool {
        self.items.iter().any(|item| item.resource.is_hollow())
    }

    /// Identifies this very value.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// All its resources.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// All names that it removes.
    #[must_use]
    pub fn removed(&self) -> &[Name] {
        &self.removed
    }

    /// Whether a name that it removes is one of which the client held nothing.
    #[must_use]
    pub fn is_missing(&self, name: &Name) -> bool {
        self.missing.contains(name)
    }

    /// How many responses it takes.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.removed.is_empty() && self.errors.is_empty()
    }

    /// The resources in the chunk.
    #[must_use]
    pub fn items_of(&self, chunk: usize) -> &[Item] {
        self.chunks
            .get(chunk)
            .and_then(|chunk| self.items.get(chunk.items.clone()))
            .unwrap_or_default()
    }

    /// The names that the chunk removes.
    #[must_use]
    pub fn removed_of(&self, chunk: usize) -> &[Name] {
        self.chunks
            .get(chunk)
            .and_then(|chunk| self.removed.get(chunk.removed.clone()))
            .unwrap_or_default()
    }

    /// The version of the set of its resources.
    #[must_use]
    pub fn sum(&self) -> Version {
        self.items
            .iter()
            .fold(Version::EMPTY, |sum, item| sum.plus(item.resource.version()))
    }

    /// The chunk's `resources` and `removed_resources` fields, and whether they were encoded by this very call.
    #[must_use]
    pub fn encoded(&self, chunk: usize, dialect: Dialect) -> (Arc<[Bytes]>, bool) {
        let Some(cell) = self.chunks.get(chunk).map(|chunk| match dialect {
            Dialect::Sotw => &chunk.sotw,
            Dialect::Delta => &chunk.delta,
        }) else {
            return (Arc::from([]), false);
        };
        let mut fresh = false;
        let pieces = cell.get_or_init(|| {
            fresh = true;
            self.encode(chunk, dialect)
        });
        (pieces.clone(), fresh)
    }

    fn encode(&self, chunk: usize, dialect: Dialect) -> Arc<[Bytes]> {
        let mut rope = Pieces::default();
        for item in self.items_of(chunk) {
            match self.texts.get(item.resource.name()) {
                Some(texts) => rope.items(item, dialect, texts),
                None => rope.item(item, dialect, None),
            }
        }
        if dialect == Dialect::Delta {
            let mut tail = BytesMut::new();
            let swapped = self.items_of(chunk).iter().map(|item| item.resource.name());
            for name in swapped.filter(|name| self.withdrawn.contains_key(*name)) {
                match self.texts.get(name) {
                    Some(texts) => texts.iter().for_each(|text| self.remove(name, text, &mut tail)),
                    None => self.remove(name, name, &mut tail),
                }
            }
            for name in self.removed_of(chunk) {
                match self.texts.get(name) {
                    Some(texts) => texts.iter().for_each(|text| self.remove(name, text, &mut tail)),
                    None => self.remove(name, name, &mut tail),
                }
            }
            rope.push(tail.freeze());
        }
        if chunk == 0 {
            rope.push(self.encode_errors(dialect));
        }
        rope.finish()
    }

    fn encode_errors(&self, dialect: Dialect) -> Bytes {
        let number = match dialect {
            Dialect::Sotw => SOTW_ERRORS,
            Dialect::Delta => DELTA_ERRORS,
        };
        let mut fields = BytesMut::new();
        for (name, error) in &self.errors {
            let own = BTreeSet::from([name.clone()]);
            for text in self.texts.get(name).unwrap_or(&own) {
                let error = discovery::ResourceError {
                    resource_name: Some(discovery::ResourceName {
                        name: text.as_str().to_owned(),
                        dynamic_parameter_constraints: None,
                    }),
                    error_detail: Some(Status {
                        code: error.code,
                        message: error.message.to_string(),
                        details: Vec::new(),
                    }),
                };
                put_field(&mut fields, number, &error.encode_to_vec());
            }
        }
        fields.freeze()
    }

    fn remove(&self, name: &Name, text: &Name, tail: &mut BytesMut) {
        if let Some(constraints) = self.withdrawn.get(name) {
            put_field(tail, REMOVED_NAMES, &full_name(text, constraints));
        } else if self.hosts && self.missing.contains(name) && !self.errors.contains_key(name) {
            tail.put_slice(&Resource::missing_host(text));
        } else {
            put_field(tail, REMOVED_RESOURCES, text.as_str().as_bytes());
        }
    }
}

/// What is said of these names.
fn some<'a, T: Clone>(all: &BTreeMap<Name, T>, names: impl Iterator<Item = &'a Name>) -> BTreeMap<Name, T> {
    let said = names.filter_map(|name| all.get_key_value(name));
    said.map(|(name, said)| (name.clone(), said.clone())).collect()
}
