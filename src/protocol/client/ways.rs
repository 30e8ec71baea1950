//! The spellings by which a server is asked for names (F-07).
//!
//! Owns the choice among several spellings of a name. Knows nothing of the content of names.

use std::collections::{BTreeMap, BTreeSet};

use xds::Name;

/// The names that clients spell in another way than the canonical one. Other names are not in it.
#[derive(Debug, Default)]
pub(super) struct Ways(BTreeMap<Name, Way>);

/// The spellings of one name.
///
/// A server may compare bytes, and know only one of them. All are requested until the server answers to one. From then on that
/// one serves every client, because all of them mean the same name (F-04). The others stay subscribed: a server that compares as
/// the relay does would take the end of one subscription for the end of all.
#[derive(Debug, Default)]
struct Way {
    texts: BTreeSet<Name>,
    /// The spellings that the server was asked for on this stream.
    asked: BTreeSet<Name>,
    answered: Option<Name>,
    /// The spellings under which nothing exists, as the server says.
    absent: BTreeSet<Name>,
}

/// The spellings to request after the answered one is gone.
#[derive(Debug, Default)]
pub(super) struct Alternatives {
    pub(super) more: Vec<Name>,
    /// Spellings that were requested already: the relay ignored the server's answers to them.
    pub(super) again: Vec<Name>,
}

impl Ways {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a client spells the name in another way than the canonical one.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the spellings of a name, if clients spell it in another way than the canonical one.
    pub(super) fn texts(&self, name: &Name) -> impl Iterator<Item = &Name> {
        self.0.get(name).into_iter().flat_map(|way| &way.texts)
    }

    /// A new stream.
    pub(super) fn reset(&mut self) {
        self.0.values_mut().for_each(|way| way.asked.clear());
    }

    /// The server is asked for a name.
    pub(super) fn ask(&mut self, name: &Name) {
        let Some(way) = self.0.get_mut(name) else { return };
        match &way.answered {
            Some(answered) => drop(way.asked.insert(answered.clone())),
            None => way.asked.clone_from(&way.texts),
        }
    }

    /// Returns the spellings by which a name was requested.
    pub(super) fn asked<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = &'a Name> {
        let way = self.0.get(name);
        let own = way.is_none().then_some(name);
        own.into_iter().chain(way.into_iter().flat_map(|way| &way.asked))
    }

    /// Adds a spelling of a name; `None`: the canonical one. `known`: the name was wanted already; `held`: the server has content
    /// for it. Returns whether the spelling is new.
    pub(super) fn add(&mut self, name: &Name, written: Option<&Name>, known: bool, held: bool) -> bool {
        if let Some(way) = self.0.get_mut(name) {
            return way.texts.insert(written.unwrap_or(name).clone());
        }
        let Some(written) = written else { return false };
        let own: BTreeSet<Name> = known.then(|| name.clone()).into_iter().collect();
        let mut texts = own.clone();
        texts.insert(written.clone());
        let way = Way {
            texts,
            // A name that was requested in the canonical way only was answered in that spelling.
            answered: own.first().filter(|_| held).cloned(),
            asked: own,
            ..Way::default()
        };
        self.0.insert(name.clone(), way);
        true
    }

    /// Returns whether the server must be asked for one more spelling, if it was asked for the name.
    pub(super) fn ask_more(&mut self, name: &Name, text: &Name) -> bool {
        let way = self.0.get_mut(name);
        way.is_some_and(|way| way.answered.is_none() && way.asked.insert(text.clone()))
    }

    /// The server sent content under this spelling of the name. Returns whether it counts. It does not if content is `held` under
    /// another spelling.
    pub(super) fn heard(&mut self, name: &Name, written: Option<&Name>, held: bool) -> bool {
        let Some(way) = self.0.get_mut(name) else {
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
        self.0.get(name)?.answered.as_ref()
    }

    /// The server says that nothing exists under this spelling of the name. Returns whether that settles the name, and what to
    /// request instead.
    pub(super) fn absent(&mut self, name: &Name, text: &str) -> (bool, Alternatives) {
        let Some(way) = self.0.get_mut(name) else {
            return (true, Alternatives::default());
        };
        let Some(text) = way.texts.get(text).cloned() else {
            return (true, Alternatives::default());
        };
        way.absent.insert(text.clone());
        match way.answered.take_if(|answered| *answered == text) {
            Some(_) => {
                let others = way.texts.iter().filter(|other| !way.absent.contains(*other)).cloned();
                let (again, more): (Vec<Name>, Vec<Name>) = others.partition(|text| way.asked.contains(text));
                way.asked.extend(more.iter().cloned());
                (true, Alternatives { more, again })
            }
            None if way.answered.is_some() => (false, Alternatives::default()),
            None => (way.absent.len() == way.texts.len(), Alternatives::default()),
        }
    }

    /// The name is not requested any more.
    pub(super) fn forget(&mut self, name: &Name) {
        self.0.remove(name);
    }

    /// Returns the spelling that counts, if a response has content under several of them. A server may answer to each, and to the
    /// canonical one for a collection.
    pub(super) fn choose(&self, name: &str, texts: &BTreeSet<&Name>) -> Option<&Name> {
        let way = self.0.get(name)?;
        let answered = way.answered.as_ref().filter(|answered| texts.contains(answered));
        answered.or_else(|| way.texts.iter().find(|text| texts.contains(text)))
    }
}
