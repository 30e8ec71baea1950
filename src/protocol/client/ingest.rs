// SPDX-License-Identifier: Apache-2.0
//! Reads a response of either dialect into one form, with its faults.
//!
//! Owns the faults. Knows nothing of the content that is held and wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use arcstr::ArcStr;
use bytes::Bytes;
use prost::Message as _;

use super::acks::Ack;
use super::entry::{Entry, Fault, called, canonical, share_versions};
use super::refusals::Refusal;
use super::told::Received;
use super::ways::Spellings;
use super::wire::{DeltaResponse, FIELD_BYTES_MIN, OTHER_BYTES_MAX, SotwResponse};
use proto::envoy::service::discovery::v3 as discovery;
use proto::google::protobuf::Any;
use xds::{Name, ResourceError, TypeUrl};

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
    /// Names that the server says are gone.
    pub(super) removed: Vec<String>,
    /// The server's spellings of removed new-style names.
    pub(super) removed_as: BTreeMap<String, BTreeSet<String>>,
    /// Names of faulty entries: nothing changes for them.
    pub(super) spoiled: BTreeSet<String>,
    /// The server's errors for names that are not among the entries (E-09).
    pub(super) errors: BTreeMap<String, ResourceError>,
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
    pub(super) fn add(&mut self, entry: &str, fault: &str) {
        self.add_at(format_args!("{entry}"), fault);
    }

    /// There may be very many faults, of which few are named.
    fn add_at(&mut self, entry: fmt::Arguments<'_>, fault: &str) {
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
    /// Reads a SotW response.
    pub(super) fn sotw(response: SotwResponse, type_url: &TypeUrl, ways: &Spellings) -> Self {
        let SotwResponse { head, entries, full } = response;
        let identifier = head.control_plane.map(|plane| plane.identifier);
        let mut message = Self::new(head.nonce, identifier, head.version_info, full);
        let read = |any: Any| Entry::of_any(any, type_url);
        if entries.is_empty() {
            message.take(head.resources.into_iter().map(read), ways);
        } else {
            // E-13: an entry that is not readable is read as an empty one, so that only this entry is rejected.
            let decoded = entries.into_iter().map(|entry| Any::decode(entry).unwrap_or_default());
            message.take(decoded.map(read), ways);
        }
        message.complain(head.resource_errors, type_url);
        message
    }

    /// Reads a delta response.
    pub(super) fn delta(response: DeltaResponse, type_url: &TypeUrl, ways: &Spellings) -> Self {
        let DeltaResponse { head, entries, full } = response;
        let identifier = head.control_plane.map(|plane| plane.identifier);
        let mut message = Self::new(head.nonce, identifier, head.system_version_info, full);
        // The mark of another relay counts only if the control plane's identifier is that of a relay.
        message.more = message.is_relayed().then(|| message.nonce.ends_with(MORE));
        let read = |entry: Bytes| Entry::of_wrapper(&entry, type_url, true);
        message.take(entries.into_iter().map(read), ways);
        share_versions(&mut message.entries);
        // F-04: canonical names, however the server spells them. A name with a fault removes nothing.
        let (plain, constrained): (Vec<_>, Vec<_>) = head
            .removed_resource_names
            .into_iter()
            .partition(|full| full.dynamic_parameter_constraints.is_empty());
        message.ignored += constrained.len();
        let mut texts = head.removed_resources;
        texts.extend(plain.into_iter().map(|full| full.name));
        let removed = message.removed_names(&texts, type_url);
        message.remove(removed, ways);
        message.complain(head.resource_errors, type_url);
        message
    }

    /// Creates a message without entries. If its end was left out because it is too large, that may be meant for any name.
    fn new(nonce: String, identifier: Option<String>, version: String, full: bool) -> Self {
        let mut faults = Faults::default();
        if full {
            faults.add("the response", &too_large());
        }
        Self {
            nonce,
            identifier: identifier.unwrap_or_default(),
            version: ArcStr::from(version),
            faults,
            uncertain: full,
            ..Self::default()
        }
    }

    /// F-04: returns the canonical names that the server says are removed, however it spells them.
    fn removed_names(&mut self, texts: &[String], type_url: &TypeUrl) -> Vec<String> {
        let mut names = Vec::with_capacity(texts.len());
        let mut said: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for text in texts {
            let name = canonical(text, type_url);
            if !name.is_new_style() {
                names.push(name.to_string());
                continue;
            }
            let text = name.written(text).unwrap_or_else(|| name.clone());
            said.entry(name.to_string()).or_default().insert(text.to_string());
        }
        names.extend(said.keys().cloned());
        self.removed_as = said;
        names
    }

    /// F-07: for a name that was requested in several spellings and answered in several, only one answer counts.
    fn choose(&mut self, ways: &Spellings) {
        if ways.is_empty() {
            return;
        }
        let mut all: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
        for entry in &self.entries {
            all.entry(&entry.name).or_default().insert(entry.text());
        }
        let several = all.into_iter().filter(|(_, texts)| texts.len() > 1);
        let chosen = several.filter_map(|(name, texts)| {
            let text = ways.choose(name.as_str(), &texts)?;
            Some((name.clone(), text.clone()))
        });
        let chosen: BTreeMap<Name, Name> = chosen.collect();
        self.entries
            .retain(|entry| chosen.get(&entry.name).is_none_or(|text| text == entry.text()));
    }

    /// F-16: of several entries of a name of which some are for some clients only, the one for all counts, else the first.
    fn drop_variants(&mut self) {
        let constrained = self.entries.iter().filter(|entry| entry.constrained);
        let names: BTreeSet<Name> = constrained.map(|entry| entry.name.clone()).collect();
        if names.is_empty() {
            return;
        }
        let for_all = self
            .entries
            .iter()
            .filter(|entry| !entry.constrained)
            .map(|entry| &entry.name);
        let mut found: BTreeSet<Name> = for_all.filter(|name| names.contains(*name)).cloned().collect();
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
                    self.faults.add(&called(&name), &what);
                    faulty.push(name);
                }
                Err(Fault { name: None, what }) => {
                    self.uncertain = true;
                    self.faults.add_at(format_args!("entry {at} of resources"), &what);
                }
            }
        }
        self.drop_variants();
        self.choose(ways);
        let faulty_names = faulty.iter().map(String::as_str);
        let mut names: Vec<&str> = self
            .entries
            .iter()
            .map(|entry| entry.name.as_str())
            .chain(faulty_names)
            .collect();
        names.sort_unstable();
        // E-12: a name that is there twice makes the relay reject the response, and neither copy counts.
        let again = names.windows(2).filter(|pair| pair.first() == pair.last());
        let twice: BTreeSet<String> = again.filter_map(|pair| Some((*pair.first()?).to_owned())).collect();
        for name in &twice {
            self.uncertain = true;
            self.faults.add(&called(name), "is in the response more than once");
        }
        self.spoiled.extend(faulty);
        self.spoiled.extend(twice);
        self.drop_spoiled();
    }

    fn drop_spoiled(&mut self) {
        let spoiled = &self.spoiled;
        if !spoiled.is_empty() {
            self.entries.retain(|entry| !spoiled.contains(entry.name.as_str()));
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
                self.faults.add_at(format_args!("entry {at} of resource_errors"), fault);
            } else {
                let name = canonical(&name, type_url);
                self.errors
                    .insert(name.to_string(), ResourceError::new(status.code, &status.message));
            }
        }
        let entries = if self.errors.is_empty() { &[] } else { &*self.entries };
        for entry in entries {
            self.errors.remove(entry.name.as_str());
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
        }
    }

    /// Whether another relay has sent it.
    pub(super) fn is_relayed(&self) -> bool {
        self.identifier.starts_with(RELAY)
    }

    /// F-07: whether the server says that nothing exists under this spelling of a new-style name.
    pub(super) fn removes(&self, name: &str, text: &Name) -> bool {
        let texts = self.removed_as.get(name);
        texts.is_some_and(|texts| texts.contains(text.as_str()))
    }

    fn remove(&mut self, removed: Vec<String>, ways: &Spellings) {
        if removed.is_empty() {
            return;
        }
        let present: BTreeMap<&str, &Name> = self
            .entries
            .iter()
            .map(|entry| (entry.name.as_str(), entry.text()))
            .collect();
        // F-07: a name may be removed in one spelling and present in another.
        let same = |name: &&String| {
            let text = present.get(name.as_str());
            text.is_some_and(|text| !ways.contains(name) || self.removes(name, text))
        };
        let both: BTreeSet<String> = removed.iter().filter(same).cloned().collect();
        for name in &both {
            self.uncertain = true;
            self.faults
                .add(&called(name), "is both in resources and in removed_resources");
        }
        self.spoiled.extend(both);
        self.drop_spoiled();
        let spoiled = &self.spoiled;
        self.removed = removed.into_iter().filter(|name| !spoiled.contains(name)).collect();
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
