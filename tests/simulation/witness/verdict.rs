//! Judges a stream on which nothing happens any more: nothing may be owed.
//!
//! Owns the last comparison of what was sent with the cut. Never waits.

use std::collections::BTreeSet;

use xds::{Dialect, Reason};

use super::{Seen, Watch, Witness};
use crate::body::Type;
use crate::names::{canonical, covers, is_alias};
use crate::reading::{Lens, Reading};
use crate::tally::{Broken, Rule, Tally};

impl Witness {
    pub(crate) fn verdict(&self, reading: &Reading<'_>, tally: &mut Tally) -> Result<(), Broken> {
        for (kind, watch) in &self.watches {
            let lens = reading.lens(*kind);
            self.check_asked(*kind, watch, lens, tally)?;
            self.check_held(*kind, watch, lens, tally)?;
            watch.check_freed(*kind, lens, tally)?;
            self.check_first(*kind, watch, lens, tally)?;
            let exists = |name: &&String| matches!(watch.seen(name, lens), Seen::Present(_));
            if let Some(name) = watch.forced.iter().find(exists) {
                return Err(Broken::new(
                    Rule::K13,
                    format!("endpoints {name} did not follow their cluster"),
                ));
            }
            if let Some(open) = watch.open.first() {
                return Err(Broken::new(
                    Rule::Held,
                    format!("{kind:?} {} was never settled", open.nonce),
                ));
            }
        }
        Ok(())
    }

    /// Whether nothing is known of something that the client asks for, among the names for which `counts` is true; the wildcard
    /// has the empty name.
    pub(crate) fn lacks(&self, reading: &Reading<'_>, counts: impl Fn(&str) -> bool) -> bool {
        self.watches.iter().any(|(kind, watch)| {
            let lens = reading.lens(*kind);
            let unknown = |name: &&String| match watch.collections.contains(*name) {
                true => matches!(watch.extent(name, lens), Seen::Unknown),
                false => matches!(watch.seen(name, lens), Seen::Unknown),
            };
            let mut names = watch.names.iter().chain(&watch.collections);
            watch.wildcard && !lens.is_complete() && counts("") || names.any(|name| unknown(&name) && counts(name))
        })
    }

    fn check_asked(&self, kind: Type, watch: &Watch, lens: Lens<'_>, tally: &mut Tally) -> Result<(), Broken> {
        // C-15: an Envoy is not told that routes do not exist.
        let delta = self.dialect == Dialect::Delta && !(self.envoy && kind == Type::Rds);
        for (name, asked) in &watch.asked {
            // C-13: by whatever text.
            let own = canonical(name);
            let mut brought = watch.memory.iter().chain(watch.sent.keys());
            let holds = brought.any(|text| canonical(text) == own)
                || watch.reborn.contains(name)
                || watch.refused_names().contains(name.as_str());
            let seen = || match watch.collections.contains(name) {
                true => watch.extent(name, lens),
                false => watch.seen(name, lens),
            };
            let owed = match seen() {
                // The members of a collection are checked one by one. Only a full state is owed for the collection itself, even
                // if the client holds all members.
                Seen::Present(_) if watch.collections.contains(name) => {
                    self.full_state(kind) && (!watch.wildcard || lens.is_complete())
                }
                Seen::Present(resource) => asked.enough.as_deref() != Some(&resource.version().to_string()),
                // K-16: the client may hold the resource of an alias under the resource's own name, or by that alias although it was
                // sent without it.
                Seen::Absent(Reason::TimedOut) if is_alias(name) && (asked.renamed || watch.holds_any()) => false,
                Seen::Absent(Reason::TimedOut) if watch.collections.contains(name) => {
                    let members = watch.holds_of(name) || watch.brings_of(name) || watch.refuses_of(name);
                    delta && !asked.lost && !asked.arriving && !members
                }
                Seen::Absent(Reason::TimedOut) => delta && !holds,
                // K-16: a member that the client holds answered it, and has only timed out since.
                Seen::Absent(_) if watch.collections.contains(name) && watch.keeps_of(name, lens) => false,
                Seen::Absent(Reason::Said | Reason::Expired) | Seen::Uncovered => delta && !asked.lost,
                Seen::Unwanted | Seen::Unknown => false,
            };
            let known = matches!(seen(), Seen::Present(_));
            if owed {
                let rule = if known { asked.rule } else { Rule::C15 };
                return Err(Broken::new(
                    rule,
                    format!("{kind:?} {name} was asked for and never answered, {:?}", seen()),
                ));
            }
        }
        if let Some(name) = watch.all_again.iter().find(|name| lens.covers(name)) {
            return Err(Broken::new(
                Rule::C11,
                format!("{kind:?} {name} was asked for again with all others"),
            ));
        }
        let absent = watch
            .names
            .iter()
            .filter(|name| matches!(watch.seen(name, lens), Seen::Absent(_)));
        if delta {
            absent.for_each(|_| tally.hit(Rule::C15));
        }
        Ok(())
    }

    fn check_held(&self, kind: Type, watch: &Watch, lens: Lens<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let refused = watch.refused_names();
        tally.hit(Rule::Held);
        if watch.refused_set.is_some() {
            return Ok(());
        }
        let complete = lens.is_complete();
        let silent = self.full_state(kind) && watch.wildcard && !complete;
        for (name, resource) in watch.present(lens).iter().filter(|_| !silent) {
            let revision = lens.revision(resource);
            let sent = watch.sent.get(name).map(|sent| sent.revision);
            let remembered = watch.remembered.get(name);
            if remembered == Some(&resource.version().to_string()) {
                tally.hit(Rule::C13);
                continue;
            }
            // If the view has two contents of a resource, by its own name and by an alias (C-20), the client holds one of them.
            let by_alias = || {
                let mut asked = watch.names.iter().filter_map(|asked| lens.resource(asked));
                asked.any(|other| other.name().as_str() == name && sent == Some(lens.revision(other)))
            };
            // The client loses what it held by an alias when a wildcard brings something newer of the same name and then ends.
            let overtaken = !watch.wildcard && !watch.asks(name) && !lens.is_latest(name, revision);
            if sent != Some(revision) && !refused.contains(name.as_str()) && !by_alias() && !overtaken {
                let what = format!("{kind:?} {name} is @{revision} in the view, and the client was sent @{sent:?}");
                return Err(Broken::new(Rule::Held, what));
            }
        }
        let subscribed = watch.wants_any();
        for name in watch.sent.keys().chain(watch.remembered.keys()).filter(|_| subscribed) {
            let explicit = watch.asks(name);
            let aliased = watch
                .sent
                .get(name)
                .is_some_and(|sent| watch.explicit(name, &sent.aliases));
            let goes = match watch.seen(name, lens) {
                Seen::Unwanted => watch.remembered.contains_key(name) && !aliased,
                Seen::Uncovered => !aliased,
                Seen::Absent(Reason::TimedOut) => {
                    tally.hit(Rule::K16);
                    false
                }
                Seen::Absent(_) => explicit,
                Seen::Unknown | Seen::Present(_) => false,
            };
            let expressible = self.dialect == Dialect::Delta || kind.full_state();
            if goes && expressible && !refused.contains(name.as_str()) {
                return Err(Broken::new(
                    Rule::Held,
                    format!("{kind:?} {name} is gone, and the client was not told"),
                ));
            }
        }
        Ok(())
    }

    /// B-20: the first wildcard request is answered once the wildcard is complete.
    fn check_first(&self, kind: Type, watch: &Watch, lens: Lens<'_>, tally: &mut Tally) -> Result<(), Broken> {
        if !watch.wildcard {
            return Ok(());
        }
        tally.hit(Rule::B20);
        if watch.first && lens.is_complete() {
            return Err(Broken::new(
                Rule::B20,
                format!("the wildcard of {kind:?} was never answered"),
            ));
        }
        Ok(())
    }
}

impl Watch {
    /// Whether the client may hold anything.
    fn holds_any(&self) -> bool {
        !(self.sent.is_empty() && self.memory.is_empty() && self.refused.is_empty())
    }

    /// Whether the client brought along a member of a collection for which it then asked as well, and which was not answered.
    fn brings_of(&self, collection: &str) -> bool {
        let mut waits = self.asked.keys().filter(|name| covers(collection, &canonical(name)));
        waits.any(|name| self.memory.contains(name))
    }

    /// Whether the client was sent, or has brought along, a member of this collection for which its server did not answer in
    /// time.
    fn keeps_of(&self, collection: &str, lens: Lens<'_>) -> bool {
        let held = self.sent.keys().chain(&self.memory);
        let mut held = held.filter(|name| covers(collection, &canonical(name)));
        held.any(|name| matches!(self.seen(name, lens), Seen::Absent(Reason::TimedOut)))
    }

    /// Whether the client rejected what became of a member of this collection: it may hold what it held before.
    fn refuses_of(&self, collection: &str) -> bool {
        self.refused_names()
            .iter()
            .any(|name| covers(collection, &canonical(name)))
    }

    /// All names that the client rejected and that were not sent again.
    fn refused_names(&self) -> BTreeSet<&str> {
        let members = self.refused.iter().flat_map(|refused| refused.members.keys());
        members.map(String::as_str).collect()
    }
}
