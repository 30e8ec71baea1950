// SPDX-License-Identifier: Apache-2.0
//! Parses one file into resources.
//!
//! Owns what a file may hold, and the place of each resource in it. Does not touch the file system.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use prost::Message;

use crate::json::{Bounds, Fault, Parsed, Place, Response, Schemas, Tree, Unknown};
use crate::proto::envoy::config::listener::v3::ListenerCollection;
use crate::proto::envoy::service::discovery::v3::{DiscoveryResponse, Resource as Wrapper};
use crate::proto::google::protobuf::Any;
use crate::proto::xds::core::v3::collection_entry::{InlineEntry, ResourceSpecifier};
use crate::protocol::stated;
use crate::xds::{NameRule, Resource, TypeUrl, Types, WRAPPER_URL};

use super::format::FileFormat;

/// The content of one file, in which all resources are good.
#[derive(Clone, Debug, Default)]
pub struct ParsedFile {
    /// The resources in their order.
    pub resources: Vec<Stated>,
    /// Warnings about parts that were skipped.
    pub warnings: Vec<Fault>,
}

/// One resource, and its place in the file.
#[derive(Clone, Debug)]
pub struct Stated {
    /// Its type.
    pub type_url: TypeUrl,
    /// The resource itself.
    pub resource: Arc<Resource>,
    /// Where it begins, if the file is YAML or JSON.
    pub place: Option<Place>,
    /// When its time to live ends.
    pub until: Option<Instant>,
}

/// What is needed to parse files.
#[derive(Clone, Debug)]
pub struct Dictionary {
    /// The schemas of the message types.
    pub schemas: Schemas,
    /// What to do with unknown fields.
    pub unknown: Unknown,
    /// The resource types.
    pub types: Types,
}

const RESPONSE: &str = "envoy.service.discovery.v3.DiscoveryResponse";
const WRAPPER: &str = "envoy.service.discovery.v3.Resource";

impl ParsedFile {
    /// Parses a file's content; times to live begin at `now`.
    ///
    /// # Errors
    /// Returns the faults. I-05: nothing in a bad file counts.
    pub fn parse(
        content: &[u8],
        format: FileFormat,
        dictionary: &Dictionary,
        now: Instant,
    ) -> Result<Self, Vec<Fault>> {
        let mut reading = FileReading {
            dictionary,
            now,
            parsed: Self::default(),
            faults: Vec::new(),
        };
        let last = reading.whole(content, format).err();
        reading.faults.extend(last);
        if reading.faults.is_empty() {
            Ok(reading.parsed)
        } else {
            Err(reading.faults)
        }
    }

    /// Whether any resource has a time to live.
    pub(super) fn ends(&self) -> bool {
        self.resources.iter().any(|one| one.until.is_some())
    }
}

struct FileReading<'a> {
    dictionary: &'a Dictionary,
    now: Instant,
    parsed: ParsedFile,
    /// The faults of single resources.
    faults: Vec<Fault>,
}

/// After so many faults a file is not read any further.
const FAULTS_MAX: usize = 100;

/// Where an entry is in the file.
struct At {
    place: Option<Place>,
    path: String,
}

impl FileReading<'_> {
    fn whole(&mut self, content: &[u8], format: FileFormat) -> Result<(), Fault> {
        if content.iter().all(u8::is_ascii_whitespace) {
            return Err(empty(None));
        }
        match format {
            FileFormat::Yaml => self.tree(&Tree::yaml(content, Bounds::FILE)?),
            FileFormat::Json => self.tree(&Tree::json(content, Bounds::FILE)?),
            FileFormat::Binary => self.binary(content),
            FileFormat::Text => self.text(content),
        }
    }

    /// Records the fault of one resource and goes on, unless there are too many.
    fn note(&mut self, read: Result<(), Fault>) -> Result<(), Fault> {
        let Err(fault) = read else { return Ok(()) };
        if self.faults.len() + 1 >= FAULTS_MAX {
            return Err(fault);
        }
        self.faults.push(fault);
        Ok(())
    }

    fn tree(&mut self, tree: &Tree) -> Result<(), Fault> {
        if tree.is_null() {
            return Err(empty(Some(tree.place())));
        }
        let (schemas, unknown) = (&self.dictionary.schemas, self.dictionary.unknown);
        // The short form: a list of resources.
        if let Some(items) = tree.items() {
            for (index, item) in items.iter().enumerate() {
                let path = format!("[{index}]");
                let read = schemas.resource(item, &path, unknown);
                self.resource(read, None, Some(item), "", At::of(item, path))?;
            }
            return Ok(());
        }
        let said = tree.get("@type").and_then(Tree::text).map(full_name);
        match said {
            Some(RESPONSE) => self.response(tree),
            Some(_) => {
                let read = schemas.resource(tree, "", unknown);
                self.resource(read, None, Some(tree), "", At::of(tree, String::new()))
            }
            None if tree.get("resource").is_some() => {
                let read = schemas.encode(WRAPPER, tree, "", unknown).map(|read| Parsed {
                    value: Any {
                        type_url: WRAPPER_URL.to_owned(),
                        value: read.value,
                    },
                    warnings: read.warnings,
                });
                self.resource(read, Some(WRAPPER), Some(tree), "", At::of(tree, String::new()))
            }
            None => self.response(tree),
        }
    }

    fn response(&mut self, tree: &Tree) -> Result<(), Fault> {
        let Response {
            type_url,
            version_info,
            resources,
            ..
        } = self.dictionary.schemas.response(tree, self.dictionary.unknown)?;
        let written = tree.get("resources");
        // Protobuf's JSON may omit an empty list; but an object without any field is not an empty response.
        if written.is_none() && type_url.is_empty() && version_info.is_empty() {
            return Err(empty(Some(tree.place())));
        }
        let places = written.and_then(Tree::items).unwrap_or_default();
        for (index, read) in resources.into_iter().enumerate() {
            let item = places.get(index);
            let at = At {
                place: item.map(Tree::place),
                path: format!("resources[{index}]"),
            };
            self.resource(read, None, item, &type_url, at)?;
        }
        Ok(())
    }

    /// Takes what was read of a resource, or records all that is wrong with it. `name` is its message if it has no `@type`, `of` the
    /// `type_url` of its response.
    fn resource(
        &mut self,
        read: Result<Parsed<Any>, Fault>,
        name: Option<&str>,
        tree: Option<&Tree>,
        of: &str,
        at: At,
    ) -> Result<(), Fault> {
        let fault = match read {
            Ok(read) => {
                let any = self.warned(read);
                let taken = self.take(any, of, &at);
                return self.note(taken);
            }
            Err(fault) => fault,
        };
        let (schemas, unknown) = (&self.dictionary.schemas, self.dictionary.unknown);
        let all = tree.map(|tree| schemas.faults(name, tree, &at.path, unknown));
        let mut all = all.filter(|all| !all.is_empty()).unwrap_or_else(|| vec![fault]);
        all.sort_by_key(|fault| fault.place);
        all.into_iter().try_for_each(|fault| self.note(Err(fault)))
    }

    fn binary(&mut self, content: &[u8]) -> Result<(), Fault> {
        let content = Bytes::copy_from_slice(content);
        let error = match DiscoveryResponse::decode(content.clone()) {
            Ok(response) => {
                self.known(&response, content.len(), RESPONSE)?;
                return self.message(response);
            }
            Err(error) => error,
        };
        let Ok(wrapper) = Wrapper::decode(content.clone()) else {
            return Err(plain(format!("not a {RESPONSE}: {error}")));
        };
        self.known(&wrapper, content.len(), WRAPPER)?;
        self.wrapper(content)
    }

    fn text(&mut self, content: &[u8]) -> Result<(), Fault> {
        let schemas = &self.dictionary.schemas;
        let fault = match schemas.encode_text(RESPONSE, content) {
            Ok(encoded) => {
                let response = DiscoveryResponse::decode(encoded).map_err(|error| plain(error.to_string()))?;
                return self.message(response);
            }
            Err(fault) => fault,
        };
        match schemas.encode_text(WRAPPER, content) {
            Ok(encoded) => self.wrapper(encoded),
            Err(_) => Err(fault),
        }
    }

    fn message(&mut self, response: DiscoveryResponse) -> Result<(), Fault> {
        for (index, any) in response.resources.into_iter().enumerate() {
            let path = format!("resources[{index}]");
            let read = self.take(any, &response.type_url, &At { place: None, path });
            self.note(read)?;
        }
        Ok(())
    }

    fn wrapper(&mut self, value: Bytes) -> Result<(), Fault> {
        let type_url = WRAPPER_URL.to_owned();
        let at = At {
            place: None,
            path: String::new(),
        };
        self.take(Any { type_url, value }, "", &at)
    }

    /// Protobuf reads almost any bytes as a message with unknown fields, so a message that has some may be a different one.
    fn known(&mut self, message: &impl Message, len: usize, name: &str) -> Result<(), Fault> {
        if message.encoded_len() == len {
            return Ok(());
        }
        let fault = plain(format!("not a {name}, or one with unknown fields"));
        match self.dictionary.unknown {
            Unknown::Deny => return Err(fault),
            Unknown::Warn => self.parsed.warnings.push(fault),
            Unknown::Ignore => {}
        }
        Ok(())
    }

    /// Takes a resource or a collection. `of` is the `type_url` of the response, if there is one.
    fn take(&mut self, any: Any, of: &str, at: &At) -> Result<(), Fault> {
        let whole = unwrapped(&any);
        let whole = whole.as_ref().unwrap_or(&any);
        let type_url = self.dictionary.types.resolve(&whole.type_url);
        if is_collection(&type_url) {
            let collection = ListenerCollection::decode(whole.value.clone())
                .map_err(|error| at.fault(format!("cannot be decoded: {error}")))?;
            for (index, entry) in collection.entries.into_iter().enumerate() {
                let at = At {
                    place: at.place,
                    path: format!("{}.entries[{index}]", at.path),
                };
                match entry.resource_specifier {
                    Some(ResourceSpecifier::InlineEntry(entry)) => self.entry(entry, &at)?,
                    // I-01: only inline entries are used.
                    None => self
                        .parsed
                        .warnings
                        .push(at.fault("is not an inline entry and was skipped".to_owned())),
                }
            }
            return Ok(());
        }
        // the type of an entry is that of the response.
        if !of.is_empty() && !type_url.is_named(of) {
            let message = format!("is a {type_url}, but `type_url` says {}", TypeUrl::new(of));
            return Err(at.fault(message));
        }
        let (type_url, resource, ttl) =
            stated(any, &self.dictionary.types, self.now).map_err(|message| at.fault(message))?;
        self.parsed.resources.push(Stated {
            type_url,
            resource,
            place: at.place,
            // E-11, K-17: a time to live runs from the reading; only its end is kept.
            until: ttl.and_then(|ttl| self.now.checked_add(ttl)),
        });
        Ok(())
    }

    fn entry(&mut self, entry: InlineEntry, at: &At) -> Result<(), Fault> {
        let any = entry.resource.unwrap_or_default();
        let type_url = self.dictionary.types.resolve(&any.type_url);
        // An entry's name is valid only within its collection, but a type without a name of its own has no other.
        if type_url.traits().name != NameRule::Wrapper || any.type_url == WRAPPER_URL {
            return self.take(any, "", at);
        }
        let wrapper = Wrapper {
            name: entry.name,
            resource: Some(any),
            ..Wrapper::default()
        };
        let any = Any {
            type_url: WRAPPER_URL.to_owned(),
            value: wrapper.encode_to_vec().into(),
        };
        self.take(any, "", at)
    }

    fn warned<T>(&mut self, parsed: Parsed<T>) -> T {
        self.parsed.warnings.extend(parsed.warnings);
        parsed.value
    }
}

impl At {
    fn of(tree: &Tree, path: String) -> Self {
        Self {
            place: Some(tree.place()),
            path,
        }
    }

    fn fault(&self, message: String) -> Fault {
        Fault {
            place: self.place,
            path: self.path.clone(),
            message,
        }
    }
}

fn unwrapped(any: &Any) -> Option<Any> {
    if any.type_url != WRAPPER_URL {
        return None;
    }
    Wrapper::decode(any.value.clone()).ok()?.resource
}

/// I-01: whether this is a collection of resources. Some types with such a name are resources themselves, and have a short name.
fn is_collection(type_url: &TypeUrl) -> bool {
    type_url.message().ends_with("Collection") && type_url.short().is_none()
}

fn full_name(type_url: &str) -> &str {
    type_url.rsplit_once('/').map_or(type_url, |(_, name)| name)
}

fn empty(place: Option<Place>) -> Fault {
    Fault {
        place,
        path: String::new(),
        message: "is empty; write `resources: []` for no resources".to_owned(),
    }
}

fn plain(message: String) -> Fault {
    Fault {
        place: None,
        path: String::new(),
        message,
    }
}
