//! The client's own spellings of names (F-09).
//!
//! Owns the spellings that are not canonical. Knows nothing of the content of names.

use std::collections::BTreeSet;

use xds::{Name, Target, Texts, TypeUrl, Want};

/// The spellings in which a client asks for each name, if they are not just the canonical one. Most clients have none, and then
/// nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Spellings(Option<Box<Texts>>);

/// This many spellings of one name are told apart. Nobody needs more, and each costs a copy of the resource.
const WAYS_MAX: usize = 8;

impl Spellings {
    /// Returns how many spellings there are.
    pub(super) fn len(&self) -> usize {
        self.texts().values().map(BTreeSet::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts().is_empty()
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.texts().contains_key(name)
    }

    /// The client also asks for a name in this spelling. Returns whether the spelling is new.
    pub(super) fn add(&mut self, name: &Name, text: &str, asked: bool) -> bool {
        if let Some(texts) = self.of_mut(name) {
            return texts.len() < WAYS_MAX && texts.insert(Name::from(text));
        }
        if text != name.as_str() {
            let own = asked.then(|| name.clone());
            let texts = own.into_iter().chain([Name::from(text)]).collect();
            self.0.get_or_insert_default().insert(name.clone(), texts);
            return true;
        }
        !asked
    }

    /// The client asks for a name in exactly these spellings. Returns whether one of them is new.
    pub(super) fn set(&mut self, name: &Name, texts: &[&str], asked: bool) -> bool {
        let own = [name.as_str()];
        if texts == own && !self.contains(name) {
            return !asked;
        }
        let new: BTreeSet<Name> = texts.iter().take(WAYS_MAX).map(|text| Name::from(*text)).collect();
        let old = if texts == own {
            self.take(name)
        } else {
            self.0.get_or_insert_default().insert(name.clone(), new.clone())
        };
        let old = old.unwrap_or_else(|| asked.then(|| name.clone()).into_iter().collect());
        !new.is_subset(&old)
    }

    /// The client does not ask for a name in this spelling any more. Returns whether it still does in another one.
    pub(super) fn remove(&mut self, name: &Name, text: &str) -> bool {
        let Some(texts) = self.of_mut(name) else {
            return text != name.as_str();
        };
        // The last spelling goes with the name.
        if texts.iter().all(|own| own.as_str() == text) {
            return false;
        }
        texts.remove(text);
        if texts.iter().eq([name]) {
            self.forget(name);
        }
        true
    }

    /// Keeps only the names for which `keeps` is true.
    pub(super) fn retain(&mut self, keeps: impl Fn(&Name) -> bool) {
        if let Some(texts) = &mut self.0 {
            texts.retain(|name, _| keeps(name));
        }
        self.0.take_if(|texts| texts.is_empty());
    }

    /// Returns whether `is` holds for all spellings in which the client asks for a name.
    pub(super) fn all(&self, name: &Name, is: impl Fn(&Name) -> bool) -> bool {
        match self.texts().get(name) {
            Some(texts) => texts.iter().all(is),
            None => is(name),
        }
    }

    pub(super) fn forget(&mut self, name: &Name) {
        drop(self.take(name));
    }

    /// Returns the spellings of these names.
    pub(super) fn of<'a>(&self, names: impl Iterator<Item = &'a Name>) -> Texts {
        if self.is_empty() {
            return Texts::new();
        }
        names
            .filter_map(|name| Some((name.clone(), self.texts().get(name)?.clone())))
            .collect()
    }

    /// F-07: returns what to request from the control plane so that each spelling of a name is answered in the client's bytes.
    pub(super) fn wants(&self, type_url: &TypeUrl, name: &Name) -> Vec<Want> {
        let own = BTreeSet::from([name.clone()]);
        let texts = self.texts().get(name).unwrap_or(&own).iter();
        let ways: BTreeSet<Option<Name>> = texts.map(|text| name.written(text.as_str())).collect();
        let want = |written| Want {
            type_url: type_url.clone(),
            target: Target::Name(name.clone()),
            wanted: true,
            written,
        };
        ways.into_iter().map(want).collect()
    }

    fn texts(&self) -> &Texts {
        static NONE: Texts = Texts::new();
        self.0.as_deref().unwrap_or(&NONE)
    }

    fn of_mut(&mut self, name: &Name) -> Option<&mut BTreeSet<Name>> {
        self.0.as_mut()?.get_mut(name)
    }

    fn take(&mut self, name: &Name) -> Option<BTreeSet<Name>> {
        let taken = self.0.as_mut()?.remove(name);
        self.0.take_if(|texts| texts.is_empty());
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F-09: the last spelling goes with the name, and a name in the canonical spelling alone costs nothing.
    #[test]
    fn texts_come_and_go() {
        let name = Name::from("xdstp://a/t/x");
        let mut spellings = Spellings::default();
        assert!(spellings.add(&name, name.as_str(), false) && spellings.is_empty());
        assert!(spellings.add(&name, "xdstp://a/t/%78", true) && !spellings.add(&name, "xdstp://a/t/%78", true));
        assert_eq!((spellings.len(), spellings.contains(&name)), (2, true));
        assert!(spellings.all(&name, |text| text.as_str().starts_with("xdstp")));
        assert!(spellings.remove(&name, "xdstp://a/t/%78"));
        assert!(spellings.is_empty() && spellings.0.is_none());
        assert!(!spellings.remove(&name, name.as_str()));
        assert!(spellings.set(&name, &["xdstp://a/t/%78"], true) && !spellings.set(&name, &["xdstp://a/t/%78"], true));
        assert!(!spellings.remove(&name, "xdstp://a/t/%78"), "it was the last");
        spellings.retain(|_| false);
        assert!(spellings.0.is_none());
    }

    /// K-21: each spelling costs a copy, so their number is bounded.
    #[test]
    fn few_texts() {
        let name = Name::from("xdstp://a/t/x?b=1&a=2");
        let mut spellings = Spellings::default();
        let new = (0..2 * WAYS_MAX).filter(|number| spellings.add(&name, &format!("{number}"), false));
        assert_eq!(new.count(), WAYS_MAX);
        assert_eq!(spellings.len(), WAYS_MAX);
    }
}
