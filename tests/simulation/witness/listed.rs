//! Judges responses of types that list everything when they say anything: secrets in SotW (B-18).
//!
//! Owns what must be listed beside the news. Does not judge what is new.

use std::collections::BTreeSet;

use distributary::xds::{Dialect, Reason};

use super::{Scene, Seen, Witness};
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
        for (name, sent) in watch.sent.iter().filter(|(name, _)| watch.names.contains(*name)) {
            let stays = match watch.seen(name, lens) {
                Seen::Unknown | Seen::Absent(Reason::Said | Reason::TimedOut) => sent.sure && !sent.mortal,
                Seen::Absent(Reason::Expired) | Seen::Unwanted | Seen::Uncovered | Seen::Present(_) => false,
            };
            if stays && answer.revision(name) != Some(sent.revision) {
                return left_out(name, "the client holds it");
            }
        }
        Ok(())
    }

    /// Returns the entries that the client certainly holds already: it keeps them if it rejects the response.
    pub(super) fn only_listed(&self, answer: &Answer, scene: &Scene<'_>) -> BTreeSet<String> {
        let listed = answer.entries.iter().filter(|_| self.lists_all(answer.kind));
        let watch = &self.watches[&answer.kind];
        let again =
            |entry: &&Entry| self.is_same(answer.kind, entry, scene) && !watch.licensed(&entry.name, &entry.aliases);
        let listed = listed.filter(|entry| !entry.wrapped).filter(again);
        listed.map(|entry| entry.name.clone()).collect()
    }
}
