//! The parameters of a client, and the variants of names that it gets for them (TP2).
//!
//! Owns what follows when the parameters change. Does not match them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::name_faults::{NameBound, located};
use super::stream::Server;
use super::subscription::Subscription;
use proto::envoy::service::discovery::v3::ResourceLocator;
use xds::{
    Answers, Audience, Choice, Constraints, Dialect, Dirty, Held, Item, Name, Parameters, Resource, Sight, TypeSight,
    TypeUrl, Withdrawn,
};

impl Server {
    /// Finds out what the client sees of each type with its parameters.
    pub(crate) fn choose(&mut self, sight: &Sight, answers: &impl Answers) {
        for subscription in &mut self.types {
            subscription.choose(sight, answers);
        }
    }

    /// Returns what is known of a type, as the client sees it.
    pub(crate) fn type_sight<'a>(&'a self, type_url: &'a TypeUrl, sight: &'a Sight) -> TypeSight<'a> {
        let found = self.types.iter().find(|one| one.type_url == *type_url);
        found.map_or_else(|| sight.type_sight(type_url), |one| one.type_sight(sight))
    }
}

impl Subscription {
    /// Returns what is known of the type, as this client sees it.
    pub(super) fn type_sight<'a>(&'a self, sight: &'a Sight) -> TypeSight<'a> {
        sight.type_sight(&self.type_url).seen_by(&self.viewer)
    }

    /// Finds out what this client sees of the wildcard's state. To be called before anything is composed from it.
    pub(super) fn choose(&mut self, sight: &Sight, answers: &impl Answers) -> &Self {
        let looks = self.wildcard && (self.viewer.is_restricted() || self.viewer.audience().is_some());
        if looks
            && let Some(state) = sight.type_sight(&self.type_url).wildcard()
            && !self.viewer.knows(state)
        {
            self.viewer.look_at(state, answers);
        }
        self
    }

    /// These parameters of the client hold for every name of the type.
    pub(super) fn handle_parameters(&mut self, all: &BTreeMap<String, Parameters>) {
        // A relay gets the variants of all its own clients. In SotW, only the wrapper around a body can say for which clients it
        // is.
        let passes_on = self.features.variants && (self.dialect == Dialect::Delta || self.features.wrapper);
        let own = || all.get(self.type_url.full_name()).cloned().unwrap_or_default();
        let one = || (!all.is_empty()).then(|| Choice::One(own()));
        let always = if passes_on { Some(Choice::All) } else { one() };
        if self.viewer.says_always(always) {
            self.cut_off();
            self.handle_dirty(Dirty::All);
        }
    }

    /// These parameters hold for single names, for collections or for `*`. Returns the names in the locators. Locators with a text
    /// over the bound are skipped.
    pub(super) fn handle_locators(
        &mut self,
        locators: &[ResourceLocator],
        bound: NameBound,
        answers: &impl Answers,
    ) -> Vec<String> {
        let admitted =
            |locator: &&ResourceLocator| located(std::slice::from_ref(locator)).all(|text| bound.admits(text));
        for locator in locators.iter().filter(admitted) {
            let own: Parameters = locator.dynamic_parameters.clone().into_iter().collect();
            let passes_on = self.viewer.audience().is_some_and(Audience::passes_on);
            if passes_on || own.is_empty() && self.viewer.audience().is_none() {
                continue;
            }
            let name = self.name(&locator.name, answers);
            let changed = self
                .viewer
                .says_with(&name, (!own.is_empty()).then_some(Choice::One(own)));
            if changed && self.asks(&name) {
                self.stir(&name);
            }
        }
        let admitted = locators.iter().filter(admitted);
        admitted.map(|locator| locator.name.clone()).collect()
    }

    /// The parameters of a name are forgotten with the name.
    pub(super) fn forget_parameters(&mut self, name: &Name) {
        if self.viewer.audience().is_some() && self.viewer.says_with(name, None) {
            self.stir(name);
        }
    }

    /// The client does not ask for a name any more. C-08: under a wildcard, it may still hold a variant of it.
    pub(super) fn forget_doubt(&mut self, name: &Name) {
        if self.viewer.audience().is_some_and(Audience::doubts) && !self.held(name).perhaps() {
            self.settle_doubts(std::iter::once(name));
        }
    }

    /// It is known now which variants of these names the client holds.
    pub(super) fn settle_doubts<'a>(&mut self, names: impl Iterator<Item = &'a Name>) {
        if let Some(audience) = self.viewer.audience_mut() {
            audience.settle(names);
        }
    }

    /// The wildcard has ended: the client holds nothing any more by that alone.
    pub(super) fn forget_covered_doubts(&mut self) {
        if let Some(audience) = self.viewer.audience_mut() {
            audience.settle_others(|name| self.names.contains(name));
        }
    }

    /// The client may now get another variant of a name, or of the members of a collection.
    fn stir(&mut self, name: &Name) {
        self.cut_off();
        self.look_at(name.clone());
    }

    /// F-16: counts for how many of the sent names the client matches several variants. What the client may have held of these
    /// names, and of removed ones, is settled.
    pub(super) fn note_choices<'a>(
        &mut self,
        items: impl Iterator<Item = &'a Item> + Clone,
        removed: &[Name],
        slot: TypeSight<'_>,
    ) {
        let Some(audience) = self.viewer.audience_mut() else {
            return;
        };
        let names = items.clone().map(|item| item.resource.name());
        audience.settle(names.chain(removed));
        let chosen = items.filter(|item| item.resource.constraints().is_some());
        let several = chosen.filter(|item| {
            let name = item.resource.name();
            self.says(name).is_some_and(|own| slot.ambiguous(name, own))
        });
        let several = u32::try_from(several.count()).unwrap_or(u32::MAX);
        self.ambiguous = self.ambiguous.saturating_add(several);
    }

    /// Returns the client's parameters for a name, whether it wants the name or the wildcard.
    fn says(&self, name: &Name) -> Option<&Choice> {
        let audience = self.viewer.audience()?;
        if self.names.contains(name) {
            audience.choice(name)
        } else {
            audience.of_wildcard()
        }
    }

    /// C-23: returns the variants that the client may hold and that this response removes.
    pub(super) fn withdrawn(
        &self,
        items: &BTreeMap<Name, Item>,
        removed: impl Iterator<Item = Name>,
        slot: TypeSight<'_>,
    ) -> Withdrawn {
        // A client that is a relay takes what a response has of a name for everything that exists of it.
        let Some(audience) = self.viewer.audience().filter(|audience| !audience.passes_on()) else {
            return Withdrawn::new();
        };
        let come = items.iter().map(|(name, item)| (name.clone(), Some(item)));
        let all = come.chain(removed.map(|name| (name, None)));
        let held = all.filter_map(|(name, new)| {
            let comes = new.map(|item| item.resource.constraints().map(Constraints::encoded));
            let goes = |old: &Option<Bytes>| comes.is_none_or(|new| old.is_some() && old.as_ref() != new);
            let old = audience.doubted(&name).cloned().chain(self.demanded(&name, slot));
            let mut old: Vec<Option<Bytes>> = old.filter(goes).collect();
            old.sort_unstable();
            old.dedup();
            old.iter().any(Option::is_some).then_some((name, old))
        });
        held.collect()
    }

    /// Returns the constraints of what the client certainly holds of a name, if it holds anything.
    fn demanded(&self, name: &Name, slot: TypeSight<'_>) -> impl Iterator<Item = Option<Bytes>> + use<> {
        let held = self.held(name);
        let constraints = match &held {
            Held::Nothing | Held::Unknown => None,
            Held::Content(held) => Some(held.constraints()),
            Held::Version(version) => Some(slot.demands(name, *version)),
        };
        let encoded = constraints.map(|constraints| constraints.map(Constraints::encoded).cloned());
        encoded.into_iter()
    }

    /// Returns a copy of a bundle in which each part has its remaining time to live.
    pub(super) fn living(&self, resource: &Arc<Resource>, slot: TypeSight<'_>, now: Instant) -> Arc<Resource> {
        if !resource.is_bundle() || self.ttl(resource, slot, now).is_none() {
            return resource.clone();
        }
        let parts = resource.parts();
        let parts = parts.map(|part| (part.clone(), self.ttl(part, slot, now)));
        Resource::bundle(parts.collect()).map_or_else(|| resource.clone(), Arc::new)
    }

    /// C-23: nobody knows whether the client applies this resource. If it is a variant, it goes by its full name all the same.
    pub(super) fn note_doubt(&mut self, resource: &Resource) {
        let delta = self.dialect == Dialect::Delta;
        if let Some(audience) = self.viewer.audience_mut().filter(|_| delta) {
            audience.doubt(resource.name(), resource.constraints());
        }
    }

    /// The same for what is on its way of names that the client has just begun to ask for.
    pub(super) fn note_doubts(&mut self, begins: impl Fn(&Name) -> bool) {
        let delta = self.dialect == Dialect::Delta;
        let Some(audience) = self.viewer.audience_mut().filter(|_| delta) else {
            return;
        };
        for resource in self.flights.arriving().filter(|resource| begins(resource.name())) {
            audience.doubt(resource.name(), resource.constraints());
        }
    }

    /// C-25: the client rejected a response, and may hold what that withdrew.
    pub(super) fn note_withdrawn(&mut self, withdrawn: &Withdrawn) {
        if self.dialect == Dialect::Sotw {
            return;
        }
        for (name, variants) in withdrawn {
            if self.wanted(name, &[]).is_some()
                && let Some(audience) = self.viewer.audience_mut()
            {
                audience.doubt_all(name, variants);
            }
        }
    }

    /// The variant that was sent for the name itself may differ from the one for the wildcard: the client holds the one that was
    /// sent last.
    pub(super) fn note_own(&mut self, name: &Name, held: &Held) {
        let covered = self.covered.held(name);
        let constraints = |held: &Held| held.content().and_then(|content| content.constraints().cloned());
        let bundle = |held: &Held| held.content().filter(|it| it.is_bundle()).map(|it| it.version());
        let differs = constraints(held) != constraints(&covered) || bundle(held) != bundle(&covered);
        // K-09: SotW has no removal for a name that the wildcard does not have.
        let told = self.dialect == Dialect::Delta || covered.perhaps();
        if self.viewer.audience().is_some() && told && differs {
            self.note_covered(vec![(name.clone(), held.clone())]);
        }
    }
}
