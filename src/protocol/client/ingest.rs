//! From a response of either dialect to one form, and what is wrong with it.
//!
//! Owns the names and the faults. Refuses to know what is held and wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;

use super::wire::string_field;
use crate::proto::envoy::service::discovery::v3::{
    self as discovery, DeltaDiscoveryResponse, DiscoveryResponse, Resource,
};
use crate::proto::google::protobuf::Any;
use crate::xds::resource::WRAPPER_URL;
use crate::xds::xdstp::{self, SCHEME};
use crate::xds::{Constraints, NameRule, ResourceError, TypeUrl};

/// A response in the one form that both dialects have in common.
pub(super) struct Message {
    pub(super) nonce: String,
    /// What the server calls the version of the whole.
    pub(super) version: Arc<str>,
    /// The sound entries, no name twice.
    pub(super) entries: Vec<Entry>,
    /// Names that the server says are gone.
    pub(super) removed: Vec<String>,
    /// Names of entries that are not sound: nothing changes for them.
    pub(super) spoiled: BTreeSet<String>,
    /// What the server says is wrong with names that are not among the entries (E-09).
    pub(super) errors: BTreeMap<String, ResourceError>,
    pub(super) faults: Faults,
    /// An entry has no name or one that is another's too, so that what is not mentioned may be meant by it.
    pub(super) uncertain: bool,
    /// Whether more messages of the same answer follow, where the server says so.
    pub(super) more: Option<bool>,
}

/// One entry of a response.
pub(super) struct Entry {
    pub(super) name: String,
    /// What tells it from other entries: its name, and for whom it is meant.
    pub(super) key: String,
    pub(super) constraints: Option<Constraints>,
    pub(super) aliases: Vec<String>,
    /// The entry's own version; in SotW it has none that counts (E-10).
    pub(super) version: Option<String>,
    pub(super) ttl: Option<Duration>,
    pub(super) passed_on: Vec<u8>,
    pub(super) body: Option<Bytes>,
}

/// What is wrong with a response, in words for a NACK: bounded, however much is wrong.
#[derive(Default)]
pub(super) struct Faults {
    words: Vec<String>,
    more: usize,
}

const FAULTS_NAMED: usize = 8;
const NAME_SHOWN: usize = 128;

impl Faults {
    pub(super) fn add(&mut self, entry: &str, fault: &str) {
        if self.words.len() < FAULTS_NAMED {
            self.words.push(format!("{entry} {fault}"));
        } else {
            self.more += 1;
        }
    }

    pub(super) fn count(&self) -> usize {
        self.words.len() + self.more
    }

    pub(super) fn none(&self) -> bool {
        self.words.is_empty()
    }

    /// The text of the NACK, if one is due. E-02: short, but naming resource and fault.
    pub(super) fn text(&self) -> Option<String> {
        if self.none() {
            return None;
        }
        let mut text = self.words.join("; ");
        if self.more > 0 {
            let _ = write!(text, "; and {} more", self.more);
        }
        Some(text)
    }
}

/// What stands between a name and what tells its variants apart.
pub(super) const VARIANT: char = '\0';

/// How an entry is called in a fault.
pub(super) fn called(name: &str) -> String {
    let name = name.split(VARIANT).next().unwrap_or_default();
    let shown: String = name.chars().take(NAME_SHOWN).collect();
    format!("resource {shown:?}")
}

impl Message {
    /// Reads a SotW response.
    pub(super) fn sotw(response: DiscoveryResponse, type_url: &TypeUrl) -> Self {
        let mut message = Self::new(response.nonce, response.version_info);
        let read = |any: Any| from_any(any, type_url);
        message.take(response.resources.into_iter().map(read));
        message.complain(response.resource_errors, type_url);
        message
    }

    /// Reads a delta response.
    pub(super) fn delta(response: DeltaDiscoveryResponse, type_url: &TypeUrl) -> Self {
        let mut message = Self::new(response.nonce, response.system_version_info);
        // The mark of another relay counts only with the name of one.
        let relay = response
            .control_plane
            .is_some_and(|plane| plane.identifier.starts_with(RELAY));
        message.more = relay.then(|| message.nonce.ends_with(MORE));
        let read = |resource: Resource| from_resource(resource, type_url, true);
        message.take(response.resources.into_iter().map(read));
        // F-04: however the server writes it. What names nothing cannot be gone.
        let plain = response.removed_resources.into_iter();
        let plain = plain.filter_map(|name| canonical(name, type_url).ok());
        let constrained = response.removed_resource_names.into_iter().filter_map(|full| {
            let constraints = full.dynamic_parameter_constraints.and_then(Constraints::new);
            Some(key(&canonical(full.name, type_url).ok()?, constraints.as_ref()))
        });
        message.remove(plain.chain(constrained).collect());
        message.complain(response.resource_errors, type_url);
        message
    }

    fn new(nonce: String, version: String) -> Self {
        Self {
            nonce,
            version: Arc::from(version),
            entries: Vec::new(),
            removed: Vec::new(),
            spoiled: BTreeSet::new(),
            errors: BTreeMap::new(),
            faults: Faults::default(),
            uncertain: false,
            more: None,
        }
    }

    fn take(&mut self, entries: impl Iterator<Item = Result<Entry, Fault>>) {
        let mut seen: BTreeMap<String, bool> = BTreeMap::new();
        for (at, read) in entries.enumerate() {
            match read {
                Ok(entry) => {
                    seen.entry(entry.key.clone())
                        .and_modify(|twice| *twice = true)
                        .or_default();
                    self.entries.push(entry);
                }
                Err(Fault { name: Some(name), what }) => {
                    self.faults.add(&called(&name), &what);
                    seen.entry(name.clone()).and_modify(|twice| *twice = true).or_default();
                    self.spoiled.insert(name);
                }
                Err(Fault { name: None, what }) => {
                    self.uncertain = true;
                    self.faults.add(&format!("entry {at} of resources"), &what);
                }
            }
        }
        // E-12: a name that is there twice refuses the response, and neither copy counts.
        for (name, _) in seen.into_iter().filter(|(_, twice)| *twice) {
            self.uncertain = true;
            self.faults.add(&called(&name), "is in the response more than once");
            self.spoiled.insert(name);
        }
        let spoiled = &self.spoiled;
        self.entries.retain(|entry| !spoiled.contains(&entry.key));
    }

    /// B-31: an error has the name of a resource that is not in the same response, and is one.
    fn complain(&mut self, errors: Vec<discovery::ResourceError>, type_url: &TypeUrl) {
        for (at, error) in errors.into_iter().enumerate() {
            let name = error.resource_name.map(|resource| resource.name).unwrap_or_default();
            let status = error.error_detail.unwrap_or_default();
            if name.is_empty() || status.code == 0 {
                let fault = "has no name, or is no error";
                self.faults.add(&format!("entry {at} of resource_errors"), fault);
            } else if let Ok(name) = canonical(name, type_url) {
                self.errors
                    .insert(name, ResourceError::new(status.code, &status.message));
            }
        }
        let errors = &mut self.errors;
        self.entries.iter().for_each(|entry| drop(errors.remove(&entry.name)));
    }

    fn remove(&mut self, removed: Vec<String>) {
        if removed.is_empty() {
            return;
        }
        let present: BTreeSet<&str> = self.entries.iter().map(|entry| entry.key.as_str()).collect();
        let both: BTreeSet<String> = removed
            .iter()
            .filter(|name| present.contains(name.as_str()))
            .cloned()
            .collect();
        for name in &both {
            self.uncertain = true;
            self.faults
                .add(&called(name), "is both in resources and in removed_resources");
        }
        self.entries.retain(|entry| !both.contains(&entry.key));
        self.spoiled.extend(both);
        let spoiled = &self.spoiled;
        self.removed = removed.into_iter().filter(|name| !spoiled.contains(name)).collect();
    }
}

/// How another relay of this kind begins its identifier, and ends a nonce when more messages of an answer follow.
const RELAY: &str = "distributary/";
const MORE: char = '+';

/// An entry that is not sound, with its name where that is beyond doubt.
pub(super) struct Fault {
    name: Option<String>,
    pub(super) what: String,
}

pub(super) fn from_any(any: Any, type_url: &TypeUrl) -> Result<Entry, Fault> {
    let nameless = |what: String| Fault { name: None, what };
    // E-10: the wrapper is taken off; its name has precedence over the body's.
    if any.type_url == WRAPPER_URL {
        let wrapped = Resource::decode(any.value).map_err(|error| nameless(format!("is not readable: {error}")))?;
        return from_resource(wrapped, type_url, false);
    }
    check_type(&any, type_url).map_err(nameless)?;
    let Some(name) = name_in(&any.value, type_url) else {
        return Err(nameless(no_name(type_url)));
    };
    let name = canonical(name, type_url).map_err(nameless)?;
    Ok(Entry {
        key: name.clone(),
        name,
        constraints: None,
        aliases: Vec::new(),
        version: None,
        ttl: None,
        passed_on: Vec::new(),
        body: Some(any.value),
    })
}

fn from_resource(resource: Resource, type_url: &TypeUrl, own_version: bool) -> Result<Entry, Fault> {
    let (full, rule) = resource.resource_name.map_or((None, None), |full| {
        (Some(full.name), full.dynamic_parameter_constraints)
    });
    let constraints = rule.and_then(Constraints::new);
    let name = Some(resource.name)
        .into_iter()
        .chain(full)
        .find(|name| !name.is_empty());
    // the wrapper's name first, then the type's rule.
    let body = resource.resource.as_ref();
    let name = name.or_else(|| body.and_then(|any| name_in(&any.value, type_url)));
    if let Some(any) = body {
        check_type(any, type_url).map_err(|what| Fault {
            // F-04: however the server writes it.
            name: name.clone().and_then(|name| canonical(name, type_url).ok()),
            what,
        })?;
    }
    let Some(name) = name else {
        let empty = body.is_none().then(|| "is empty or not readable".to_owned());
        return Err(Fault {
            name: None,
            what: empty.unwrap_or_else(|| no_name(type_url)),
        });
    };
    let rest = Resource {
        cache_control: resource.cache_control,
        metadata: resource.metadata,
        ..Resource::default()
    };
    let name = canonical(name, type_url).map_err(|what| Fault { name: None, what })?;
    let aliases = resource.aliases.into_iter();
    let mut aliases: Vec<String> = aliases.filter_map(|alias| canonical(alias, type_url).ok()).collect();
    aliases.sort_unstable();
    aliases.dedup();
    aliases.retain(|alias| *alias != name && constraints.is_none());
    Ok(Entry {
        key: key(&name, constraints.as_ref()),
        name,
        constraints,
        aliases,
        version: own_version.then_some(resource.version),
        ttl: resource.ttl.map(|ttl| duration(ttl.seconds, ttl.nanos)),
        passed_on: rest.encode_to_vec(),
        body: resource.resource.map(|any| any.value),
    })
}

/// What tells variants of one name apart; no name has a zero in it.
pub(super) fn key(name: &str, constraints: Option<&Constraints>) -> String {
    constraints.map_or_else(
        || name.to_owned(),
        |constraints| format!("{name}{VARIANT}{}", constraints.key()),
    )
}

/// The one text of a name (F-04), or what is wrong with it: it may be meant for any name.
fn canonical(name: String, type_url: &TypeUrl) -> Result<String, String> {
    if !name.starts_with(SCHEME) {
        return Ok(name);
    }
    let shown = |flaw| {
        format!(
            "has the name {:?}, which {flaw}",
            name.chars().take(NAME_SHOWN).collect::<String>()
        )
    };
    xdstp::canonical(&name, type_url).map_err(shown)
}

/// the type of an entry is that of the response. A-04: what counts is the text after the last slash.
fn check_type(any: &Any, type_url: &TypeUrl) -> Result<(), String> {
    let full_name = any.type_url.rsplit('/').next().unwrap_or_default();
    if full_name == type_url.full_name() {
        return Ok(());
    }
    if full_name.is_empty() {
        return Err("has no type or is not readable".to_owned());
    }
    let shown: String = full_name.chars().take(NAME_SHOWN).collect();
    Err(format!("has the type {shown:?}, not {:?}", type_url.full_name()))
}

fn name_in(body: &[u8], type_url: &TypeUrl) -> Option<String> {
    match type_url.traits().name {
        NameRule::Field(number) => string_field(body, number),
        NameRule::Wrapper => None,
    }
}

fn no_name(type_url: &TypeUrl) -> String {
    match type_url.traits().name {
        NameRule::Field(number) => format!("has no name: none around it, and no readable string field {number} in it"),
        NameRule::Wrapper => "has no name: this type has it in the Resource message around it".to_owned(),
    }
}

/// Times below zero count as zero, times without end as very long.
fn duration(seconds: i64, nanos: i32) -> Duration {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    Duration::from_secs(seconds).saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)))
}
