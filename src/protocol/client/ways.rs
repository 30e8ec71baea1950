// SPDX-License-Identifier: Apache-2.0
//! The spellings by which a server is asked for names (F-07).
//!
//! Owns the choice among several spellings of a name. Knows nothing of the content of names.

use std::collections::{BTreeMap, BTreeSet};

use xds::Name;

/// The names that clients spell in another way than the canonical one. Other names are not in it.
#[derive(Debug, Default)]
pub(super) struct Spellings {
    by_name: BTreeMap<Name, Spelling>,
    /// The names of all spellings in it.
    by_text: BTreeMap<Name, Name>,
}

/// The spellings of one name.
///
/// A server may compare bytes, and know only one of them. All are requested until the server answers to one. From then on that
/// one serves every client, because all of them mean the same name (F-04). The others stay subscribed: a server that compares as
/// the relay does would take the end of one subscription for the end of all.
#[derive(Debug, Default)]
struct Spelling {
    texts: BTreeSet<Name>,
    answered: Option<Name>,
    /// The spellings under which nothing exists, as the server says.
    absent: BTreeSet<Name>,
}

impl Spellings {
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns whether a client spells the name in another way than the canonical one.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns the spellings of a name, if any client spells it in another way than the canonical one.
    pub(super) fn texts(&self, name: &str) -> Option<&BTreeSet<Name>> {
        self.by_name.get(name).map(|way| &way.texts)
    }

    /// Returns the spellings by which the server is to be asked for a name: the one that it has answered to, or all.
    pub(super) fn wanted<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = &'a Name> {
        let (texts, answered) = (self.texts(name.as_str()), self.answered(name));
        let own = texts.is_none().then_some(name);
        let texts = texts.into_iter().flatten();
        own.into_iter()
            .chain(texts.filter(move |text| answered.is_none_or(|answered| answered == *text)))
    }

    /// Returns the name with this spelling.
    pub(super) fn name<'a>(&'a self, text: &'a Name) -> &'a Name {
        self.by_text.get(text).unwrap_or(text)
    }

    /// Adds a spelling of a name; `None`: the canonical one. `known`: the name was wanted already; `held`: the server has content
    /// for it.
    pub(super) fn add(&mut self, name: &Name, written: Option<&Name>, known: bool, held: bool) {
        if written.is_none() && !self.contains(name.as_str()) {
            return;
        }
        let text = written.unwrap_or(name);
        let way = self.by_name.entry(name.clone()).or_insert_with(|| {
            // A name that was requested in the canonical way only was answered in that spelling.
            let own = known.then(|| name.clone());
            Spelling {
                texts: own.iter().cloned().collect(),
                answered: own.filter(|_| held),
                absent: BTreeSet::new(),
            }
        });
        way.texts.insert(text.clone());
        self.by_text.insert(text.clone(), name.clone());
    }

    /// The server sent content under this spelling of the name. Returns whether it counts. It does not if content is `held` under
    /// another spelling.
    pub(super) fn heard(&mut self, name: &Name, written: Option<&Name>, held: bool) -> bool {
        let Some(way) = self.by_name.get_mut(name) else {
            return true;
        };
        let text = written.unwrap_or(name);
        match &way.answered {
            // A server that uses a spelling of its own may mean any of the requested ones.
            Some(answered) if answered == text || !way.texts.contains(text) => return true,
            Some(_) if held => return false,
            Some(_) | None => {}
        }
        let meant = way.texts.get(text);
        let meant = meant.or_else(|| way.texts.iter().find(|text| !way.absent.contains(*text)));
        let meant = meant.or(way.texts.first()).cloned();
        way.absent.clear();
        way.answered = meant;
        true
    }

    /// Returns the spelling under which the name's content came.
    pub(super) fn answered(&self, name: &Name) -> Option<&Name> {
        self.by_name.get(name)?.answered.as_ref()
    }

    /// The server says that nothing exists under this spelling of the name. Returns whether that settles the name, and the other spellings
    /// that the server must be asked for now, because it answered to this one.
    pub(super) fn absent(&mut self, name: &Name, text: &str) -> (bool, Vec<Name>) {
        let Some(way) = self.by_name.get_mut(name) else {
            return (true, Vec::new());
        };
        let Some(text) = way.texts.get(text).cloned() else {
            return (true, Vec::new());
        };
        way.absent.insert(text.clone());
        if way.answered.take_if(|answered| *answered == text).is_none() {
            let all = way.absent.len() == way.texts.len();
            return (all && way.answered.is_none(), Vec::new());
        }
        (true, way.texts.difference(&way.absent).cloned().collect())
    }

    /// The name is not requested any more.
    pub(super) fn forget(&mut self, name: &Name) {
        if let Some(way) = self.by_name.remove(name) {
            way.texts.iter().for_each(|text| _ = self.by_text.remove(text));
        }
    }

    /// Returns the spelling that counts, if a response has content under several of them. A server may answer to each, and to the
    /// canonical one for a collection.
    pub(super) fn choose(&self, name: &str, texts: &BTreeSet<&Name>) -> Option<&Name> {
        let way = self.by_name.get(name)?;
        let answered = way.answered.as_ref().filter(|answered| texts.contains(answered));
        answered.or_else(|| way.texts.iter().find(|text| texts.contains(text)))
    }
}
