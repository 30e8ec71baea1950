//! One type on one client stream: the heart of the relay, the same for both dialects.
//!
//! Owns what the client wants, what it holds, and the responses on their way. Knows nothing of other types and other clients.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::asked::Asked;
use super::asked_collections::{AskedCollections, Extent, extent};
use super::cold::Cold;
use super::covered::Covered;
use super::errors::Told;
use super::flights::Flights;
use super::glances::Glances;
use super::held_names::HeldNames;
use super::owed::Owed;
use super::spellings::Spellings;
use xds::{
    Authorities, Cut, Dialect, Dirty, Features, Known, Name, NameRule, Reason, Resource, Rights, Sight, Slot, Status,
    Target, Traits, TypeSight, TypeUrl, Viewer, Want,
};

/// One type on one client stream.
///
/// Invariant: for every name that the interest covers, the client was sent exactly what `names` and `covered` say. Exceptions are
/// names in `owed` (to be sent whatever the client holds), rejected names, names in the response on its way, and names in `dirty`
/// (not compared yet).
///
/// - A, inputs: `begin_sotw`, `begin_delta`, `go_on_sotw`, `go_on_delta`, `handle_dirty`, `force`.
/// - B, outputs: `poll`, `poll_want`. `poll` returns at most one change of the state at a time (B-24); in delta, also names that
///   the client itself asked for, even while a response is on its way.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) type_url: TypeUrl,
    pub(super) dialect: Dialect,
    pub(super) features: Features,
    pub(super) started: bool,
    /// Whether a request has named anything: from then on an empty list means nothing, not everything (B-11).
    pub(super) named: bool,
    pub(super) wildcard: bool,
    pub(super) names: HeldNames,
    /// The collections that the client asked for.
    pub(super) collections: AskedCollections,
    /// Which names the client gets.
    pub(super) viewer: Viewer,
    /// The errors that the client was sent (B-31).
    pub(super) told: Told,
    /// The client's spellings of names.
    pub(super) spellings: Spellings,
    /// What the wildcard has sent to the client.
    pub(super) covered: Covered,
    /// Names that must be answered whatever the client holds (K-12).
    pub(super) owed: Owed,
    /// Whether the first answer is owed, even if it is empty (B-20, C-17).
    pub(super) first: bool,
    /// Names that may have changed since they were last compared with what the client holds.
    pub(super) dirty: Glances,
    pub(super) flights: Flights,
    pub(super) asked: Asked,
    pub(super) cold: Cold,
    /// What the views must be told. Nearly always there is nothing, and then nothing is allocated.
    #[expect(clippy::box_collection, reason = "a subscription must stay small")]
    wants: Option<Box<VecDeque<Want>>>,
}

impl Subscription {
    /// `rights` is what the client may have of the type; `None`: everything.
    pub(super) fn new(
        type_url: TypeUrl,
        dialect: Dialect,
        features: Features,
        rights: Option<Arc<Rights>>,
        now: Instant,
    ) -> Self {
        Self {
            features: features.of_type(&type_url),
            type_url,
            dialect,
            started: false,
            named: false,
            wildcard: false,
            names: HeldNames::default(),
            collections: AskedCollections::default(),
            viewer: Viewer::new(rights),
            told: Told::default(),
            spellings: Spellings::default(),
            covered: Covered::default(),
            owed: Owed::default(),
            first: false,
            dirty: Glances::default(),
            flights: Flights::default(),
            asked: Asked::new(now),
            cold: Cold::default(),
            wants: None,
        }
    }

    /// Returns the next thing that the views must be told.
    pub(super) fn poll_want(&mut self) -> Option<Want> {
        let want = self.wants.as_mut()?.pop_front();
        self.wants.take_if(|wants| wants.is_empty());
        want
    }

    /// Notes what the views must be told.
    pub(super) fn add_wants(&mut self, wants: impl IntoIterator<Item = Want>) {
        self.wants.get_or_insert_default().extend(wants);
    }

    pub(super) fn handle_dirty(&mut self, dirty: Dirty) {
        match dirty {
            Dirty::All => {
                self.dirty.add_all();
                self.owed.wake_all();
                self.collections.stir_all();
            }
            Dirty::Names(names) => names.into_iter().for_each(|name| self.look_at(name)),
        }
    }

    /// G-08, G-17: what was still to be sent from the former view is not sent any more.
    pub(super) fn handle_moved(&mut self, now: Instant) {
        self.asked.interrupted(now);
        self.cut_off();
        self.handle_dirty(Dirty::All);
    }

    pub(super) fn look_at(&mut self, name: Name) {
        if !self.names.contains(&name) {
            return self.collections.note(name);
        }
        self.owed.wake(&name);
        self.dirty.add(name);
    }

    /// Returns what is known of a name, as far as this client's interest covers it.
    pub(super) fn current<'a>(&self, name: &Name, slot: TypeSight<'a>) -> Current<'a> {
        let asked = self.names.contains(name) || self.any_name(name).is_some();
        let known = if asked || self.asked_by_alias(name, slot) {
            slot.known(name)
        } else if self.wildcard {
            let state = slot.wildcard();
            let known = state.and_then(|state| state.known(name));
            // The wildcard covers old-style names only, and what the client may have, so a later state of it cannot cover others.
            let never = || name.authority().is_some() || !self.viewer.may_have(&self.type_url, name);
            if known.is_none() && (state.is_some_and(|state| state.complete()) || never()) {
                return Current::Uncovered;
            }
            known
        } else {
            return Current::Unwanted;
        };
        known.map_or(Current::Unknown, Current::Known)
    }

    /// Whether the client asked for the resource of this name by another of its names (C-20), which it may have (S-01).
    fn asked_by_alias(&self, name: &Name, slot: TypeSight<'_>) -> bool {
        let mut aliases = slot.named(name).into_iter().flat_map(|found| found.aliases());
        aliases.any(|alias| self.names.contains(alias) && self.is_served(alias))
    }

    /// Whether the client may hold a name that has gone and cannot be told so. K-16: a server that did not answer in time is no
    /// reason to remove it. B-18: a partial answer in SotW has no removals.
    pub(super) fn unsayable(&self, name: &Name, reason: Reason) -> bool {
        let wordless = self.dialect == Dialect::Sotw && !self.full_state();
        (reason == Reason::TimedOut || wordless) && self.held(name).perhaps()
    }

    /// Returns `name` or one of the `aliases`, if it is wanted. A wildcard covers old-style names.
    pub(super) fn wanted<'a>(&'a self, name: &'a Name, aliases: &'a [Name]) -> Option<&'a Name> {
        let mut all = std::iter::once(name).chain(aliases);
        let asked = all.find(|name| self.names.contains(name));
        asked
            .or_else(|| self.any_name(name))
            .or_else(|| (self.wildcard && !name.is_new_style()).then_some(name))
    }

    /// a resource without a name answers every requested name; returns one of them.
    fn any_name(&self, name: &Name) -> Option<&Name> {
        let names = name.is_empty().then(|| self.names.iter());
        names?.next().map(|(name, _)| name)
    }

    /// C-20: returns whether the client was sent this version of the resource by one of its aliases.
    pub(super) fn holds_by_alias(&self, resource: &Resource) -> bool {
        let mut aliases = resource.aliases().iter().filter_map(|alias| self.names.get(alias));
        aliases.any(|held| held.is(resource.version()))
    }

    /// Returns whether a SotW answer of this type lists all resources.
    pub(super) fn full_state(&self) -> bool {
        self.dialect == Dialect::Sotw && self.traits().full_state
    }

    pub(super) fn traits(&self) -> &Traits {
        self.type_url.traits()
    }

    /// Returns whether resources of this type can only be named inside the wrapper message.
    pub(super) fn wrapped(&self) -> bool {
        self.dialect == Dialect::Sotw && self.traits().name == NameRule::Wrapper
    }

    /// Returns whether the client cannot read named resources of this type: then it is only sent what has no name.
    pub(super) fn reads_nothing(&self) -> bool {
        self.wrapped() && !self.features.wrapper
    }

    /// Returns whether this resource needs the wrapper: not if it has no name.
    pub(super) fn wraps(&self, resource: &Resource) -> bool {
        self.wrapped() && !resource.name().is_empty()
    }

    /// Returns what was requested and is still unknown; `None` stands for the wildcard.
    fn missing<'a>(&'a self, slot: TypeSight<'a>) -> impl Iterator<Item = Option<&'a Name>> {
        let whole = slot.is_complete();
        let names = self.single_names().map(|(name, _)| name);
        let names = names.filter(move |name| slot.known(name).is_none());
        let unknown = move |name: &&Name| extent(name, slot) == Extent::Unknown;
        let names = names.chain(self.collections.iter().filter(unknown));
        (self.wildcard && !whole)
            .then_some(None)
            .into_iter()
            .chain(names.map(Some))
    }

    /// Returns what is wanted under one of the `served` authorities; `None`: what is requested together with old-style names.
    pub(super) fn targets<'a>(
        &'a self,
        authority: Option<&'a str>,
        served: &'a Authorities,
    ) -> impl Iterator<Item = Target> + 'a {
        let asked = self.asked_under(authority, served);
        asked.map(|name| name.cloned().map_or(Target::Wildcard, Target::Name))
    }

    /// Returns the requests for a target, one for each of the client's spellings.
    pub(super) fn wants_of(&self, target: Target) -> Vec<Want> {
        match &target {
            Target::Name(name) if self.spellings.contains(name) => self.spellings.wants(&self.type_url, name),
            Target::Name(_) | Target::Wildcard => vec![Want {
                type_url: self.type_url.clone(),
                target,
                wanted: true,
                written: None,
            }],
        }
    }

    /// Whether no resource of the type exists for the client.
    pub(super) fn has_nothing(&self) -> bool {
        self.traits().withheld || self.viewer.has_nothing()
    }

    /// F-03, S-03: whether a name is requested from servers for this client.
    pub(super) fn is_served(&self, name: &Name) -> bool {
        !name.is_nothing() && self.viewer.may_have(&self.type_url, name)
    }

    /// Returns what is asked of servers for this client; `None` stands for the wildcard.
    pub(super) fn requested(&self) -> impl Iterator<Item = Option<&Name>> {
        let asks = !self.has_nothing();
        let names = self.asked_names().filter(|name| self.is_served(name));
        let all = self.wildcard.then_some(None).into_iter().chain(names.map(Some));
        all.filter(move |_| asks)
    }

    /// Returns what of it belongs to an authority. The wildcard goes with old-style names.
    fn asked_under<'a>(
        &'a self,
        authority: Option<&'a str>,
        served: &'a Authorities,
    ) -> impl Iterator<Item = Option<&'a Name>> + 'a {
        let of = |name: Option<&'a Name>| name.and_then(|name| served.of(name));
        self.requested().filter(move |name| of(*name) == authority)
    }

    /// Returns whether a view knows nothing of something that is wanted under an authority.
    pub(super) fn lacks(&self, authority: Option<&str>, served: &Authorities, cut: &Cut) -> bool {
        let slot = cut.slot(&self.type_url);
        let whole = slot.is_some_and(|slot| slot.wildcard.as_ref().is_some_and(|state| state.complete()));
        let unknown = |slot: &Slot, name: &Name| {
            let members = name.is_collection() && slot.named.members(name).next().is_some();
            !members && slot.known(name).is_none()
        };
        self.asked_under(authority, served).any(|asked| match asked {
            None => !whole,
            Some(name) => slot.is_none_or(|slot| unknown(slot, name)),
        })
    }

    /// Returns something that was requested, is unknown, and will not be known soon, as far as its server shows; `None` inside
    /// stands for the wildcard.
    pub(super) fn hopeless<'a>(&'a self, sight: &'a Sight) -> Option<Option<&'a Name>> {
        let slot = self.type_sight(sight);
        // L-14: a reachable server may still say that a name does not exist. SotW clients would not wait for that.
        let sotw = self.dialect == Dialect::Sotw;
        self.missing_of(sight, |name| !sight.reachable(name) || sotw && !slot.answered(name))
    }

    /// Returns something that was requested, is unknown, and for which `counts` is true; `None` inside stands for the wildcard.
    pub(super) fn missing_of<'a>(
        &'a self,
        sight: &'a Sight,
        counts: impl Fn(Option<&Name>) -> bool,
    ) -> Option<Option<&'a Name>> {
        self.missing(self.type_sight(sight)).find(|name| counts(*name))
    }

    /// Whether anything is known of what was requested.
    pub(super) fn knows_any(&self, sight: &Sight) -> bool {
        let asked = usize::from(self.wildcard) + self.single_names().count() + self.collections.len();
        self.missing(self.type_sight(sight)).count() < asked
    }

    /// Returns how much of the stream's limit of names it uses.
    pub(super) fn count(&self) -> usize {
        self.names.len() + self.collections.len() + self.spellings.len()
    }

    pub(super) fn wants_nothing(&self) -> bool {
        !self.wildcard && self.names.is_empty() && self.collections.is_empty()
    }

    pub(super) fn status(&self) -> Status {
        if self.cold.has_refused() {
            Status::Error
        } else if self.is_under_way() || !self.flights.is_empty() {
            Status::Stale
        } else if self.flights.sent().is_some() {
            Status::Synced
        } else {
            Status::NotSent
        }
    }
}

/// What is known of a name, as far as a client's interest covers it.
#[derive(Debug)]
pub(super) enum Current<'a> {
    /// The client has no interest in it.
    Unwanted,
    /// The client's wildcard certainly does not cover it.
    Uncovered,
    /// Nothing is known of it.
    Unknown,
    /// This is known of it.
    Known(&'a Known),
}
