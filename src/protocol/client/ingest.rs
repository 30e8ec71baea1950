// SPDX-License-Identifier: Apache-2.0
//! Reads a response of either dialect into one form, with its faults.
//!
//! Owns the faults. Knows nothing of the content that is held and wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use arcstr::ArcStr;
use bytes::Bytes;
use prost::Message as _;

use super::acks::Ack;
use super::entry::{Entry, Fault, called, canonical, share_versions};
use super::refusals::Refusal;
use super::told::Received;
use super::ways::Spellings;
use super::wire::{Arrival, FIELD_BYTES_MIN, OTHER_BYTES_MAX};
use proto::envoy::service::discovery::v3 as discovery;
use proto::google::protobuf::Any;
use xds::{Dialect, Name, ResourceError, TypeUrl};

/// A response in the form that both dialects share.
#[derive(Default)]
pub(super) struct Message {
    pub(super) nonce: String,
    /// What the server calls itself.
    pub(super) identifier: String,
    /// The server's version of the whole response.
    pub(super) version: ArcStr,
    /// The sound entries; no name is there twice.
    pub(super) entries: Vec<Entry>,
    /// F-04: the canonical names that the server says are gone, and its spellings of those that are new-style.
    pub(super) removed: BTreeMap<Name, BTreeSet<Name>>,
    /// Names of faulty entries: nothing changes for them.
    pub(super) spoiled: BTreeSet<Name>,
    /// The server's errors for names that are not among the entries (E-09).
    pub(super) errors: BTreeMap<Name, ResourceError>,
    pub(super) faults: Faults,
    /// An entry has no name, or a name that another entry has too. So a name that is not mentioned may be meant by it.
    pub(super) uncertain: bool,
    /// Whether more messages of the same answer follow, if the server says so.
    pub(super) more: Option<bool>,
    /// F-16: how many entries and removals are ignored because they are for some clients only.
    pub(super) ignored: usize,
}

/// The faults of a response, as text for a NACK; bounded, however many there are.
#[derive(Default)]
pub(super) struct Faults {
    words: Vec<String>,
    more: usize,
}

const FAULTS_NAMED: usize = 8;

impl Faults {
    /// There may be very many faults, of which few are named.
    pub(super) fn add(&mut self, entry: impl fmt::Display, fault: &str) {
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

    /// Returns the NACK's text, if a NACK is due. E-02: short, but with resource and fault.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        if self.none() {
            return None;
        }
        let mut text = self.words.join("; ");
        if self.more > 0 {
            let _ = write!(text, "; and {} more", self.more);
        }
        Some(Refusal::new(text, self.words.iter().map(String::as_str)))
    }
}

impl Message {
    /// Reads a response.
    pub(super) fn read(arrival: Arrival, dialect: Dialect, type_url: &TypeUrl, ways: &Spellings) -> Self {
        let mut message = Self {
            identifier: arrival.identifier,
            nonce: arrival.nonce,
            version: ArcStr::from(arrival.version),
            ignored: arrival.ignored,
            // What was left out may be meant for any name.
            uncertain: arrival.full,
            ..Self::default()
        };
        if arrival.full {
            message.faults.add("the response", &too_large());
        }
        // The mark of another relay counts only if the control plane's identifier is that of a relay.
        let marked = dialect == Dialect::Delta && message.is_relayed();
        message.more = marked.then(|| message.nonce.ends_with(MORE));
        let read = |entry: Bytes| match dialect {
            // E-13: an entry that is not readable is read as an empty one, so that only this entry is rejected.
            Dialect::Sotw => Entry::of_any(Any::decode(entry).unwrap_or_default(), type_url),
            Dialect::Delta => Entry::of_wrapper(&entry, type_url, true),
        };
        message.take(arrival.entries.into_iter().map(read), ways);
        share_versions(&mut message.entries);
        message.remove(&arrival.removed, type_url, ways);
        message.complain(arrival.errors, type_url);
        message
    }

    /// F-07: for a name that was requested in several spellings and answered in several, only one answer counts.
    fn choose(&mut self, ways: &Spellings) {
        if ways.is_empty() {
            return;
        }
        let mut all: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| ways.contains(entry.name.as_str())) {
            all.entry(&entry.name).or_default().insert(entry.text());
        }
        let chosen = all.into_iter().filter_map(|(name, texts)| {
            let text = ways.choose(name.as_str(), &texts)?;
            Some((name.clone(), text.clone()))
        });
        let chosen: BTreeMap<Name, Name> = chosen.collect();
        self.entries
            .retain(|entry| chosen.get(&entry.name).is_none_or(|text| text == entry.text()));
    }

    /// F-16: of several entries of a name of which some are for some clients only, the one for all counts, else the first.
    fn drop_variants(&mut self) {
        if !self.entries.iter().any(|entry| entry.constrained) {
            return;
        }
        let for_all = self.entries.iter().filter(|entry| !entry.constrained);
        let mut found: BTreeSet<Name> = for_all.map(|entry| entry.name.clone()).collect();
        let before = self.entries.len();
        self.entries
            .retain(|entry| !entry.constrained || found.insert(entry.name.clone()));
        self.ignored += before - self.entries.len();
    }

    fn take(&mut self, entries: impl ExactSizeIterator<Item = Result<Entry, Fault>>, ways: &Spellings) {
        self.entries.reserve_exact(entries.len());
        let mut faulty = Vec::new();
        for (at, read) in entries.enumerate() {
            match read {
                Ok(entry) => self.entries.push(entry),
                Err(Fault { name: Some(name), what }) => {
                    self.faults.add(called(name.as_str()), &what);
                    faulty.push(name);
                }
                Err(Fault { name: None, what }) => {
                    self.uncertain = true;
                    self.faults.add(format_args!("entry {at} of resources"), &what);
                }
            }
        }
        self.drop_variants();
        self.choose(ways);
        let mut names: Vec<&Name> = self.entries.iter().map(|entry| &entry.name).chain(&faulty).collect();
        names.sort_unstable();
        // E-12: a name that is there twice makes the relay reject the response, and neither copy counts.
        let again = names.windows(2).filter(|pair| pair.first() == pair.last());
        let twice: BTreeSet<Name> = again.filter_map(|pair| pair.first().copied().cloned()).collect();
        self.spoiled.extend(faulty);
        self.spoil(twice, "is in the response more than once");
    }

    /// The response contradicts itself about these names: a name that it does not mention may be meant.
    fn spoil(&mut self, names: BTreeSet<Name>, fault: &str) {
        for name in &names {
            self.uncertain = true;
            self.faults.add(called(name.as_str()), fault);
        }
        self.spoiled.extend(names);
        let spoiled = &self.spoiled;
        if !spoiled.is_empty() {
            self.entries.retain(|entry| !spoiled.contains(&entry.name));
        }
    }

    /// B-31: an entry of `resource_errors` must have a name and an error code. It counts only if no resource in the response has
    /// that name.
    fn complain(&mut self, errors: Vec<discovery::ResourceError>, type_url: &TypeUrl) {
        for (at, error) in errors.into_iter().enumerate() {
            let name = error.resource_name.map(|resource| resource.name).unwrap_or_default();
            let status = error.error_detail.unwrap_or_default();
            let nameless = name.is_empty() && !type_url.traits().nameless;
            if nameless || status.code == 0 {
                let fault = "has no name, or no error code";
                self.faults.add(format_args!("entry {at} of resource_errors"), fault);
            } else {
                let error = ResourceError::new(status.code, &status.message);
                self.errors.insert(canonical(&name, type_url), error);
            }
        }
        let entries = if self.errors.is_empty() { &[] } else { &*self.entries };
        for entry in entries {
            self.errors.remove(&entry.name);
        }
    }

    /// Returns the content of the response in numbers.
    pub(super) fn received(&self, type_url: &TypeUrl, valid: usize) -> Received {
        Received {
            type_url: type_url.clone(),
            valid,
            invalid: self.faults.count(),
            ignored: self.ignored,
        }
    }

    /// Returns the answer to the response, of which everything that counts has been used.
    pub(super) fn answer(self) -> Ack {
        Ack {
            nonce: self.nonce,
            refusal: self.faults.refusal(),
            left_out: !self.removed.is_empty(),
            at: None,
        }
    }

    /// Whether another relay has sent it.
    pub(super) fn is_relayed(&self) -> bool {
        self.identifier.starts_with(RELAY)
    }

    /// F-07: whether the server says that nothing exists under this spelling of a new-style name.
    pub(super) fn removes(&self, name: &Name, text: &Name) -> bool {
        self.removed.get(name).is_some_and(|texts| texts.contains(text))
    }

    /// Takes the removed names, however the server spells them. A name with a fault removes nothing.
    fn remove(&mut self, texts: &[String], type_url: &TypeUrl, ways: &Spellings) {
        for text in texts {
            let name = canonical(text, type_url);
            let own = name
                .is_new_style()
                .then(|| name.written(text).unwrap_or_else(|| name.clone()));
            self.removed.entry(name).or_default().extend(own);
        }
        if self.removed.is_empty() {
            return;
        }
        // F-07: a name may be removed in one spelling and present in another.
        let both = self.entries.iter().filter(|entry| {
            let Some(texts) = self.removed.get(&entry.name) else {
                return false;
            };
            !ways.contains(entry.name.as_str()) || texts.contains(entry.text())
        });
        let both = both.map(|entry| entry.name.clone()).collect();
        self.spoil(both, "is both in resources and in removed_resources");
        let spoiled = &self.spoiled;
        self.removed.retain(|name, _| !spoiled.contains(name));
    }
}

/// Returns the fault of a response whose end was left out.
fn too_large() -> String {
    format!(
        "is larger than `limits.upstream_message`, where each field counts as at least {FIELD_BYTES_MIN} bytes, or a field besides \
         its resources is larger than {OTHER_BYTES_MAX} bytes; its end is rejected: send fewer resources in one response"
    )
}

/// How another relay begins its identifier, and how it ends a nonce when more messages of the same answer follow.
const RELAY: &str = "distributary/";
const MORE: char = '+';
