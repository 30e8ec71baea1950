// SPDX-License-Identifier: Apache-2.0
//! The descriptors: those of the public API, unpacked when they are needed, and those that an operator adds. Owns them and the
//! conversions that use them; `read` and `write` implement these.

mod described;
mod discovery;
mod redacted;
mod sensitive;

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use flate2::read::ZlibDecoder;
use prost::Message;
use prost_reflect::prost_types::FileDescriptorSet;
use prost_reflect::{DescriptorPool, MessageDescriptor};

use crate::fault::Fault;
use crate::form::full_name;
use crate::read::{Parsed, Reader, Unknown};
use crate::tree::Tree;
use crate::write::{Json, Secrets, Writer};
pub use discovery::{Response, response};
use proto::google::protobuf::Any;

/// The descriptors of the public API: see the README beside them.
static PACKED: &[u8] = include_bytes!("../../../proto/api/descriptors.bin");
/// The same, unpacked; none before they are needed, and after they were let go of.
static STANDARD: RwLock<Option<DescriptorPool>> = RwLock::new(None);
/// How often they were needed.
static USES: AtomicU64 = AtomicU64::new(0);

/// The descriptors of message types. Cheap to clone.
#[derive(Clone, Default)]
pub struct Schemas {
    /// The public API together with the operator's descriptors, if there are any of the latter.
    extended: Option<Arc<DescriptorPool>>,
}

/// An operator's file of descriptors cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not a `FileDescriptorSet`.
    #[error(
        "{path}: not a FileDescriptorSet ({reason}); make it with `protoc --include_imports --descriptor_set_out=FILE`"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Schemas {
    /// Returns the descriptors of the public API.
    #[must_use]
    pub fn standard() -> Self {
        Self::default()
    }

    /// Returns the descriptors of the public API and of these files, each a `FileDescriptorSet`.
    ///
    /// # Errors
    /// A file cannot be read, is not a `FileDescriptorSet`, or contradicts the known types.
    pub fn with_files(paths: &[PathBuf]) -> Result<Self, SchemaError> {
        if paths.is_empty() {
            return Ok(Self::standard());
        }
        let mut pool = standard();
        for path in paths {
            let encoded = std::fs::read(path).map_err(|source| SchemaError::Read {
                path: path.clone(),
                source,
            })?;
            extend(&mut pool, &encoded).map_err(|reason| format_error(path, reason))?;
        }
        Ok(Self {
            extended: Some(Arc::new(pool)),
        })
    }

    /// Whether the descriptors are unpacked. The first conversion unpacks them, which takes a tenth of a second.
    pub fn are_unpacked(&self) -> bool {
        self.extended.is_some() || unpacked().is_some()
    }

    /// Returns how often the descriptors of the public API were needed so far.
    #[must_use]
    pub fn uses() -> u64 {
        USES.load(Ordering::Relaxed)
    }

    /// Lets go of the unpacked descriptors of the public API, which are many megabytes. The next conversion unpacks them again.
    pub fn pack() {
        let pool = STANDARD.write().unwrap_or_else(PoisonError::into_inner).take();
        apart(move || drop(pool));
    }

    pub(super) fn pool(&self) -> DescriptorPool {
        self.extended.as_deref().cloned().unwrap_or_else(standard)
    }

    pub(super) fn message(&self, full_name: &str) -> Option<MessageDescriptor> {
        self.pool().get_message_by_name(full_name)
    }

    fn needed(&self, name: &str) -> Result<MessageDescriptor, Fault> {
        self.message(full_name(name)).ok_or_else(|| {
            let message =
                format!("the type `{name}` is not known; add its descriptors to `descriptors` in the configuration");
            Fault::of("", message)
        })
    }

    /// Whether messages of this type can be converted; takes a type URL or a full name.
    pub fn knows(&self, type_url: &str) -> bool {
        self.message(full_name(type_url)).is_some()
    }

    /// Encodes an object with `@type` as a resource. `path` is its path in faults: `resources[3]`, or empty.
    ///
    /// # Errors
    /// The first fault.
    pub fn resource(&self, tree: &Tree, path: &str, unknown: Unknown) -> Result<Parsed<Any>, Fault> {
        let mut reader = Reader::new(self, unknown, path.to_owned());
        if tree.entries().is_none() {
            let message = format!("expected an object with `@type`, found {}", tree.description());
            return Err(Fault::at(tree.place(), path, message));
        }
        let (type_url, body) = reader.any_parts(tree)?;
        Ok(Parsed {
            value: Any {
                type_url,
                value: body.into(),
            },
            warnings: reader.warnings,
        })
    }

    /// Encodes a tree as a message of this type.
    ///
    /// # Errors
    /// The first fault.
    pub fn encode(&self, name: &str, tree: &Tree, path: &str, unknown: Unknown) -> Result<Parsed<Bytes>, Fault> {
        let descriptor = self.needed(name)?;
        let mut reader = Reader::new(self, unknown, path.to_owned());
        let mut body = Vec::new();
        reader.message(&descriptor, tree, &mut body)?;
        Ok(Parsed {
            value: body.into(),
            warnings: reader.warnings,
        })
    }

    /// Returns all faults of an object: of a message of this type, or without a name of a resource with `@type`. For people: it also
    /// says which words were probably meant.
    pub fn faults(&self, name: Option<&str>, tree: &Tree, path: &str, unknown: Unknown) -> Vec<Fault> {
        let mut reader = Reader::new(self, unknown, path.to_owned()).thorough();
        let read = match name {
            Some(name) => self
                .needed(name)
                .and_then(|descriptor| reader.message(&descriptor, tree, &mut Vec::new())),
            None => reader.any_parts(tree).map(drop),
        };
        reader.faults(read.err())
    }

    /// Encodes a message of this type from protobuf's text format.
    ///
    /// # Errors
    /// The first fault.
    pub fn encode_text(&self, name: &str, text: &[u8]) -> Result<Bytes, Fault> {
        let descriptor = self.needed(name)?;
        let body = crate::text::parse(descriptor.clone(), text)?;
        // J-05: the parser does not sort maps; the way through JSON does.
        let json = Writer::new(self, Secrets::Show).message(&descriptor, &body)?;
        let tree = Tree::json(&json.text, crate::Bounds::FILE)?;
        self.encode(descriptor.full_name(), &tree, "", Unknown::Deny)
            .map(|parsed| parsed.value)
    }

    /// Returns the JSON of a message.
    ///
    /// # Errors
    /// The message is not of this type, or contains an unknown type.
    pub fn decode(&self, name: &str, body: &[u8], secrets: Secrets) -> Result<Json, Fault> {
        Writer::new(self, secrets).message(&self.needed(name)?, body)
    }

    /// Returns the JSON of a resource: an object with `@type`. It is made once for each resource and shared by all polling
    /// clients.
    ///
    /// # Errors
    /// The resource is not of its type, or contains an unknown type.
    pub fn resource_json(&self, type_url: &str, body: &[u8], secrets: Secrets) -> Result<Json, Fault> {
        Writer::new(self, secrets).any(type_url, body)
    }
}

/// Returns the descriptors of the public API. They are built in and tested; if they were broken, no type would be known.
fn standard() -> DescriptorPool {
    USES.fetch_add(1, Ordering::Relaxed);
    unpacked().unwrap_or_else(|| {
        let mut kept = STANDARD.write().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert_with(|| apart(|| unpack(PACKED)).unwrap_or_default())
            .clone()
    })
}

fn unpacked() -> Option<DescriptorPool> {
    STANDARD.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Does this in a thread of its own. What it allocates lies together then, and glibc gives it back to the system when it is let go of.
fn apart<T: Send + Default>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|threads| threads.spawn(work).join()).unwrap_or_default()
}

fn unpack(packed: &[u8]) -> Option<DescriptorPool> {
    let mut encoded = Vec::new();
    ZlibDecoder::new(packed).read_to_end(&mut encoded).ok()?;
    DescriptorPool::decode(encoded.as_slice()).ok()
}

/// Adds the files of a set that are missing. A set includes its imports, which may be known already.
fn extend(pool: &mut DescriptorPool, encoded: &[u8]) -> Result<(), String> {
    let set = FileDescriptorSet::decode(encoded).map_err(|error| error.to_string())?;
    if set.file.is_empty() {
        return Err("it has no files".to_owned());
    }
    let new = set
        .file
        .into_iter()
        .filter(|file| pool.get_file_by_name(file.name()).is_none());
    let new: Vec<_> = new.collect();
    pool.add_file_descriptor_protos(new).map_err(|error| error.to_string())
}

fn format_error(path: &Path, reason: String) -> SchemaError {
    SchemaError::Format {
        path: path.to_owned(),
        reason,
    }
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schemas")
            .field("extended", &self.extended.is_some())
            .finish()
    }
}
