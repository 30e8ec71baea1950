//! Judges responses of types that list everything when they say anything: secrets in SotW (B-18).
//!
//! Owns what must be listed beside the news. Does not judge what is new.

use std::collections::BTreeSet;

use xds::Dialect;

use super::{Refused, Scene, Seen, Witness};
use crate::body::Type;
use crate::tally::{Broken, Rule, Tally};
use crate::wire::{Answer, Entry};

impl Witness {
    pub(super) fn lists_all(&self, kind: Type) -> bool {
        self.dialect == Dialect::Sotw && kind == Type::Sds
    }

    /// B-18: the response lists all that the client asks for and that is known, and what the client was sent and cannot be told
    /// to be gone.
    pub(super) fn check_listed(&self, answer: &Answer, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let kind = answer.kind;
        // The empty answer to a wildcard with nothing behind it brings nothing.
        if !self.lists_all(kind) || answer.entries.is_empty() {
            return Ok(());
        }
        let watch = &self.watches[&kind];
        let lens = scene.lens(kind);
        let left_out = |name: &str, what: &str| {
            let what = format!("{kind:?} {name} is left out of a response, and {what}");
            Err(Broken::new(Rule::B18, what))
        };
        for (name, resource) in &watch.present(lens) {
            tally.hit(Rule::B18);
            if answer.revision(name) != Some(lens.revision(resource)) {
                return left_out(name, "it is in the view");
            }
        }
        // What its wildcard brought, and perhaps lost before the client named it, it was not sent by name.
        let named = |name: &String| watch.names.contains(name) && !watch.perhaps.contains(name);
        for (name, sent) in watch.sent.iter().filter(|(name, _)| named(name)) {
            let stays = match watch.seen(name, lens) {
                // Nor does the relay count what the wildcard brought and has lost since.
                Seen::Unknown | Seen::Absent(_) => sent.sure && !sent.mortal && sent.place.is_some(),
                Seen::Unwanted | Seen::Uncovered | Seen::Present(_) => false,
            };
            if stays && answer.revision(name) != Some(sent.revision) {
                return left_out(name, "the client holds it");
            }
        }
        Ok(())
    }

    /// Returns the entries that the client certainly holds already: it keeps them if it rejects the response. The relay lists them
    /// beside what is new, or, if it may send them again, perhaps sends them again.
    pub(super) fn only_listed(&self, answer: &Answer, scene: &Scene<'_>) -> Listed {
        let listed = answer.entries.iter().filter(|_| self.lists_all(answer.kind));
        let watch = &self.watches[&answer.kind];
        let listed = listed.filter(|entry| !entry.wrapped && self.is_same(answer.kind, entry, scene));
        let (perhaps, surely) = listed.partition::<Vec<_>, _>(|entry| watch.licensed(&entry.name, &entry.aliases));
        let name = |entry: &Entry| entry.name.clone();
        // What it rejected before is listed too. If it rejects that again, the rejections are one, but it need not come again.
        let refused = |entry: &&Entry| {
            let revision = answer.revision(&entry.name);
            let again = |refused: &Refused| {
                (!refused.may_come() || refused.held.contains(&entry.name))
                    && refused
                        .members
                        .get(&entry.name)
                        .is_some_and(|member| *member == revision)
            };
            self.lists_all(answer.kind) && watch.refused.iter().any(again)
        };
        // It has the very content, but perhaps the relay does not count on that, as when its wildcard may have lost it meanwhile.
        let had = |entry: &&Entry| {
            let sent = watch.sent.get(&entry.name).filter(|sent| sent.sure);
            let same = sent.is_some_and(|sent| answer.revision(&entry.name) == Some(sent.revision));
            self.lists_all(answer.kind) && !entry.wrapped && same && !self.is_same(answer.kind, entry, scene)
        };
        let unsure = answer
            .entries
            .iter()
            .filter(|entry| refused(entry) || had(entry))
            .map(name);
        Listed {
            surely: surely.into_iter().map(name).collect(),
            perhaps: perhaps.into_iter().map(name).chain(unsure).collect(),
        }
    }
}

/// The names in a response that the client certainly holds already.
pub(super) struct Listed {
    /// Those that are only listed.
    pub(super) surely: BTreeSet<String>,
    /// Those that perhaps are sent again.
    pub(super) perhaps: BTreeSet<String>,
}
