// SPDX-License-Identifier: Apache-2.0
//! What the control plane of a zone can say, and what its view cannot know.
//!
//! Owns the limits of each way to a control plane. Judges nothing.

use xds::{Cut, Dialect, Known, Name, Reason, State};

use super::body::{Facts, Type, facts};
use super::origin::Session;
use super::zone::Zone;

impl Zone {
    /// Whether a control plane of this zone can report that a resource of this type is gone.
    pub(crate) fn says_gone(&self, kind: Type) -> bool {
        let above = self.upper.as_ref().is_none_or(|upper| upper.says_gone(kind));
        self.wire.habits.dialect == Dialect::Delta && above || kind.full_state()
    }

    /// Whether a stale entry in the wildcard hides the resource of this name: the control plane cannot report that its wildcard
    /// no longer covers it.
    pub(crate) fn hides(&self, kind: Type, name: &str) -> bool {
        let cut = self.writer.view.cut();
        let state = cut.slot(kind.type_url()).and_then(|slot| slot.wildcard.clone());
        let found = self.truth.get(kind, name);
        let covered = found.is_some_and(|content| content.covered);
        let name = Name::from(name);
        let stale = |state: &State| state.resource(&name).is_some();
        (!self.says_gone(kind) || !self.is_sure()) && !covered && state.is_some_and(|state| stale(&state))
    }

    /// Whether its control plane does not answer for a type, for everything or for names (E-18).
    pub(crate) fn withholds(&self, kind: Type, wildcard: bool) -> bool {
        let mut sessions = self
            .wire
            .legs
            .iter()
            .filter_map(|leg| leg.link.as_ref())
            .map(|link| &link.session);
        sessions.any(|session| session.has_wildcard(kind) == wildcard && session.withholds(kind, self.truth.state()))
    }

    /// E-27: whether its control plane is silent for names, which stay in their list because the other stream has the wildcard of the type.
    pub(crate) fn silences_beside_a_wildcard(&self, kind: Type) -> bool {
        let legs = self.wire.legs.iter();
        let sessions: Vec<_> = legs
            .filter_map(|leg| leg.link.as_ref())
            .map(|link| &link.session)
            .collect();
        let is_silenced = |session: &Session| session.is_silenced(kind, self.truth.state());
        sessions.iter().any(|session| session.has_wildcard(kind)) && sessions.into_iter().any(is_silenced)
    }

    /// Whether its control plane reports what has gone of what the relay declared. If it ignores declarations it cannot (C-13),
    /// and such leftovers are not judged.
    pub(crate) fn is_sure(&self) -> bool {
        self.wire.habits.manners.believes || self.wire.habits.dialect == Dialect::Sotw
    }

    /// Returns a served route in use that leads to a cluster.
    pub(crate) fn leading(&self, cut: &Cut, cluster: &str) -> Option<String> {
        let named = |kind: Type, name: &str| {
            let slot = cut.slot(kind.type_url());
            let all = slot
                .into_iter()
                .flat_map(|slot| slot.halves())
                .flat_map(|state| state.resources());
            let all = all.filter_map(|it| Some((it.name().clone(), facts(&it.body()).ok()?)));
            let leads = |(_, facts): &(Name, Facts)| facts.refers.iter().any(|other| other == name);
            all.filter(move |found| leads(found))
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        };
        let used = |route: &Name| {
            self.writer.view.demand().wants(Type::Rds.type_url(), route) || !named(Type::Lds, route.as_str()).is_empty()
        };
        let mut routes = named(Type::Rds, cluster).into_iter().filter(used);
        routes.next().map(|route| route.as_str().to_owned())
    }
}

/// Whether every member of a collection is known (C-22).
pub(crate) fn is_whole(cut: &Cut, kind: Type, collection: &str) -> bool {
    let slot = cut.slot(kind.type_url());
    slot.is_some_and(|slot| slot.named.whole(&Name::from(collection)))
}

/// Whether a name, or its collection, counts as absent only because nobody answered for it in time.
pub(crate) fn timed_out(cut: &Cut, kind: Type, name: &str) -> bool {
    let name = Name::from(name);
    let slot = cut.slot(kind.type_url());
    let silent = |name: &Name| {
        let known = slot.and_then(|slot| slot.known(name));
        matches!(known, Some(Known::Absent(Reason::TimedOut)))
    };
    silent(&name) || name.collection().is_some_and(|all| silent(&all))
}
