// SPDX-License-Identifier: Apache-2.0
//! Each view has what its control plane has of the names that are wanted, and nothing else is asked for (K-23).
//!
//! Owns the comparison of views with the naive model of the control planes. Knows nothing of clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xds::{Cut, Name, Resource, Target};

use crate::abilities::{is_whole, timed_out};
use crate::body::{Content, Type};
use crate::book::revision;
use crate::names::{covers, is_collection};
use crate::tally::{Broken, Rule, Tally};
use crate::zone::Zone;

impl Zone {
    /// The view has exactly what the control plane has of the wanted names.
    pub(crate) fn check(&self, above: Option<&Self>, tally: &mut Tally) -> Result<(), Broken> {
        tally.hit(Rule::K23);
        let cut = self.writer.view.cut();
        for (kind, target) in &self.writer.wanted {
            let mut views = std::iter::once(self).chain(above);
            // What is held in a wildcard hides what there is by name, too.
            let hides = |zone: &Self, name: &str| zone.hides(*kind, name) || zone.writer.holds(*kind, name);
            let hidden = matches!(target, Target::Name(name) if views.any(|zone| hides(zone, name.as_str())));
            // A name that the wildcard has brought is not asked for by name, even if the server no longer answers for the
            // wildcard.
            let named = *target != Target::Wildcard;
            let silent = self.withholds(*kind, true)
                || named && (self.withholds(*kind, false) || self.silences_beside_a_wildcard(*kind));
            if silent || hidden {
                continue;
            }
            let slot = cut.slot(kind.type_url());
            let entry = |resource: &Arc<Resource>| (resource.name().as_str().to_owned(), revision(resource));
            let truth = |content: &Arc<Content>| (content.name.clone(), content.revision);
            let mut known: BTreeMap<String, u64> = BTreeMap::new();
            let mut expected: BTreeMap<String, u64> = match target {
                Target::Wildcard => {
                    let state = slot.and_then(|slot| slot.wildcard.as_ref());
                    known.extend(state.into_iter().flat_map(|state| state.resources()).map(entry));
                    if !state.is_some_and(|state| state.complete()) {
                        return broken!(K23, "the wildcard of {kind:?} is not complete");
                    }
                    self.truth
                        .of(*kind)
                        .filter(|content| content.covered)
                        .map(truth)
                        .collect()
                }
                Target::Name(name) if is_collection(name.as_str()) => {
                    let all = slot.into_iter().flat_map(|slot| slot.named.resources());
                    known.extend(all.filter(|it| covers(name.as_str(), it.name().as_str())).map(entry));
                    self.truth.members(*kind, name.as_str()).map(truth).collect()
                }
                Target::Name(name) => {
                    known.extend(slot.and_then(|slot| slot.resource(name)).map(entry));
                    self.truth.get(*kind, name.as_str()).map(truth).into_iter().collect()
                }
            };
            if !self.says_gone(*kind) || !self.is_sure() {
                known.retain(|name, _| expected.contains_key(name));
            }
            Self::forgive_silence(*kind, target, above, &expected, &mut known);
            let held = |name: &String| {
                let mut views = std::iter::once(self).chain(above);
                views.any(|zone| zone.writer.holds(*kind, name))
            };
            // It may be older content, such as endpoints that the control plane has emptied.
            known.retain(|name, _| !held(name));
            expected.retain(|name, _| !held(name));
            if known != expected {
                return broken!(K23, "{kind:?} {target:?}: {known:?}, not {expected:?}");
            }
        }
        self.check_asked(&cut)
    }

    /// K-16: a relay above does not report a resource as gone if it only got no answer in time.
    fn forgive_silence(
        kind: Type,
        target: &Target,
        above: Option<&Self>,
        expected: &BTreeMap<String, u64>,
        known: &mut BTreeMap<String, u64>,
    ) {
        let Some(above) = above else { return };
        let cut = above.writer.view.cut();
        let asked = match target {
            Target::Name(name) => Some(name.as_str()),
            Target::Wildcard => None,
        };
        // The relay above does not know a collection as a whole any more when it forgets members that nobody confirmed in time.
        let forgotten = asked.is_some_and(|name| is_collection(name) && !is_whole(&cut, kind, name));
        let silent = |key: &str| {
            let mut names = std::iter::once(key).chain(asked);
            forgotten || names.any(|name| timed_out(&cut, kind, name))
        };
        known.retain(|key, _| expected.contains_key(key) || !silent(key));
    }

    /// K-23: what is asked of the control plane is what is wanted and not covered, once.
    fn check_asked(&self, cut: &Cut) -> Result<(), Broken> {
        if self.upper.is_some() {
            return Ok(());
        }
        let wire = &self.wire;
        let mut asked: BTreeSet<(Type, Target)> = BTreeSet::new();
        for (type_url, served) in wire
            .legs
            .iter()
            .filter_map(|leg| leg.link.as_ref())
            .flat_map(|link| &link.session.stream.types)
        {
            let Some(kind) = Type::of(type_url) else { continue };
            let names = served
                .asked
                .names
                .iter()
                .map(|name| Target::Name(Name::from(name.as_str())));
            for target in names.chain(served.asked.wildcard.then_some(Target::Wildcard)) {
                // E-17: a wildcard cannot be ended and begun again on one stream, so it goes on unseen.
                let unseen = target == Target::Wildcard;
                let wanted = self.writer.wanted.contains(&(kind, target.clone())) || unseen;
                // K-01: a list does not become empty, so names that have moved may stay in it.
                let divided = wire.divided.contains(kind.type_url());
                let once = asked.insert((kind, target.clone()));
                if !(divided || wanted && once) {
                    return broken!(K23, "{kind:?} {target:?} is asked for, and not wanted");
                }
            }
        }
        for (kind, target) in &self.writer.wanted {
            let covered = match (cut.slot(kind.type_url()), target) {
                (Some(slot), Target::Name(name)) => slot
                    .wildcard
                    .as_ref()
                    .is_some_and(|state| state.resource(name).is_some()),
                (None, _) | (_, Target::Wildcard) => false,
            };
            if !covered && !asked.contains(&(*kind, target.clone())) {
                return broken!(K23, "{kind:?} {target:?} is wanted, and not asked for");
            }
        }
        Ok(())
    }
}
