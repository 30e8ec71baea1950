//! The content of one response of a partial answer.
//!
//! Owns the effects of the response on what the client holds, name by name, and the limit of its size. Does not know the order of
//! the names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::compose::Allowed;
use super::covered::Ahead;
use super::say::Say;
use super::subscription::{Current, Subscription};
use xds::{Dialect, Errors, Extra, Form, Held, Item, Kind, Known, Name, Resource, Room, Seen, TypeSight};

/// What a response will contain, and what is left for later.
pub(super) struct Plan {
    pub(super) allowed: Allowed,
    /// Whether heartbeats are planned as well.
    beats: bool,
    pub(super) room: Room,
    pub(super) items: BTreeMap<Name, Item>,
    pub(super) removed: BTreeSet<Name>,
    /// Those of them that never existed.
    pub(super) missing: BTreeSet<Name>,
    /// What the client holds afterwards under names that it asked for.
    pub(super) holds: Vec<(Name, Held)>,
    /// What becomes of owed names, in the order in which it was planned.
    pub(super) owed: Vec<(Name, Debt)>,
    /// Names that are removed once other types allow it.
    pub(super) later: BTreeSet<Name>,
    /// Names that may be removed once everything else is planned.
    pub(super) gone: Vec<Name>,
    /// How many of them there may be.
    gone_at_once: usize,
    /// Whether there are so many of them.
    crowded: bool,
    /// The difference of the wildcard, and how many of its changes are planned.
    pub(super) ahead: Option<(Ahead, usize)>,
    /// How far the response brings the client in the wildcard's difference.
    pub(super) reach: Option<Reach>,
    pub(super) errors: Errors,
    pub(super) since: Option<Instant>,
    /// Whether removals wait for other types.
    pub(super) removals_wait: bool,
    /// Whether it adds, changes or answers anything.
    pub(super) adds: bool,
    /// Whether it begins with the names that have changed since the last answer began.
    pub(super) begins: bool,
    /// The first name to compare for which there was no room.
    pub(super) stopped: Option<Name>,
}

/// How many names one response may say to be gone. A name costs far more than its bytes, and other clients have their turns between
/// two responses.
const GONE_AT_ONCE: usize = 2048;

/// What becomes of a name that is owed.
pub(super) enum Debt {
    /// A repeated wildcard asks for it again (C-11), so that it is owed from now on.
    Made,
    /// It cannot be paid before something changes.
    Waits,
    /// This response answers the name, or it needs no answer.
    Paid,
}

/// How far a response brings a client in the wildcard's difference.
pub(super) enum Reach {
    /// This many changes of the difference are planned.
    Part(Ahead, usize),
    /// All changes are planned. Has the rest, if there was no room for all removals.
    Whole(Seen, Option<Ahead>),
}

impl Plan {
    pub(super) fn new(chunk: usize, allowed: Allowed) -> Self {
        Self {
            allowed,
            beats: true,
            room: Room::new(chunk),
            items: BTreeMap::new(),
            removed: BTreeSet::new(),
            missing: BTreeSet::new(),
            holds: Vec::new(),
            owed: Vec::new(),
            later: BTreeSet::new(),
            gone: Vec::new(),
            gone_at_once: GONE_AT_ONCE,
            crowded: false,
            ahead: None,
            reach: None,
            errors: Errors::new(),
            since: None,
            removals_wait: false,
            adds: false,
            begins: false,
            stopped: None,
        }
    }

    /// Creates a plan that only shows whether there is anything to add: with room for one change, and without heartbeats.
    pub(super) fn question(now: Instant) -> Self {
        let allowed = Allowed {
            removals: false,
            busy: false,
            now,
        };
        Self {
            beats: false,
            gone_at_once: usize::MAX,
            ..Self::new(0, allowed)
        }
    }

    /// Whether no further name may be looked at for this response.
    pub(super) const fn is_full(&self) -> bool {
        self.room.is_full() || self.crowded
    }

    /// Whether it is full of names that may be removed.
    pub(super) const fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// Adds a name that may be removed once everything else is planned.
    fn note_gone(&mut self, name: &Name) {
        self.gone.push(name.clone());
        self.crowded = self.gone.len() >= self.gone_at_once;
    }

    /// Returns whether there is room for a resource.
    pub(super) fn takes(&mut self, resource: &Resource) -> bool {
        // Names often come in order, so that the name comes after all that are planned.
        let planned = self
            .items
            .last_key_value()
            .is_some_and(|(last, _)| last >= resource.name());
        planned && self.items.contains_key(resource.name()) || self.room.takes(resource.weight())
    }

    /// Notes that the response brings this resource, and when it arrived if it is new to the client.
    fn add(&mut self, resource: &Resource, new: bool) {
        self.adds = true;
        if new {
            self.since = self.since.into_iter().chain([resource.received()]).min();
        }
    }

    pub(super) fn put(&mut self, item: Item) {
        self.items.insert(item.resource.name().clone(), item);
    }

    /// Removes as many of these names as there is room for. If that is not all of them, returns what the client then still holds
    /// of `of`.
    pub(super) fn remove_of(&mut self, names: Vec<Name>, of: Option<&Arc<Extra>>) -> Option<Arc<Extra>> {
        let fit = names.into_iter().take_while(|name| self.room.takes_name(name));
        let fit: Vec<Name> = fit.collect();
        let left = of.filter(|_| self.room.is_full());
        let left = left.map(|extra| Arc::new(extra.without(fit.iter())));
        self.removed.extend(fit);
        left
    }
}

impl Subscription {
    /// Plans the answer for an owed name. A name that cannot be answered stays owed, and so does one for which there is no room.
    pub(super) fn plan_owed(&self, name: &Name, slot: TypeSight<'_>, plan: &mut Plan) {
        match self.answer(name, slot) {
            Say::Put(resource) if plan.takes(resource) => {
                self.plan_content(name, resource, slot, plan);
                plan.put(self.item(resource, slot, plan.allowed.now));
            }
            Say::Put(_) => return,
            // What a wildcard covers may be answered without a change of the name itself.
            Say::Wait if self.names.contains(name) => return plan.owed.push((name.clone(), Debt::Waits)),
            Say::Wait => return,
            Say::Gone => return plan.note_gone(name),
            Say::Past | Say::Beat(_) | Say::Nothing => {}
        }
        plan.owed.push((name.clone(), Debt::Paid));
    }

    pub(super) fn plan_glanced(&self, name: &Name, slot: TypeSight<'_>, plan: &mut Plan) {
        match self.news(name, slot) {
            Say::Put(resource) if plan.takes(resource) => {
                self.plan_content(name, resource, slot, plan);
                plan.put(self.item(resource, slot, plan.allowed.now));
            }
            Say::Beat(resource) => {
                // A client that declared this version holds this content.
                if self.held(name).whole().is_none() {
                    plan.holds.push((name.clone(), Held::Content(resource.clone())));
                }
                self.plan_beat(resource, slot, plan);
            }
            Say::Past if self.names.has_member(name) => plan.holds.push((name.clone(), Held::Nothing)),
            Say::Gone if plan.allowed.removals => plan.note_gone(name),
            Say::Gone => drop(plan.later.insert(name.clone())),
            Say::Put(_) | Say::Past | Say::Wait | Say::Nothing => {}
        }
    }

    /// Plans a resource of the wildcard that is new, changed, or sent again.
    pub(super) fn plan_change(&self, resource: &Arc<Resource>, again: bool, slot: TypeSight<'_>, plan: &mut Plan) {
        if again {
            self.plan_content(resource.name(), resource, slot, plan);
        } else {
            // C-20: a client that asked by an alias holds what the wildcard brings, even if it rejected it before, or may not have
            // that alias any more.
            let aliases = resource.aliases().iter();
            let holds = |alias: &Name| self.is_served(alias) || self.held(alias).perhaps();
            let asked = aliases.filter(|alias| self.names.contains(alias) && holds(alias));
            let holds = asked.map(|alias| (alias.clone(), Held::Content(resource.clone())));
            plan.holds.extend(holds);
            plan.add(resource, true);
        }
        plan.put(self.item(resource, slot, plan.allowed.now));
    }

    /// Notes what the client holds once it has this content, under every name by which it asked for it (C-20) or holds it.
    pub(super) fn plan_content(&self, name: &Name, resource: &Arc<Resource>, slot: TypeSight<'_>, plan: &mut Plan) {
        plan.add(resource, !self.held(name).is(resource.version()));
        let others = std::iter::once(resource.name()).chain(resource.aliases());
        let asked = |other: &Name| self.names.contains(other) && self.is_served(other);
        let others = others.filter(|other| *other != name && (asked(other) || self.held(other).perhaps()));
        for name in std::iter::once(name).chain(others) {
            if self
                .held(name)
                .content()
                .is_some_and(|held| held.name() != resource.name())
            {
                self.plan_former(name, slot, plan);
            }
            plan.holds.push((name.clone(), Held::Content(resource.clone())));
        }
    }

    /// C-20: a client that asked by an alias holds the resource under its own name. If the alias now means nothing or another
    /// resource, the old resource is removed, or the wildcard's version of it is sent, which was left out while the alias meant
    /// it. If it is unknown whether the wildcard has it, the client holds it by the wildcard until that is known.
    fn plan_former(&self, name: &Name, slot: TypeSight<'_>, plan: &mut Plan) {
        let held = self.held(name);
        let Some(own) = held.own_name(name).filter(|_| self.dialect == Dialect::Delta) else {
            return;
        };
        let mut asked = self.names.iter().filter_map(|(other, _)| slot.resource(other));
        if self.names.contains(own) || asked.any(|it| it.name() == own) {
            return;
        }
        match self.current(own, slot) {
            Current::Unwanted | Current::Uncovered => drop(plan.removed.insert(own.clone())),
            Current::Known(Known::Present(new)) if !held.is(new.version()) && !self.refuses(new) => {
                plan.add(new, true);
                plan.holds.push((own.clone(), Held::Content(new.clone())));
                plan.put(self.item(new, slot, plan.allowed.now));
            }
            Current::Known(_) => {}
            Current::Unknown => plan.holds.push((own.clone(), held.clone())),
        }
    }

    /// Plans a removal. Returns whether there was room for it.
    pub(super) fn plan_removal(&self, name: &Name, slot: TypeSight<'_>, plan: &mut Plan) -> bool {
        let holds_nothing = !self.held(name).perhaps();
        if self.dialect == Dialect::Sotw || holds_nothing && self.names.contains(name) && self.waits_for_routes() {
            return true;
        }
        // What the wildcard lost and the client gave up goes once.
        if !plan.removed.contains(name) && !plan.room.takes_name(name) {
            return false;
        }
        if holds_nothing {
            plan.missing.insert(name.clone());
        }
        self.plan_former(name, slot, plan);
        plan.removed.insert(name.clone());
        plan.holds.push((name.clone(), Held::Nothing));
        true
    }

    /// C-15: whether this client gets no answer for a name that does not exist. An Envoy that is told that routes do not exist ends
    /// its wait for them, but never uses the listener. Without an answer it uses the listener after `initial_fetch_timeout`.
    fn waits_for_routes(&self) -> bool {
        self.features.envoy && self.traits().kind == Kind::Rds
    }

    /// K-17: plans a heartbeat, only for a client that holds exactly that content. C-21: a virtual host is sent again whole. E-11:
    /// if the resource has no time to live any more, only the resource itself can say so, and is sent again.
    pub(super) fn plan_beat(&self, resource: &Arc<Resource>, slot: TypeSight<'_>, plan: &mut Plan) {
        let beat = slot.expiry(resource).map(|expiry| expiry.beat);
        if !plan.beats || !self.reads_ttl() || self.knows_beat(resource, slot) || self.refuses(resource) {
            return;
        }
        // What has gone has no time to live either. A begun answer may still have it; its removal follows.
        let current = slot.resource(resource.name());
        if beat.is_none() && current.is_none_or(|current| current.version() != resource.version()) {
            return;
        }
        let heartbeat = beat.is_some() && self.traits().kind != Kind::Vhds;
        let item = self.item(resource, slot, plan.allowed.now);
        let form = match self.dialect {
            Dialect::Delta if heartbeat => Form::Heartbeat,
            Dialect::Delta => Form::Repeated,
            Dialect::Sotw => item.form,
        };
        if !plan.items.contains_key(resource.name()) && plan.takes(resource) {
            plan.put(Item { form, ..item });
        }
    }
}
