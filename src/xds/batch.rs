//! The content of one response, encoded once for all clients that get it.
//!
//! Owns the shared bytes. Knows nothing of nonces, of who is sent what, and of how much fits into one response.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message as _;

use super::held::next_id;
use super::pieces::Pieces;
use super::resource::put_field;
use super::{Name, Resource, ResourceError, Version};
use proto::envoy::service::discovery::v3 as discovery;
use proto::google::rpc::Status;

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
            ttl: None,
            form: Form::Whole,
        }
    }

    /// Whether it is sent as if the client did not hold it.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        matches!(self.form, Form::Whole | Form::Wrapped)
    }
}

/// Resources and removed names.
#[derive(Debug)]
pub struct Batch {
    id: u64,
    items: Vec<Item>,
    removed: Vec<Name>,
    missing: BTreeSet<Name>,
    hosts: bool,
    texts: Texts,
    errors: Errors,
    /// Whether one session alone gets it.
    alone: bool,
    sotw: OnceLock<Arc<[Bytes]>>,
    delta: OnceLock<Arc<[Bytes]>>,
    /// The aliases of all resources, in order.
    aliases: OnceLock<Box<[Name]>>,
}

/// For each name: the texts that a client wrote for it, where they differ from the name itself (F-09).
pub type Texts = BTreeMap<Name, BTreeSet<Name>>;

/// The errors that a server reported, by name (B-31).
pub type Errors = BTreeMap<Name, Arc<ResourceError>>;

/// The field number of `removed_resources`.
const REMOVED_RESOURCES: u32 = 6;
/// The field numbers of `resource_errors` in the two kinds of response.
const SOTW_ERRORS: u32 = 7;
const DELTA_ERRORS: u32 = 9;

impl Batch {
    /// Creates a batch of these resources and removed names; none of the names counts as missing.
    #[must_use]
    pub fn new(items: Vec<Item>, removed: Vec<Name>) -> Self {
        Self {
            id: next_id(),
            items,
            removed,
            missing: BTreeSet::new(),
            hosts: false,
            texts: Texts::new(),
            errors: Errors::new(),
            alone: false,
            sotw: OnceLock::new(),
            delta: OnceLock::new(),
            aliases: OnceLock::new(),
        }
    }

    /// Returns the resource with this name.
    #[must_use]
    pub fn item(&self, name: &Name) -> Option<&Item> {
        let at = self.items.binary_search_by(|item| item.resource.name().cmp(name));
        self.items.get(at.ok()?)
    }

    /// Whether it contains a resource with this name or alias (C-20).
    #[must_use]
    pub fn brings(&self, name: &Name) -> bool {
        self.item(name).is_some() || self.aliases().binary_search(name).is_ok()
    }

    fn aliases(&self) -> &[Name] {
        self.aliases.get_or_init(|| {
            let all = self.items.iter().flat_map(|item| item.resource.aliases());
            let mut all: Vec<Name> = all.cloned().collect();
            all.sort_unstable();
            all.into()
        })
    }

    /// Sets which removed names are missing: the client holds nothing under them. C-21: a missing virtual host (`hosts`) is sent
    /// as a resource without a body. One that the client holds, or that has an error (B-31), is removed like any other resource.
    #[must_use]
    pub fn with_missing(self, missing: BTreeSet<Name>, hosts: bool) -> Self {
        Self { missing, hosts, ..self }
    }

    /// F-09: writes these names as the client wrote them, once for each way in which it wrote them.
    #[must_use]
    pub fn with_texts(self, texts: Texts) -> Self {
        Self { texts, ..self }
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

    /// Returns the same batch with other copies of the resources.
    #[must_use]
    pub fn mapped(&self, mut copy: impl FnMut(&Arc<Resource>) -> Arc<Resource>) -> Self {
        let items = self.items.iter().map(|item| Item {
            resource: copy(&item.resource),
            ..item.clone()
        });
        Self {
            id: next_id(),
            items: items.collect(),
            removed: self.removed.clone(),
            missing: self.missing.clone(),
            hosts: self.hosts,
            texts: self.texts.clone(),
            errors: self.errors.clone(),
            alone: self.alone,
            sotw: OnceLock::new(),
            delta: OnceLock::new(),
            aliases: OnceLock::new(),
        }
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

    /// Whether this removed name is one under which the client held nothing.
    #[must_use]
    pub fn is_missing(&self, name: &Name) -> bool {
        self.missing.contains(name)
    }

    /// Whether it has no resources, no removed names and no errors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.removed.is_empty() && self.errors.is_empty()
    }

    /// The version of the set of its resources.
    #[must_use]
    pub fn sum(&self) -> Version {
        self.items
            .iter()
            .fold(Version::EMPTY, |sum, item| sum.plus(item.resource.version()))
    }

    /// Returns its encoded fields (resources, removed names, errors), and whether this very call encoded them.
    #[must_use]
    pub fn encoded(&self, dialect: Dialect) -> (Arc<[Bytes]>, bool) {
        let cell = match dialect {
            Dialect::Sotw => &self.sotw,
            Dialect::Delta => &self.delta,
        };
        let mut fresh = false;
        let pieces = cell.get_or_init(|| {
            fresh = true;
            self.encode(dialect)
        });
        (pieces.clone(), fresh)
    }

    fn encode(&self, dialect: Dialect) -> Arc<[Bytes]> {
        let mut rope = Pieces::new(self.alone);
        for item in &self.items {
            match self.texts.get(item.resource.name()) {
                Some(texts) => rope.items(item, dialect, texts),
                None => rope.item(item, dialect, None),
            }
        }
        if dialect == Dialect::Delta {
            let mut tail = BytesMut::new();
            for name in &self.removed {
                match self.texts.get(name) {
                    Some(texts) => texts.iter().for_each(|text| self.remove(name, text, &mut tail)),
                    None => self.remove(name, name, &mut tail),
                }
            }
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
            let own = BTreeSet::from([name.clone()]);
            for text in self.texts.get(name).unwrap_or(&own) {
                let error = discovery::ResourceError {
                    resource_name: Some(discovery::ResourceName {
                        name: text.as_str().to_owned(),
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
        }
        fields.freeze()
    }

    fn remove(&self, name: &Name, text: &Name, tail: &mut BytesMut) {
        if self.hosts && self.missing.contains(name) && !self.errors.contains_key(name) {
            tail.put_slice(&Resource::missing_host(text));
        } else {
            put_field(tail, REMOVED_RESOURCES, text.as_str().as_bytes());
        }
    }
}
