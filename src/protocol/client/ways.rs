//! The bytes by which a server is asked for names (F-07).
//!
//! Owns in which of several ways a name is asked for. Refuses to know what is held under it.

use std::collections::{BTreeMap, BTreeSet};

use crate::xds::Name;

/// How the names are written that clients write in another way than the canonical one; of all other names nothing is kept.
#[derive(Debug, Default)]
pub(super) struct Ways(BTreeMap<Name, Way>);

/// The ways in which one name is written.
///
/// A server may compare bytes, and know only one of them. All are asked for until the server answers to one; then that one serves
/// everybody, because all of them mean the same (F-04). What was asked for stays so: a server that compares as we do would take the
/// end of one for the end of all.
#[derive(Debug, Default)]
struct Way {
    texts: BTreeSet<Name>,
    /// Those of them for which the server was asked on this stream.
    asked: BTreeSet<Name>,
    answered: Option<Name>,
    /// To which the server says that there is nothing.
    absent: BTreeSet<Name>,
}

/// What else to ask for where something is gone.
#[derive(Debug, Default)]
pub(super) struct Alternatives {
    pub(super) more: Vec<Name>,
    /// What was asked for already, and was passed over when it came.
    pub(super) again: Vec<Name>,
}

impl Ways {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a name is written in another way than the canonical one.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
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

    /// The texts by which a name was asked for.
    pub(super) fn asked<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = &'a Name> {
        let way = self.0.get(name);
        let own = way.is_none().then_some(name);
        own.into_iter().chain(way.into_iter().flat_map(|way| &way.asked))
    }

    /// Somebody writes a name so; `None`: in the canonical way. `known`: whether it was wanted already, and `held`: whether the server has
    /// something of it. Whether that is one more way.
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
            // What was asked for by its own name alone was answered to that.
            answered: own.first().filter(|_| held).cloned(),
            asked: own,
            ..Way::default()
        };
        self.0.insert(name.clone(), way);
        true
    }

    /// Whether the server must be asked by one more text, if it was asked for the name.
    pub(super) fn ask_more(&mut self, name: &Name, text: &Name) -> bool {
        let way = self.0.get_mut(name);
        way.is_some_and(|way| way.answered.is_none() && way.asked.insert(text.clone()))
    }

    /// The server has something of the name, which it writes so. Whether that counts: not if it answers to another text than the one
    /// by which something is `held`.
    pub(super) fn heard(&mut self, name: &Name, written: Option<&Name>, held: bool) -> bool {
        let Some(way) = self.0.get_mut(name) else {
            return true;
        };
        let text = written.unwrap_or(name);
        match &way.answered {
            // A server that writes the name in a way of its own may mean any of ours.
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

    /// By which text a name is held.
    pub(super) fn answered(&self, name: &Name) -> Option<&Name> {
        self.0.get(name)?.answered.as_ref()
    }

    /// The server says that there is nothing of the name that it writes so. Whether that is all that can be said of the name, and what
    /// to ask for instead.
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

    /// The name is asked for no more.
    pub(super) fn forget(&mut self, name: &Name) {
        self.0.remove(name);
    }

    /// Which of these texts of one name counts, where the name is asked for in several ways: a server may answer to each, and to the
    /// canonical one for the sake of a collection.
    pub(super) fn choose(&self, name: &str, texts: &BTreeSet<&Name>) -> Option<&Name> {
        let way = self.0.get(name)?;
        let answered = way.answered.as_ref().filter(|answered| texts.contains(answered));
        answered.or_else(|| way.texts.iter().find(|text| texts.contains(text)))
    }
}
