//! What a client says of itself, and which variants of a name it gets for that (TP2).
//!
//! Owns what follows when it says something else. Refuses to match.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::subscription::Subscription;
use crate::proto::envoy::service::discovery::v3::ResourceLocator;
use crate::xds::{Answers, Dirty, Glimpse, Item, Name, Parameters, Sight};

impl Subscription {
    /// What is known of the type, as this client sees it.
    pub(super) fn glimpse<'a>(&'a self, sight: &'a Sight) -> Glimpse<'a> {
        sight.glimpse(&self.type_url).seen_by(self.audience.as_deref())
    }

    /// The client says this of itself with every name of the type.
    pub(super) fn handle_parameters(&mut self, all: &BTreeMap<String, Parameters>) {
        let own = all.get(self.type_url.full_name()).cloned().unwrap_or_default();
        let always = (!all.is_empty()).then_some(own);
        let before = self.audience.as_deref().cloned().unwrap_or_default();
        if before.always != always {
            self.audience = Some(Arc::new(crate::xds::Audience { always, ..before }));
            self.handle_dirty(Dirty::All);
        }
    }

    /// The client says something of itself with single names. The names.
    pub(super) fn handle_locators(&mut self, locators: &[ResourceLocator], answers: &impl Answers) -> Vec<String> {
        for locator in locators.iter().filter(|locator| !locator.dynamic_parameters.is_empty()) {
            let name = self.name(&locator.name, answers);
            let own: Parameters = locator.dynamic_parameters.clone().into_iter().collect();
            let audience = Arc::make_mut(self.audience.get_or_insert_default());
            if audience.with.insert(name.clone(), own.clone()).as_ref() != Some(&own) && self.asks(&name) {
                self.owe(name);
            }
        }
        locators.iter().map(|locator| locator.name.clone()).collect()
    }

    /// What was said with a name goes with it.
    pub(super) fn forget_parameters(&mut self, name: &Name) {
        if let Some(audience) = self
            .audience
            .as_mut()
            .filter(|audience| audience.with.contains_key(name))
        {
            Arc::make_mut(audience).with.remove(name);
        }
    }

    /// F-16: counts for how many of these the client matches several variants.
    pub(super) fn note_choices(&mut self, items: &BTreeMap<Name, Item>, slot: Glimpse<'_>) {
        if self.audience.is_some() {
            let chosen = items.values().filter(|item| item.resource.constraints().is_some());
            let several = chosen.filter(|item| slot.ambiguous(item.resource.name()));
            self.ambiguous = self
                .ambiguous
                .saturating_add(u32::try_from(several.count()).unwrap_or(u32::MAX));
        }
    }

    /// C-23: the variants that the client holds and that go with this response, by name: what they demand.
    pub(super) fn withdrawn(
        &self,
        items: &BTreeMap<Name, Item>,
        removed: impl Iterator<Item = Name>,
    ) -> BTreeMap<Name, Bytes> {
        if self.audience.is_none() {
            return BTreeMap::new();
        }
        let come = items
            .iter()
            .map(|(name, item)| (name.clone(), item.resource.constraints()));
        let all = come.chain(removed.map(|name| (name, None)));
        let held = all.filter_map(|(name, new)| {
            let held = self.held(&name);
            let old = held.content()?.constraints()?;
            (Some(old) != new).then(|| (name, old.encoded().clone()))
        });
        held.collect()
    }
}
