// SPDX-License-Identifier: Apache-2.0
//! One entry of a response: its name, the fields around its body, and its faults.
//!
//! Owns the names and the faults of a single entry, and the resource that it makes. Knows nothing of the other entries of the response.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arcstr::ArcStr;
use bytes::{Bytes, BytesMut};
use prost::Message as _;

use super::wire::{OTHER_BYTES_MAX, is_message, next_field, string_field};
use proto::envoy::config::cluster::v3::{Cluster, cluster::DiscoveryType};
use proto::envoy::service::discovery::v3 as discovery;
use proto::google::protobuf::Any;
use xds::{Name, NameRule, Resource, ResourceParts, Slot, Twins, TypeUrl, WRAPPER_URL, put_field};

/// One entry of a response.
pub(super) struct Entry {
    pub(super) name: Name,
    /// The server's spelling of the name, if that is not the canonical one.
    pub(super) written: Option<Name>,
    /// F-16: whether it says that it is for some clients only.
    pub(super) constrained: bool,
    pub(super) aliases: Vec<Name>,
    /// The entry's own version; `None` in SotW, where it does not count (E-10).
    pub(super) version: Option<ArcStr>,
    pub(super) ttl: Option<Duration>,
    pub(super) passed_on: Vec<u8>,
    pub(super) body: Option<Bytes>,
    /// What another view has under this name.
    pub(super) twin: Option<Arc<Resource>>,
}

/// A faulty entry, with its name if that is certain.
pub(super) struct Fault {
    pub(super) name: Option<Name>,
    pub(super) what: String,
}

const NAME_SHOWN: usize = 128;
/// Many times more aliases than a virtual host has domains.
const ALIASES_MAX: usize = 4096;

/// Returns how a fault names the entry.
pub(super) fn called(name: &str) -> String {
    if name.is_empty() {
        return "the resource without a name".to_owned();
    }
    let shown: String = name.chars().take(NAME_SHOWN).collect();
    format!("resource {shown:?}")
}

impl Entry {
    /// Returns the name in the server's spelling.
    pub(super) fn text(&self) -> &Name {
        self.written.as_ref().unwrap_or(&self.name)
    }

    /// Returns all names that the entry answers to.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        std::iter::once(&self.name).chain(&self.aliases)
    }

    /// Reads an entry of a SotW response, or a resource outside of any response.
    pub(super) fn of_any(any: Any, type_url: &TypeUrl) -> Result<Self, Fault> {
        // E-10: the wrapper is removed; its name takes precedence over the body's name.
        if any.type_url == WRAPPER_URL {
            return Self::of_wrapper(&any.value, type_url, false);
        }
        check_type(&any.type_url, type_url).map_err(Fault::nameless)?;
        let text = name_in(&any.value, type_url).ok_or_else(|| Fault::nameless(no_name(type_url)))?;
        Ok(Self::new(text, Some(any.value.clone()), type_url))
    }

    /// Creates an entry with nothing around its body.
    fn new(text: &str, body: Option<Bytes>, type_url: &TypeUrl) -> Self {
        let name = canonical(text, type_url);
        Self {
            written: name.written(text),
            name,
            constrained: false,
            aliases: Vec::new(),
            version: None,
            ttl: None,
            passed_on: Vec::new(),
            body,
            twin: None,
        }
    }

    /// Reads an entry of a delta response, or the wrapper in an entry of a SotW one.
    pub(super) fn of_wrapper(bytes: &Bytes, type_url: &TypeUrl, own_version: bool) -> Result<Self, Fault> {
        let unreadable = || Fault::nameless("is empty or not readable".to_owned());
        let wrapper = Wrapper::read(bytes).ok_or_else(unreadable)?;
        let full = wrapper.rest.resource_name.unwrap_or_default();
        // the wrapper's name comes first, then the name by the type's rule.
        let around = [wrapper.name, &full.name];
        let name = around.into_iter().find(|name| !name.is_empty());
        let name = name.or_else(|| name_in(wrapper.body?.1, type_url));
        if let Some((url, _)) = wrapper.body {
            check_type(url, type_url).map_err(|what| Fault {
                // F-04: the canonical name, however the server spells it.
                name: name.map(|name| canonical(name, type_url)),
                what,
            })?;
        }
        let lacking = || match wrapper.body {
            Some(_) => Fault::nameless(no_name(type_url)),
            None => unreadable(),
        };
        let body = wrapper.body.map(|(_, body)| bytes.slice_ref(body));
        let bare = Self::new(name.ok_or_else(lacking)?, body, type_url);
        if wrapper.aliases.len() > ALIASES_MAX {
            return Err(Fault {
                name: Some(bare.name),
                what: format!("has more than {ALIASES_MAX} aliases"),
            });
        }
        let aliases = wrapper.aliases.into_iter().map(|alias| canonical(alias, type_url));
        let aliases: BTreeSet<Name> = aliases.filter(|alias| *alias != bare.name).collect();
        let passed_on = discovery::Resource {
            cache_control: wrapper.rest.cache_control,
            metadata: wrapper.rest.metadata,
            ..discovery::Resource::default()
        };
        Ok(Self {
            constrained: !full.dynamic_parameter_constraints.is_empty(),
            aliases: aliases.into_iter().collect(),
            version: own_version.then(|| ArcStr::from(wrapper.version)),
            ttl: wrapper.rest.ttl.map(|ttl| duration(ttl.seconds, ttl.nanos)),
            passed_on: passed_on.encode_to_vec(),
            ..bare
        })
    }
}

impl Fault {
    const fn nameless(what: String) -> Self {
        Self { name: None, what }
    }
}

/// The `Resource` message around a body. The fields that nearly every one has are read in place, the rest by the generated code.
#[derive(Default)]
struct Wrapper<'a> {
    version: &'a str,
    name: &'a str,
    aliases: Vec<&'a str>,
    /// The type URL, and the bytes.
    body: Option<(&'a str, &'a [u8])>,
    rest: discovery::Resource,
}

impl<'a> Wrapper<'a> {
    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let mut wrapper = Self::default();
        let mut rest = BytesMut::new();
        while !bytes.is_empty() {
            let (number, content) = next_field(&mut bytes)?;
            let text = || std::str::from_utf8(content?).ok();
            match number {
                1 => wrapper.version = text()?,
                2 => read_any(content?, wrapper.body.get_or_insert_default())?,
                3 => wrapper.name = text()?,
                4 if wrapper.aliases.len() <= ALIASES_MAX => wrapper.aliases.push(text()?),
                6..=9 if rest.len() + content?.len() > OTHER_BYTES_MAX => return None,
                6..=9 => put_field(&mut rest, number, content?),
                _ => {}
            }
        }
        if !rest.is_empty() {
            wrapper.rest = discovery::Resource::decode(rest).ok()?;
        }
        Some(wrapper)
    }
}

fn read_any<'a>(mut bytes: &'a [u8], (url, value): &mut (&'a str, &'a [u8])) -> Option<()> {
    while !bytes.is_empty() {
        match next_field(&mut bytes)? {
            (1, content) => *url = std::str::from_utf8(content?).ok()?,
            (2, content) => *value = content?,
            (_, _) => {}
        }
    }
    Some(())
}

/// Returns the name that a server means (F-04). F-02, F-03: any text is a name.
pub(super) fn canonical(text: &str, type_url: &TypeUrl) -> Name {
    if text.is_empty() {
        return Name::from("");
    }
    Name::read(text, type_url)
}

/// an entry must have the type of its response.
fn check_type(url: &str, type_url: &TypeUrl) -> Result<(), String> {
    if type_url.is_named(url) {
        return Ok(());
    }
    if url.is_empty() || url.ends_with('/') {
        return Err("has no type or is not readable".to_owned());
    }
    let shown: String = TypeUrl::new(url).full_name().chars().take(NAME_SHOWN).collect();
    Err(format!("has the type {shown:?}, not {:?}", type_url.full_name()))
}

/// Returns the name that a body has. A-09: that of a resource without a name is empty, if its type has only one resource. A body that is no
/// message is no resource.
fn name_in<'a>(body: &'a [u8], type_url: &TypeUrl) -> Option<&'a str> {
    let traits = type_url.traits();
    let name = match traits.name {
        NameRule::Field(number) => string_field(body, number),
        NameRule::Wrapper => None,
    };
    // Of a type without a name rule, this field may be a message: read as text, that has control characters.
    let name = name.filter(|name| !traits.nameless || !name.contains(char::is_control));
    name.or_else(|| (traits.nameless && is_message(body)).then_some(""))
}

fn no_name(type_url: &TypeUrl) -> String {
    match type_url.traits().name {
        NameRule::Field(number) => format!("has no name, neither in a Resource wrapper nor in string field {number}"),
        NameRule::Wrapper => "has no name: a resource of this type needs a Resource wrapper with its name".to_owned(),
    }
}

/// A negative duration counts as zero, one that is longer than the message allows (10,000 years) as the longest.
fn duration(seconds: i64, nanos: i32) -> Duration {
    const LONGEST: Duration = Duration::from_secs(315_576_000_000);
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let nanos = u64::try_from(nanos).unwrap_or(0);
    LONGEST.min(Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanos)))
}

/// Copies the body out of the message, so that a small resource does not keep a large message in memory.
pub(super) fn build(type_url: &TypeUrl, entry: &Entry, body: &[u8], seed: u64, now: Instant) -> Arc<Resource> {
    let parts = ResourceParts {
        type_url,
        name: entry.name.clone(),
        aliases: entry.aliases.clone(),
        passed_on: &entry.passed_on,
        body,
        endpoints: type_url
            .kind()
            .names_endpoints()
            .then(|| endpoints(&entry.name, body))
            .flatten(),
        received: now,
    };
    let new = Resource::new(parts, seed);
    Arc::new(match &entry.twin {
        Some(twin) => new.sharing(twin),
        None => new,
    })
}

const ENDPOINTS: &str = "envoy.config.endpoint.v3.ClusterLoadAssignment";

/// K-13: returns the name under which a cluster takes its endpoints from EDS: the service name, else its own. A-08: a body that
/// is not readable is not a fault here.
fn endpoints(name: &Name, body: &[u8]) -> Option<Name> {
    let cluster: Cluster = prost::Message::decode(body).ok()?;
    if cluster.r#type() != DiscoveryType::Eds {
        return None;
    }
    let service = cluster.eds_cluster_config.map(|config| config.service_name);
    let service = service.filter(|name| !name.is_empty());
    if service.is_none() && !name.is_new_style() && !name.is_empty() {
        return Some(name.clone());
    }
    // F-04: the client that requests the endpoints may spell the name in another way.
    let text = service.as_deref().unwrap_or(name.as_str());
    Some(Name::read(text, &TypeUrl::new(ENDPOINTS)))
}

/// Finds what other views have under the names of the entries. Decides nothing by that: content is compared as ever.
pub(super) fn find_twins(entries: &mut [Entry], type_url: &TypeUrl, twins: &Twins) {
    let cuts = twins.cuts();
    let slots: Vec<&Slot> = cuts.iter().filter_map(|cut| cut.slot(type_url)).collect();
    for entry in entries.iter_mut().filter(|_| !slots.is_empty()) {
        let mut found = slots.iter().filter_map(|slot| slot.resource(&entry.name));
        entry.twin = found.next().cloned();
    }
}

/// Many control planes give all resources of a response one version: it is in memory once.
pub(super) fn share_versions(entries: &mut [Entry]) {
    let mut last = ArcStr::new();
    for version in entries.iter_mut().filter_map(|entry| entry.version.as_mut()) {
        if *version == last {
            *version = last.clone();
        } else {
            last = version.clone();
        }
    }
}
