//! Names that must be looked at again.
//!
//! Owns the fence between what an answer that has begun is about and what comes after it. Refuses to know what has changed.

use std::collections::BTreeSet;

use super::held_names::HeldNames;
use crate::xds::Name;

/// The names of one type on one stream of which something may have changed since what the client holds was compared.
///
/// What changes while an answer of several responses is under way comes after it: names that change all the time would keep back
/// those behind them.
#[derive(Debug, Default)]
pub(super) struct Glances {
    later: BTreeSet<Name>,
    /// Most have none, and so no box.
    besides: Option<Box<Besides>>,
}

#[derive(Debug, Default)]
struct Besides {
    /// What the answer that has begun is still to look at.
    now: Option<Glance>,
    /// Whether all names must be looked at later.
    all: bool,
}

/// Names of the table.
#[derive(Debug)]
pub(super) enum Glance {
    These(BTreeSet<Name>),
    All,
    /// All that are not before this one.
    From(Name),
}

/// Beyond this many names it is cheaper to look at all.
const GLANCE_MAX: usize = 4096;

impl Glances {
    pub(super) fn add(&mut self, name: Name) {
        if self.all() {
            return;
        }
        self.later.insert(name);
        if self.later.len() > GLANCE_MAX {
            self.add_all();
        }
    }

    pub(super) fn add_all(&mut self) {
        self.later.clear();
        self.besides.get_or_insert_default().all = true;
    }

    pub(super) fn remove(&mut self, name: &Name) {
        self.later.remove(name);
        if let Some(Glance::These(names)) = self.besides.as_mut().and_then(|besides| besides.now.as_mut()) {
            names.remove(name);
        }
    }

    pub(super) fn clear(&mut self) {
        if self.besides.is_some() || !self.later.is_empty() {
            *self = Self::default();
        }
    }

    /// Whether an answer has begun.
    pub(super) fn is_under_way(&self) -> bool {
        self.now().is_some()
    }

    pub(super) fn is_empty(&self, names: &HeldNames) -> bool {
        self.later.is_empty() && (self.besides.is_none() || self.iter(names).next().is_none())
    }

    pub(super) fn iter<'a>(&'a self, names: &'a HeldNames) -> impl Iterator<Item = &'a Name> {
        let now = self.now().into_iter().flat_map(|now| now.iter(names));
        let all = self
            .all()
            .then(|| names.iter().map(|(name, _)| name))
            .into_iter()
            .flatten();
        now.chain(all).chain(&self.later)
    }

    /// What the answer that has begun is to look at.
    pub(super) fn take_now(&mut self) -> Option<Glance> {
        let now = self.besides.as_mut()?.now.take();
        self.besides.take_if(|besides| !besides.all);
        now
    }

    /// What an answer that begins is to look at.
    pub(super) fn take_later(&mut self) -> Glance {
        if !self.all() {
            return Glance::These(std::mem::take(&mut self.later));
        }
        self.besides.take_if(|besides| besides.now.is_none());
        if let Some(besides) = &mut self.besides {
            besides.all = false;
        }
        Glance::All
    }

    /// The answer was full before these names: the next response begins with them.
    pub(super) fn go_on(&mut self, rest: Glance) {
        self.besides.get_or_insert_default().now = Some(rest);
    }

    fn now(&self) -> Option<&Glance> {
        self.besides.as_ref()?.now.as_ref()
    }

    fn all(&self) -> bool {
        self.besides.as_ref().is_some_and(|besides| besides.all)
    }
}

impl Glance {
    pub(super) fn iter<'a>(&'a self, names: &'a HeldNames) -> impl Iterator<Item = &'a Name> {
        let (some, first) = match self {
            Self::These(some) => (Some(some.iter()), None),
            Self::All => (None, Some("")),
            Self::From(first) => (None, Some(first.as_str())),
        };
        let all = first.map(|first| names.from(first).map(|(name, _)| name));
        some.into_iter().flatten().chain(all.into_iter().flatten())
    }

    /// Without those before this one.
    pub(super) fn rest(self, first: &Name) -> Self {
        match self {
            Self::These(mut names) => Self::These(names.split_off(first)),
            Self::All | Self::From(_) => Self::From(first.clone()),
        }
    }
}

impl Default for Glance {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::Held;

    /// B-24: what changes while an answer is under way comes after it, also where all must be looked at.
    #[test]
    fn the_fence() {
        let name = |text: &str| Name::from(text);
        let mut table = HeldNames::default();
        ["a", "b", "c"]
            .into_iter()
            .for_each(|text| table.set(name(text), Held::Unknown));
        let mut glances = Glances::default();
        let texts = |glance: &Glance| glance.iter(&table).map(ToString::to_string).collect::<String>();
        for all in [false, true] {
            assert!(glances.is_empty(&table) && !glances.is_under_way());
            if all {
                glances.add_all();
            } else {
                ["b", "a", "c"].into_iter().for_each(|text| glances.add(name(text)));
            }
            let begun = glances.take_later();
            assert_eq!(texts(&begun), "abc");
            assert!(glances.is_empty(&table));
            glances.go_on(begun.rest(&name("b")));
            glances.add(name("a"));
            assert!(glances.is_under_way() && !glances.is_empty(&table));
            assert_eq!(glances.iter(&table).map(ToString::to_string).collect::<String>(), "bca");
            let now = glances.take_now();
            assert_eq!(now.as_ref().map(texts).as_deref(), Some("bc"));
            assert!(!glances.is_under_way());
            assert_eq!(texts(&glances.take_later()), "a");
        }
    }
}
