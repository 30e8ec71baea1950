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
    /// Further spellings that the server must be asked for, with the names that they belong to.
    more: BTreeMap<Name, Name>,
    /// Spellings that the server must be asked for again, so they are unsubscribed first.
    less: BTreeSet<Name>,
}

/// The spellings of one name.
///
/// A server may compare bytes, and know only one of them. All are requested until the server answers to one. From then on that
/// one serves every client, because all of them mean the same name (F-04). The others stay subscribed: a server that compares as
/// the relay does would take the end of one subscription for the end of all.
#[derive(Debug, Default)]
struct Spelling {
    texts: BTreeSet<Name>,
    /// The spellings that the server was asked for on this stream.
    asked: BTreeSet<Name>,
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

    /// A new stream.
    pub(super) fn reset(&mut self) {
        self.by_name.values_mut().for_each(|way| way.asked.clear());
        self.more.clear();
        self.less.clear();
    }

    /// Whether the server must be asked for any spelling beside those of new names.
    pub(super) fn changed(&self) -> bool {
        !self.more.is_empty() || !self.less.is_empty()
    }

    /// Takes the further spellings that the server must be asked for, with the names that they belong to.
    pub(super) fn take_more(&mut self) -> BTreeMap<Name, Name> {
        std::mem::take(&mut self.more)
    }

    /// Takes the spellings that must be unsubscribed, because the server must be asked for them again.
    pub(super) fn take_less(&mut self) -> BTreeSet<Name> {
        std::mem::take(&mut self.less)
    }

    /// A name is not wanted any more.
    pub(super) fn leave(&mut self, name: &Name) {
        for text in self.by_name.get(name).into_iter().flat_map(|way| &way.texts) {
            self.more.remove(text);
        }
    }

    /// The server is asked for a name.
    pub(super) fn ask(&mut self, name: &Name) {
        let Some(way) = self.by_name.get_mut(name) else { return };
        match &way.answered {
            Some(answered) => drop(way.asked.insert(answered.clone())),
            None => way.asked.clone_from(&way.texts),
        }
    }

    /// Returns the spellings by which a name was requested.
    pub(super) fn asked<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = &'a Name> {
        let way = self.by_name.get(name);
        let own = way.is_none().then_some(name);
        own.into_iter().chain(way.into_iter().flat_map(|way| &way.asked))
    }

    /// Adds a spelling of a name; `None`: the canonical one. `known`: the name was wanted already; `held`: the server has content
    /// for it. Returns whether the spelling is new.
    pub(super) fn add(&mut self, name: &Name, written: Option<&Name>, known: bool, held: bool) -> bool {
        if let Some(way) = self.by_name.get_mut(name) {
            return way.texts.insert(written.unwrap_or(name).clone());
        }
        let Some(written) = written else { return false };
        let own: BTreeSet<Name> = known.then(|| name.clone()).into_iter().collect();
        let mut texts = own.clone();
        texts.insert(written.clone());
        let way = Spelling {
            texts,
            // A name that was requested in the canonical way only was answered in that spelling.
            answered: own.first().filter(|_| held).cloned(),
            asked: own,
            ..Spelling::default()
        };
        self.by_name.insert(name.clone(), way);
        true
    }

    /// The server was asked for the name. Returns whether it must be asked for one more spelling.
    pub(super) fn ask_more(&mut self, name: &Name, text: &Name) -> bool {
        let way = self.by_name.get_mut(name);
        let more = way.is_some_and(|way| way.answered.is_none() && way.asked.insert(text.clone()));
        if more {
            self.more.insert(text.clone(), name.clone());
        }
        more
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
        let meant = meant.or_else(|| way.asked.iter().find(|text| !way.absent.contains(*text)));
        let meant = meant.or(way.texts.first()).cloned();
        way.absent.clear();
        way.answered = meant;
        true
    }

    /// Returns the spelling under which the name's content came.
    pub(super) fn answered(&self, name: &Name) -> Option<&Name> {
        self.by_name.get(name)?.answered.as_ref()
    }

    /// The server says that nothing exists under this spelling of the name. Returns whether that settles the name. If the name
    /// `stays` requested, the server must be asked for the spellings that are left.
    pub(super) fn absent(&mut self, name: &Name, text: &str, stays: bool) -> bool {
        let Some(way) = self.by_name.get_mut(name) else {
            return true;
        };
        let Some(text) = way.texts.get(text).cloned() else {
            return true;
        };
        way.absent.insert(text.clone());
        if way.answered.take_if(|answered| *answered == text).is_none() {
            return way.answered.is_none() && way.absent.len() == way.texts.len();
        }
        for other in way.texts.iter().filter(|other| !way.absent.contains(*other)) {
            let again = !way.asked.insert(other.clone());
            if stays {
                self.more.insert(other.clone(), name.clone());
                // E-17: a spelling that was requested already is unsubscribed first: the relay ignored the server's answers to it.
                if again {
                    self.less.insert(other.clone());
                }
            }
        }
        true
    }

    /// The name is not requested any more.
    pub(super) fn forget(&mut self, name: &Name) {
        self.by_name.remove(name);
    }

    /// Returns the spelling that counts, if a response has content under several of them. A server may answer to each, and to the
    /// canonical one for a collection.
    pub(super) fn choose(&self, name: &str, texts: &BTreeSet<&Name>) -> Option<&Name> {
        let way = self.by_name.get(name)?;
        let answered = way.answered.as_ref().filter(|answered| texts.contains(answered));
        answered.or_else(|| way.texts.iter().find(|text| texts.contains(text)))
    }
}
