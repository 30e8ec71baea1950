//! What the client has rejected, and when it may be sent again (B-22).
//!
//! Owns the sets that were rejected as a whole. Knows nothing of full states.

use xds::Reason;

use super::{Refused, Scene, Seen, Watch, Witness};
use crate::body::Type;
use crate::reading::Lens;
use crate::tally::{Broken, Rule, Tally};

impl Witness {
    /// Called before the relay is asked for responses: a change in the view may release what was rejected (B-22).
    pub(crate) fn look(&mut self, scene: &Scene<'_>) {
        // A repeated wildcard asks again only for what the wildcard covers.
        for (kind, watch) in self.watches.iter_mut().filter(|(_, watch)| watch.again) {
            let lens = scene.lens(*kind);
            if lens.state().is_some() {
                watch.all_again.retain(|name| lens.covers(name));
            }
        }
        for (kind, watch) in self.watches.iter_mut().filter(|(_, watch)| !watch.refused.is_empty()) {
            watch.release(scene.lens(*kind));
        }
    }
}

impl Watch {
    pub(super) fn check_refused(
        &self,
        kind: Type,
        name: &str,
        revision: Option<u64>,
        licensed: bool,
        tally: &mut Tally,
    ) -> Result<(), Broken> {
        for refused in &self.refused {
            if refused.members.get(name) != Some(&revision) {
                continue;
            }
            tally.hit(Rule::B22);
            if !refused.may_come() && !licensed {
                let what =
                    format!("{kind:?} {name}@{revision:?} was refused, and nothing of that response has changed");
                return Err(Broken::new(Rule::B22, what));
            }
        }
        Ok(())
    }

    /// B-22: a member that changes, goes or is given up releases its whole group.
    fn release(&mut self, lens: Lens<'_>) {
        let all = self
            .refused
            .iter()
            .map(|refused| refused.released || self.differs(refused, |_| true, lens));
        let released: Vec<bool> = all.collect();
        for (refused, released) in self.refused.iter_mut().zip(released) {
            refused.released = released;
        }
    }

    /// Whether a member for which `counts` is true is now different from what was rejected.
    pub(super) fn differs(&self, refused: &Refused, counts: impl Fn(&String) -> bool, lens: Lens<'_>) -> bool {
        let mut members = refused.members.iter().filter(|(name, _)| counts(name));
        members.any(|(name, revision)| {
            let aliases: Vec<&String> = self.sent.get(name).into_iter().flat_map(|sent| &sent.aliases).collect();
            let wanted = std::iter::once(name)
                .chain(aliases)
                .find(|name| self.asks(name) || self.wildcard);
            match wanted.map_or(Seen::Unwanted, |name| self.seen(name, lens)) {
                Seen::Unknown | Seen::Absent(Reason::TimedOut) => false,
                Seen::Uncovered | Seen::Absent(_) => revision.is_some(),
                Seen::Present(resource) => *revision != Some(lens.revision(resource)),
                Seen::Unwanted => true,
            }
        })
    }

    /// Checks, at the end, that all released members were sent again.
    pub(super) fn check_freed(&self, kind: Type, lens: Lens<'_>, tally: &mut Tally) -> Result<(), Broken> {
        for refused in &self.refused {
            // What was perhaps only listed beside the others is no reason to send these.
            if !refused.freed && !self.differs(refused, |name| !refused.held.contains(name), lens) {
                continue;
            }
            tally.hit(Rule::B22);
            // C-20: the resource of an alias was sent by its own name.
            let came = |name: &str, own: &str, revision: u64| {
                let sent = self.sent.get(own).map(|sent| sent.revision);
                name != own && sent == Some(revision) && !refused.members.contains_key(own)
            };
            let comes = |name: &&String| match self.seen(name, lens) {
                Seen::Present(resource) => !came(name, resource.name().as_str(), lens.revision(resource)),
                Seen::Unwanted | Seen::Uncovered | Seen::Unknown | Seen::Absent(_) => false,
            };
            let mut members = refused.members.keys().filter(|name| !refused.held.contains(*name));
            if let Some(name) = members.find(comes) {
                let members = refused.members.iter();
                let with: Vec<_> = members
                    .map(|(name, revision)| (name, revision, self.seen(name, lens)))
                    .collect();
                let what = format!(
                    "{kind:?} {name} was refused with something that is different now, and never came again: {with:?}"
                );
                return Err(Broken::new(Rule::B22, what));
            }
        }
        Ok(())
    }
}
