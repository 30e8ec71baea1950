// SPDX-License-Identifier: Apache-2.0
//! The content of one response, encoded once for all clients that get it.
//!
//! Owns the shared bytes. Knows nothing of nonces, of who is sent what, and of how much fits into one response.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message as _;

use super::deflated::Deflated;
use super::pieces::Pieces;
use super::resource::put_field;
use super::value_id::next_id;
use super::{Name, Resource, ResourceError, Version};
use crate::worded;
use proto::envoy::service::discovery::v3 as discovery;
use proto::google::rpc::Status;

worded! {
/// The two dialects of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// State of the world.
    Sotw = "sotw",
    /// Incremental.
    Delta = "delta",
}
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
}

/// One resource in a response, and how it is written.
#[derive(Clone, Debug)]
pub struct Item {
    /// The resource.
    pub resource: Arc<Resource>,
    /// F-09: the text by which the client asked for it, if that is not its name.
    pub text: Option<Name>,
    /// The remaining time to live, for clients that understand it (K-17).
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
    /// As it is, although the client holds it: only fields beside the body are new (E-11).
    Repeated,
}

impl Item {
    /// A resource as it is.
    #[must_use]
    pub const fn plain(resource: Arc<Resource>) -> Self {
        Self {
            resource,
            text: None,
            ttl: None,
            form: Form::Whole,
        }
    }

    /// The name on the wire.
    pub fn name(&self) -> &Name {
        self.text.as_ref().unwrap_or_else(|| self.resource.name())
    }
}

/// Resources and removed names.
#[derive(Debug)]
pub struct Batch {
    id: u64,
    items: Vec<Item>,
    /// The names of resources that are written after the others, in this order.
    last: Vec<Name>,
    removed: Vec<Name>,
    missing: BTreeSet<Name>,
    hosts: bool,
    errors: Errors,
    /// Whether one session alone gets it.
    alone: bool,
    sotw: Encoded,
    delta: Encoded,
    weight: usize,
    newest: Option<Instant>,
    sum: OnceLock<Version>,
    /// Which software has accepted it, a bit for each.
    accepted: AtomicU16,
}

/// The bytes of a batch in one dialect, each form made when the first session needs it.
#[derive(Debug, Default)]
struct Encoded {
    pieces: OnceLock<Arc<[Bytes]>>,
    /// The same bytes for those who take them compressed; none if that is of no use.
    deflated: OnceLock<Option<Box<Deflated>>>,
}

/// The errors that a server reported, by name (B-31).
pub type Errors = BTreeMap<Name, Arc<ResourceError>>;

/// The field number of `removed_resources`.
const REMOVED_RESOURCES: u32 = 6;
/// The field numbers of `resource_errors` in the two kinds of response.
const SOTW_ERRORS: u32 = 7;
const DELTA_ERRORS: u32 = 9;

impl Batch {
    /// Creates a batch of these resources and removed names, both in order; none of the names counts as missing.
    #[must_use]
    pub fn new(items: Vec<Item>, removed: Vec<Name>) -> Self {
        Self {
            weight: items.iter().map(|item| item.resource.weight()).sum(),
            newest: items.iter().map(|item| item.resource.received()).max(),
            id: next_id(),
            items,
            last: Vec::new(),
            removed,
            missing: BTreeSet::new(),
            hosts: false,
            errors: Errors::new(),
            alone: false,
            sotw: Encoded::default(),
            delta: Encoded::default(),
            sum: OnceLock::new(),
            accepted: AtomicU16::new(0),
        }
    }

    /// Returns when the last of its resources was received.
    pub const fn newest(&self) -> Option<Instant> {
        self.newest
    }

    /// Returns the resource with this name.
    pub fn item(&self, name: &Name) -> Option<&Item> {
        let at = self.items.binary_search_by(|item| item.name().cmp(name));
        self.items.get(at.ok()?)
    }

    /// Writes these resources after the others, in this order: listeners that take addresses of others.
    #[must_use]
    pub fn with_last(self, last: Vec<Name>) -> Self {
        Self { last, ..self }
    }

    /// Returns the names of the resources that are written after the others.
    pub fn last(&self) -> &[Name] {
        &self.last
    }

    /// Sets which removed names are missing: the client holds nothing under them. C-21: a missing virtual host (`hosts`) is sent
    /// as a resource without a body. One that the client holds, or that has an error (B-31), is removed like any other resource.
    #[must_use]
    pub fn with_missing(self, missing: BTreeSet<Name>, hosts: bool) -> Self {
        Self { missing, hosts, ..self }
    }

    /// One session alone gets it: its bytes refer to the resources, where others are copied together once for all sessions.
    #[must_use]
    pub fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    /// B-31: adds these errors. Their names are not among its resources.
    #[must_use]
    pub fn with_errors(self, errors: Errors) -> Self {
        Self { errors, ..self }
    }

    /// Identifies this very value.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// All its resources.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// All names that it removes.
    pub fn removed(&self) -> &[Name] {
        &self.removed
    }

    /// Whether this removed name is one under which the client held nothing.
    pub fn is_missing(&self, name: &Name) -> bool {
        self.missing.contains(name)
    }

    /// Whether it has no resources, no removed names and no errors.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.removed.is_empty() && self.errors.is_empty()
    }

    /// The version of the set of its resources.
    pub fn sum(&self) -> Version {
        let add = |sum: Version, item: &Item| sum.plus(item.resource.version());
        *self.sum.get_or_init(|| self.items.iter().fold(Version::EMPTY, add))
    }

    /// A client with this software has accepted it, and so all contents in it. Once for each software, however many clients it has.
    pub fn note_accepted(&self, software: u16) {
        if self.accepted.load(Ordering::Relaxed) & software != software {
            self.accepted.fetch_or(software, Ordering::Relaxed);
            self.items.iter().for_each(|item| item.resource.note_accepted(software));
        }
    }

    /// How many bytes its resources have.
    pub const fn weight(&self) -> usize {
        self.weight
    }

    /// Returns its encoded fields (resources, removed names, errors), and whether this very call encoded them.
    pub fn encoded(&self, dialect: Dialect) -> (Arc<[Bytes]>, bool) {
        let mut fresh = false;
        let pieces = self.of(dialect).pieces.get_or_init(|| {
            fresh = true;
            self.encode(dialect)
        });
        (pieces.clone(), fresh)
    }

    /// Returns the encoded fields compressed, unless that is of no use.
    pub fn deflated(&self, dialect: Dialect) -> Option<&Deflated> {
        let deflate = || Deflated::of(&self.encoded(dialect).0).map(Box::new);
        self.of(dialect).deflated.get_or_init(deflate).as_deref()
    }

    const fn of(&self, dialect: Dialect) -> &Encoded {
        match dialect {
            Dialect::Sotw => &self.sotw,
            Dialect::Delta => &self.delta,
        }
    }

    fn encode(&self, dialect: Dialect) -> Arc<[Bytes]> {
        let mut rope = Pieces::new(self.alone);
        let late: BTreeSet<&Name> = self.last.iter().collect();
        let first = self.items.iter().filter(|item| !late.contains(item.name()));
        let last = self.last.iter().filter_map(|name| self.item(name));
        first.chain(last).for_each(|item| rope.item(item, dialect));
        if dialect == Dialect::Delta {
            let mut tail = BytesMut::new();
            self.removed.iter().for_each(|name| self.remove(name, &mut tail));
            rope.push(tail.freeze());
        }
        rope.push(self.encode_errors(dialect));
        rope.finish()
    }

    fn encode_errors(&self, dialect: Dialect) -> Bytes {
        let number = match dialect {
            Dialect::Sotw => SOTW_ERRORS,
            Dialect::Delta => DELTA_ERRORS,
        };
        let mut fields = BytesMut::new();
        for (name, error) in &self.errors {
            let error = discovery::ResourceError {
                resource_name: Some(discovery::ResourceName {
                    name: name.as_str().to_owned(),
                    dynamic_parameter_constraints: Bytes::new(),
                }),
                error_detail: Some(Status {
                    code: error.code,
                    message: error.message.to_string(),
                    details: Vec::new(),
                }),
            };
            put_field(&mut fields, number, &error.encode_to_vec());
        }
        fields.freeze()
    }

    fn remove(&self, name: &Name, tail: &mut BytesMut) {
        if self.hosts && self.missing.contains(name) && !self.errors.contains_key(name) {
            tail.put_slice(&Resource::missing_host(name));
        } else {
            put_field(tail, REMOVED_RESOURCES, name.as_str().as_bytes());
        }
    }
}
