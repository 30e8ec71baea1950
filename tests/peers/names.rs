// SPDX-License-Identifier: Apache-2.0
//! Names of new style, as a peer reads them: collections and their members, and the many ways to write a name.
//!
//! Owns a reading of its own, separate from the relay's. Does not know which names exist.

use std::collections::{BTreeMap, BTreeSet};

use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};

#[must_use]
pub fn is_collection(name: &str) -> bool {
    name.starts_with("xdstp://") && name.ends_with("/*")
}

/// Whether a collection has this member.
#[must_use]
pub fn covers(collection: &str, name: &str) -> bool {
    let rest = collection
        .strip_suffix('*')
        .filter(|_| is_collection(collection))
        .and_then(|all| name.strip_prefix(all));
    rest.is_some_and(|rest| !rest.contains(['/', '%', '?', '#']) && rest != "*")
}

/// The name itself, however it is written. F-02, F-03: a text that names another type is its own name.
#[must_use]
pub fn canonical(type_url: &str, text: &str) -> String {
    let message = type_url.trim_start_matches("type.googleapis.com/");
    let of = text.strip_prefix("xdstp://").and_then(|rest| rest.split('/').nth(1));
    if of != Some(message) {
        return text.to_owned();
    }
    let path = text.split('#').next().unwrap_or_default();
    let (path, parameters) = path.split_once('?').unwrap_or((path, ""));
    let mut parameters: Vec<&str> = parameters.split('&').filter(|it| !it.is_empty()).collect();
    parameters.sort_unstable();
    match unescaped(path) {
        Some(name) if parameters.is_empty() => name,
        Some(name) => format!("{name}?{}", parameters.join("&")),
        None => text.to_owned(),
    }
}

fn unescaped(text: &str) -> Option<String> {
    let mut name = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok())?;
        name += before;
        name.push(char::from(byte));
        rest = &after[2..];
    }
    Some(name + rest)
}

/// F-04: for each name of a type the spellings by which it is asked for. A name stays subscribed as long as one of its spellings is.
#[derive(Default)]
pub(crate) struct Spellings(BTreeMap<(String, String), BTreeSet<String>>);

impl Spellings {
    /// Writes every name of a request in the canonical way.
    pub(crate) fn read_delta(&mut self, request: &mut DeltaDiscoveryRequest) {
        let type_url = request.type_url.clone();
        let key = |text: &str| (type_url.clone(), canonical(&type_url, text));
        for text in &mut request.resource_names_subscribe {
            let key = key(text);
            let before = std::mem::replace(text, key.1.clone());
            self.0.entry(key).or_default().insert(before);
        }
        request.resource_names_unsubscribe.retain_mut(|text| {
            let key = key(text);
            let before = std::mem::replace(text, key.1.clone());
            let texts = self.0.entry(key).or_default();
            texts.remove(&before);
            texts.is_empty()
        });
        let held = std::mem::take(&mut request.initial_resource_versions).into_iter();
        request.initial_resource_versions = held.map(|(text, version)| (key(&text).1, version)).collect();
    }
}

/// The same in SotW, where each request lists all names anew.
pub(crate) fn read_sotw(request: &mut DiscoveryRequest) {
    let names = request.resource_names.iter();
    let names: BTreeSet<String> = names.map(|text| canonical(&request.type_url, text)).collect();
    request.resource_names = names.into_iter().collect();
}
