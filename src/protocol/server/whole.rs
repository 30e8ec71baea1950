//! SotW answers of secrets: they bring only what is new, and list everything else beside it (B-18).
//!
//! With several secrets on one stream, Envoy takes a secret that a response leaves out for one without content, and rejects the
//! response. Owns what is listed beside the news. Does not know what is new.

use std::sync::Arc;

use super::plan::Plan;
use super::subscription::Subscription;
use xds::{Dialect, Form, Held, Item, Kind, Known, Name, Resource, TypeSight};

impl Subscription {
    /// Returns whether an answer that brings anything lists all that the client wants, in one response.
    pub(super) fn lists_all(&self) -> bool {
        self.dialect == Dialect::Sotw && self.traits().kind == Kind::Sds
    }

    /// Adds everything else that the client wants, if the response has anything to say.
    pub(super) fn plan_all(&self, slot: TypeSight<'_>, plan: &mut Plan) {
        if !self.lists_all() || plan.items.is_empty() && plan.errors.is_empty() {
            return;
        }
        for (name, entry) in self.names.iter() {
            let held = entry.held();
            let lost = || held.whole().filter(|content| self.stays(name, content, slot));
            if let Some(resource) = slot.resource(name).or_else(lost) {
                self.plan_listed(name, resource, &held, slot, plan);
            }
        }
        let passed_over = self.passed_over(slot);
        let covered = slot.wildcard().filter(|_| self.wildcard);
        let covered = covered.into_iter().flat_map(|state| state.resources());
        for resource in covered.filter(|resource| !passed_over(resource)) {
            let held = self.covered.held(resource.name());
            self.plan_listed(resource.name(), resource, &held, slot, plan);
        }
    }

    /// Whether a secret that is unknown or has gone is listed as the client was sent it: Envoy keeps and wants it, for example
    /// until a listener is drained. K-17: not if the client was sent a time to live with it. B-31: not if the client can be told of
    /// its absence.
    fn stays(&self, name: &Name, content: &Resource, slot: TypeSight<'_>) -> bool {
        let lost = !matches!(slot.known(name), Some(Known::Present(_))) && content.name() == name;
        lost && !self.is_mortal(content) && !(self.features.errors && self.error(name, slot).is_some())
    }

    /// Lists a resource that is not new. If the client rejected it before, it may accept it now.
    fn plan_listed(&self, name: &Name, resource: &Arc<Resource>, held: &Held, slot: TypeSight<'_>, plan: &mut Plan) {
        if plan.items.contains_key(resource.name()) {
            return;
        }
        let item = self.item(resource, slot, plan.allowed.now);
        let holds = held.is(resource.version());
        let form = if holds && item.form == Form::Whole {
            Form::Repeated
        } else {
            item.form
        };
        plan.put(Item { form, ..item });
        if !holds {
            plan.holds.push((name.clone(), Held::Content(resource.clone())));
        }
    }
}
