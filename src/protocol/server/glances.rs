//! Names that must be compared again.
//!
//! Owns the boundary between the names of an answer that has begun and the names that come after it. Does not know what has
//! changed.

use std::collections::BTreeSet;

use super::held_names::HeldNames;
use xds::Name;

/// The names of one type on one stream that may have changed since they were last compared with what the client holds.
///
/// Names that change while an answer of several responses is under way come after it. Otherwise names that change all the time
/// would hold up those behind them.
///
/// Most of the time there are none, and then nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Glances(Option<Box<Parts>>);

#[derive(Debug, Default)]
struct Parts {
    /// The names that the begun answer must still compare.
    now: Option<Glance>,
    /// The names that must be compared after that.
    later: BTreeSet<Name>,
    /// Whether all names must be compared after that.
    all: bool,
}

/// A set of names in the table.
#[derive(Debug)]
enum Glance {
    These(BTreeSet<Name>),
    All,
    /// All names from this one on.
    From(Name),
}

/// With more names than this, comparing all is cheaper.
const GLANCE_MAX: usize = 4096;

impl Glances {
    pub(super) fn add(&mut self, name: Name) {
        let parts = self.0.get_or_insert_default();
        if !parts.all {
            parts.later.insert(name);
        }
        if parts.later.len() > GLANCE_MAX {
            self.add_all();
        }
    }

    pub(super) fn add_all(&mut self) {
        let parts = self.0.get_or_insert_default();
        parts.later.clear();
        parts.all = true;
    }

    pub(super) fn remove(&mut self, name: &Name) {
        let Some(parts) = &mut self.0 else { return };
        parts.later.remove(name);
        if let Some(Glance::These(names)) = &mut parts.now {
            names.remove(name);
        }
        self.0.take_if(|parts| parts.is_empty());
    }

    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// Returns whether an answer has begun.
    pub(super) fn is_under_way(&self) -> bool {
        self.0.as_ref().is_some_and(|parts| parts.now.is_some())
    }

    pub(super) fn is_empty(&self, names: &HeldNames) -> bool {
        self.0.is_none() || self.iter(names).next().is_none()
    }

    pub(super) fn iter<'a>(&'a self, names: &'a HeldNames) -> impl Iterator<Item = &'a Name> {
        self.now(names).chain(self.later(names))
    }

    /// Returns the names that the begun answer must still compare.
    pub(super) fn now<'a>(&'a self, names: &'a HeldNames) -> impl Iterator<Item = &'a Name> {
        let now = self.0.as_ref().and_then(|parts| parts.now.as_ref());
        now.into_iter().flat_map(|now| now.iter(names))
    }

    /// Returns the names that the next answer must compare.
    pub(super) fn later<'a>(&'a self, names: &'a HeldNames) -> impl Iterator<Item = &'a Name> {
        let parts = self.0.as_ref();
        let all = parts
            .filter(|parts| parts.all)
            .map(|_| names.iter().map(|(name, _)| name));
        all.into_iter()
            .flatten()
            .chain(parts.into_iter().flat_map(|parts| &parts.later))
    }

    /// Names were compared: the rest of the begun answer, and if another answer `begins`, its names too. If the response is full,
    /// the next response continues with the name at which this one `stopped`.
    pub(super) fn look(&mut self, begins: bool, stopped: Option<&Name>, full: bool) {
        if self.0.is_none() && !full {
            return;
        }
        let parts = self.0.get_or_insert_default();
        let now = parts.now.take();
        let looked = if begins { Some(parts.take_later()) } else { now };
        if full {
            let rest = looked.zip(stopped).map(|(looked, stopped)| looked.rest(stopped));
            parts.now = Some(rest.unwrap_or_default());
        }
        self.0.take_if(|parts| parts.is_empty());
    }
}

impl Parts {
    fn take_later(&mut self) -> Glance {
        if std::mem::take(&mut self.all) {
            Glance::All
        } else {
            Glance::These(std::mem::take(&mut self.later))
        }
    }

    /// Whether nothing must be compared, and no answer has begun.
    fn is_empty(&self) -> bool {
        self.now.is_none() && self.later.is_empty() && !self.all
    }
}

impl Glance {
    fn iter<'a>(&'a self, names: &'a HeldNames) -> impl Iterator<Item = &'a Name> {
        let (some, first) = match self {
            Self::These(some) => (Some(some.iter()), None),
            Self::All => (None, Some("")),
            Self::From(first) => (None, Some(first.as_str())),
        };
        let all = first.map(|first| names.from(first).map(|(name, _)| name));
        some.into_iter().flatten().chain(all.into_iter().flatten())
    }

    /// Drops the names before this one.
    fn rest(self, first: &Name) -> Self {
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
    use xds::Held;

    /// B-24: what changes while an answer is under way comes after it, even if all names must be compared.
    #[test]
    fn the_fence() {
        let name = |text: &str| Name::from(text);
        let mut table = HeldNames::default();
        ["a", "b", "c"]
            .into_iter()
            .for_each(|text| table.set(name(text), Held::Unknown));
        let mut glances = Glances::default();
        let texts = |names: &mut dyn Iterator<Item = &Name>| names.map(ToString::to_string).collect::<String>();
        for all in [false, true] {
            assert!(glances.is_empty(&table) && !glances.is_under_way());
            if all {
                glances.add_all();
            } else {
                ["b", "a", "c"].into_iter().for_each(|text| glances.add(name(text)));
            }
            assert_eq!(texts(&mut glances.later(&table)), "abc");
            glances.look(true, Some(&name("b")), true);
            assert_eq!(texts(&mut glances.iter(&table)), "bc");
            glances.add(name("a"));
            assert!(glances.is_under_way() && !glances.is_empty(&table));
            assert_eq!(texts(&mut glances.iter(&table)), "bca");
            glances.look(false, None, false);
            assert!(!glances.is_under_way());
            assert_eq!(texts(&mut glances.iter(&table)), "a");
            glances.look(true, None, false);
            assert!(glances.0.is_none());
        }
    }
}
