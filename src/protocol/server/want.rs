// SPDX-License-Identifier: Apache-2.0
//! What a client asks for beside single names: the wildcard, collections, its own spellings of names, and names that cannot be kept.
//!
//! Owns what the requests of the stream have said so far. The single names themselves are rows of the ledger. Knows no content.

use std::collections::{BTreeMap, BTreeSet};

use xds::{Name, TypeUrl};

/// What one stream asks for of one type.
#[derive(Debug, Default)]
pub(super) struct TypeWant {
    started: bool,
    named: bool,
    wildcard: bool,
    hello: bool,
    /// Most clients have none, and then nothing is allocated.
    rare: Option<Box<Rare>>,
}

#[derive(Debug, Default)]
struct Rare {
    collections: BTreeSet<Name>,
    /// For each text that is not canonical: the name that it means.
    meant: BTreeMap<Name, Name>,
    /// The same, by the name.
    texts: BTreeSet<(Name, Name)>,
    /// Names over the limit that must be answered (B-32).
    long: Vec<Name>,
    /// The version in the first request of a full state, until the client has answered a response.
    version: Option<Box<str>>,
}

impl TypeWant {
    /// Notes that there was a request. Returns whether it is the first.
    pub(super) const fn start(&mut self) -> bool {
        !std::mem::replace(&mut self.started, true)
    }

    /// Whether a request has named anything: from then on an empty list means nothing, not everything (B-11).
    pub(super) const fn is_named(&self) -> bool {
        self.named
    }

    pub(super) const fn name(&mut self) {
        self.named = true;
    }

    pub(super) const fn wildcard(&self) -> bool {
        self.wildcard
    }

    /// Sets whether the client asks for everything. Returns whether that is new.
    pub(super) const fn set_wildcard(&mut self, wildcard: bool) -> bool {
        std::mem::replace(&mut self.wildcard, wildcard) != wildcard
    }

    /// Whether the wildcard, or a first request, must be answered, even if the answer is empty (B-20, C-17).
    pub(super) const fn hello(&self) -> bool {
        self.hello
    }

    pub(super) const fn set_hello(&mut self, hello: bool) {
        self.hello = hello;
    }

    pub(super) fn has_collections(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| !rare.collections.is_empty())
    }

    /// Returns whether a text means one of them.
    pub(super) fn has_collection(&self, text: &Name) -> bool {
        let rare = self.rare.as_ref();
        rare.is_some_and(|rare| rare.collections.contains(self.meaning(text)))
    }

    /// Returns the collection that the client asks for and that covers a name.
    pub(super) fn covering(&self, name: &Name) -> Option<Name> {
        let rare = self.rare.as_ref().filter(|rare| !rare.collections.is_empty())?;
        name.collection().filter(|all| rare.collections.contains(all))
    }

    pub(super) fn add_collection(&mut self, name: Name) {
        self.rare.get_or_insert_default().collections.insert(name);
    }

    pub(super) fn remove_collection(&mut self, name: &Name) {
        if let Some(rare) = &mut self.rare {
            rare.collections.remove(name);
        }
        self.give_back();
    }

    /// Notes what a text means, if it is not the canonical one.
    pub(super) fn spell(&mut self, text: &Name, type_url: &TypeUrl) {
        // B-32: the empty name means nothing where resources have names.
        if !text.is_new_style() && !text.is_empty() {
            return;
        }
        let name = Name::read(text.as_str(), type_url);
        if name != *text {
            let rare = self.rare.get_or_insert_default();
            rare.texts.insert((name.clone(), text.clone()));
            rare.meant.insert(text.clone(), name);
        }
    }

    /// The client does not use a text any more.
    pub(super) fn unspell(&mut self, text: &Name) {
        if let Some(rare) = &mut self.rare
            && let Some(name) = rare.meant.remove(text)
        {
            rare.texts.remove(&(name, text.clone()));
        }
        self.give_back();
    }

    /// B-32: returns names over the limit that must be answered.
    pub(super) fn long(&self) -> &[Name] {
        self.rare.as_ref().map_or(&[], |rare| &rare.long)
    }

    pub(super) fn add_long(&mut self, name: Name) {
        self.rare.get_or_insert_default().long.push(name);
    }

    pub(super) fn take_long(&mut self) -> Vec<Name> {
        let long = self.rare.as_mut().map(|rare| std::mem::take(&mut rare.long));
        self.give_back();
        long.unwrap_or_default()
    }

    /// Returns the version in the first request of a full state, until the client has answered a response.
    pub(super) fn version(&self) -> Option<&str> {
        self.rare.as_ref()?.version.as_deref()
    }

    pub(super) fn set_version(&mut self, version: &str) {
        self.rare.get_or_insert_default().version = Some(version.into());
    }

    /// The client has answered a response.
    pub(super) fn forget_version(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.version = None;
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        self.rare.take_if(|rare| {
            let spells = !rare.collections.is_empty() || !rare.meant.is_empty();
            !spells && rare.long.is_empty() && rare.version.is_none()
        });
    }

    /// Returns the name that a text means (F-04).
    pub(super) fn meaning<'a>(&'a self, text: &'a Name) -> &'a Name {
        let meant = self.rare.as_ref().and_then(|rare| rare.meant.get(text));
        meant.unwrap_or(text)
    }

    /// Returns the texts by which the client may have asked for a name, the name itself last.
    pub(super) fn texts<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = &'a Name> {
        let rare = self.rare.iter().filter(|rare| !rare.texts.is_empty());
        let all = rare.flat_map(move |rare| rare.texts.range((name.clone(), Name::from(""))..));
        let others = all.take_while(move |(of, _)| of == name).map(|(_, text)| text);
        others.chain([name])
    }
}
