//! The client's own way of writing names (F-09).
//!
//! Owns the texts that are not the names' own. Refuses to know what is held under a name.

use std::collections::BTreeSet;

use crate::xds::{Name, Texts};

/// By name, the texts by which a client asks for it, where they are not just the canonical one.
#[derive(Debug, Default)]
pub(super) struct Spellings(Texts);

/// So many ways of writing one name are told apart; nobody needs more, and each costs a copy of the resource.
const WAYS_MAX: usize = 8;

impl Spellings {
    /// How many texts there are.
    pub(super) fn len(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.0.contains_key(name)
    }

    /// The client asks for a name by this text as well. Whether that text is new.
    pub(super) fn add(&mut self, name: &Name, text: &str, asked: bool) -> bool {
        if let Some(texts) = self.0.get_mut(name) {
            return texts.len() < WAYS_MAX && texts.insert(Name::from(text));
        }
        if text != name.as_str() {
            let own = asked.then(|| name.clone());
            let texts = own.into_iter().chain([Name::from(text)]).collect();
            self.0.insert(name.clone(), texts);
            return true;
        }
        !asked
    }

    /// The client asks for a name by exactly these texts. Whether one of them is new.
    pub(super) fn set(&mut self, name: &Name, texts: &[&str], asked: bool) -> bool {
        let own = [name.as_str()];
        if texts == own && !self.contains(name) {
            return !asked;
        }
        let new: BTreeSet<Name> = texts.iter().take(WAYS_MAX).map(|text| Name::from(*text)).collect();
        let old = if texts == own {
            self.0.remove(name)
        } else {
            self.0.insert(name.clone(), new.clone())
        };
        let old = old.unwrap_or_else(|| asked.then(|| name.clone()).into_iter().collect());
        !new.is_subset(&old)
    }

    /// The client does not ask for a name by this text any more. Whether it still does by another.
    pub(super) fn remove(&mut self, name: &Name, text: &str) -> bool {
        let Some(texts) = self.0.get_mut(name) else {
            return text != name.as_str();
        };
        // The last way of writing it goes with the name.
        if texts.iter().all(|own| own.as_str() == text) {
            return false;
        }
        texts.remove(text);
        if texts.iter().eq([name]) {
            self.0.remove(name);
        }
        true
    }

    /// Forgets the others.
    pub(super) fn retain(&mut self, keeps: impl Fn(&Name) -> bool) {
        self.0.retain(|name, _| keeps(name));
    }

    pub(super) fn forget(&mut self, name: &Name) {
        self.0.remove(name);
    }

    /// The texts of these names.
    pub(super) fn of<'a>(&self, names: impl Iterator<Item = &'a Name>) -> Texts {
        if self.is_empty() {
            return Texts::new();
        }
        names
            .filter_map(|name| Some((name.clone(), self.0.get(name)?.clone())))
            .collect()
    }
}
