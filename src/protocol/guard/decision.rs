//! Which waiting removals go now.
//!
//! Owns the order in which they go: listeners, routes, clusters, endpoints. Does not know what was said of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::referrers::Referrers;
use super::removal::{Half, Removal, half_of, is_present};
use super::sources::{Going, Source, Sources, is_referred, names_routes, refers};
use super::{Guard, Within};
use xds::{Changes, Cut, HoldEnd, HoldReason, Kind, Name, Phase, ReferenceHold, TypeUrl, Update};

impl Guard {
    /// Returns the removals that wait for nothing any more. What the view, at `cut`, has forgotten meanwhile is not removed.
    /// `wanted`: whether a client wants the route configuration of this name now. To be called once all that was said is published.
    pub fn release(&mut self, cut: &Cut, wanted: impl Fn(&TypeUrl, &Name) -> bool, now: Instant) -> Vec<Changes> {
        self.ripen(now);
        self.moved |= self.referrers.is_left(&wanted);
        self.undecided |= self.moved;
        self.undecided |= self.clock.is_some_and(|clock| clock <= now);
        if !std::mem::take(&mut self.undecided) {
            return Vec::new();
        }
        self.judge(cut, now);
        let going = self.decide(cut, wanted, now);
        let released = self.let_go(going, cut, now);
        self.clock = self
            .held
            .values()
            .flat_map(BTreeMap::values)
            .filter_map(Removal::clock)
            .min();
        if self.held.is_empty() {
            self.referrers = Referrers::default();
        }
        self.ledger.change();
        released
    }

    /// Ends the quiet time of what has waited long enough.
    fn ripen(&mut self, now: Instant) {
        let mut any = false;
        while self.quiet_ends().is_some_and(|due| due <= now) {
            let Some((since, half, name)) = self.queue.pop_front() else {
                break;
            };
            let removal = self.held.get_mut(&half).and_then(|names| names.get_mut(&name));
            // The name may have returned, and gone again later.
            if let Some(removal) = removal.filter(|removal| removal.since == since) {
                removal.quiet = false;
                any = true;
            }
        }
        if any {
            // At the bound, a listener goes no later than the clusters that it leads to.
            let listeners = self.held.iter_mut().filter(|((of, _), _)| of.kind() == Kind::Lds);
            let removals = listeners.flat_map(|(_, names)| names.values_mut());
            removals.for_each(|removal| removal.quiet = false);
            self.undecided = true;
        }
    }

    /// Judges the first states that are not over.
    fn judge(&mut self, cut: &Cut, now: Instant) {
        let mass = self.settings.mass;
        if mass.within == Within::Never {
            return;
        }
        for (type_url, verdict) in self.first_states.judge(cut, &mass) {
            for ((_, _), names) in self.held.iter_mut().filter(|((of, _), _)| *of == type_url) {
                for (name, removal) in names {
                    let of = if removal.is_emptied() {
                        &verdict.emptied
                    } else {
                        &verdict.lost
                    };
                    if of.contains(name) {
                        removal.begin_mass(now + mass.hold);
                    } else if removal.is_mass(now) && removal.extended.is_none() && !removal.remembered {
                        if removal.reason().is_some() {
                            self.ledger.end(&type_url, HoldReason::Mass, HoldEnd::Additions);
                        }
                        removal.mass = None;
                    }
                }
            }
        }
    }

    /// Returns what goes now.
    fn decide(&mut self, cut: &Cut, wanted: impl Fn(&TypeUrl, &Name) -> bool, now: Instant) -> Going {
        let base = self.ready(now);
        // What refers to a held resource is known until it changes.
        let mut anew = std::mem::take(&mut self.moved) || self.are_sources(&base);
        loop {
            let mut going = base.clone();
            let mut asked = self.referred(&base, anew, now);
            if anew {
                self.forget_sources(now);
            }
            if !asked.is_empty() {
                self.follow(&mut asked, &mut going, &Sources::new(cut, &wanted));
                self.endpoints(asked, &mut going, cut);
            }
            if anew || !self.are_sources(&going) {
                return going;
            }
            anew = true;
        }
    }

    /// Forgets what refers to held resources: it is to be found again. What waits for another reason is asked for later.
    fn forget_sources(&mut self, now: Instant) {
        self.referrers.forget();
        let removals = self.held.values_mut().flat_map(BTreeMap::values_mut);
        for removal in removals.filter(|removal| removal.waits(now)) {
            removal.by = None;
        }
    }

    /// Whether held resources are referred to by any of these.
    fn are_sources(&self, going: &Going) -> bool {
        let is_source = |half: &Half, name: &Name| names_routes(half.0.kind()) || self.referrers.holds(&half.0, name);
        let mut all = going.iter().filter(|(half, _)| refers(half.0.kind()));
        !self.referrers.is_empty() && all.any(|(half, names)| names.iter().any(|name| is_source(half, name)))
    }

    /// Returns the removals that wait for nothing but what may refer to them, or for nothing at all: the latter.
    fn ready(&mut self, now: Instant) -> Going {
        let references = self.settings.references;
        let follows = self.follows_references();
        let mut going = Going::new();
        for (half, names) in &mut self.held {
            let referred = follows && is_referred(half.0.kind());
            for (name, removal) in names.iter_mut().filter(|(_, removal)| !removal.waits(now)) {
                if removal.reason() == Some(HoldReason::Mass) && !removal.is_free(now) {
                    self.ledger.end(&half.0, HoldReason::Mass, HoldEnd::Clock);
                    removal.mass_over = true;
                }
                let extended = removal.extended.as_ref().map(|(until, _)| *until);
                removal.at_most = match references {
                    ReferenceHold::For(time) => Some(removal.said + time).max(extended),
                    ReferenceHold::UntilFree | ReferenceHold::Off => None,
                };
                if !(referred && removal.follows(now)) {
                    going.entry(half.clone()).or_default().insert(name.clone());
                }
            }
        }
        going
    }

    /// Returns the removals that wait for nothing but what may refer to them: all, or those of which that is not known.
    fn referred(&self, ready: &Going, all: bool, now: Instant) -> Going {
        let mut asked = Going::new();
        for (half, names) in self.held.iter().filter(|(half, _)| is_referred(half.0.kind())) {
            let gone = ready.get(half);
            let waits = |(name, removal): &(&Name, &Removal)| {
                let known = removal.by.is_some() && !all;
                !known && !removal.waits(now) && !gone.is_some_and(|gone| gone.contains(*name))
            };
            let names: BTreeSet<Name> = names.iter().filter(waits).map(|(name, _)| name.clone()).collect();
            if !names.is_empty() {
                asked.insert(half.clone(), names);
            }
        }
        asked
    }

    /// Lets those of the asked routes and clusters go to which nothing refers, and notes what refers to the others.
    fn follow<W: Fn(&TypeUrl, &Name) -> bool>(
        &mut self,
        asked: &mut Going,
        going: &mut Going,
        sources: &Sources<'_, &W>,
    ) {
        let routes = sources.routes(going);
        self.part(Kind::Rds, asked, going, &routes);
        let clusters: BTreeSet<Name> = names_of(asked, Kind::Cds).cloned().collect();
        if clusters.is_empty() {
            return;
        }
        let mut named = self.referrers.clusters(&clusters, &routes, going, sources);
        // An aggregate cluster that only its own members hold would hold them for ever.
        let stays = |type_url: &TypeUrl, wildcard: bool, name: &Name| {
            let half = (type_url.clone(), wildcard);
            let asked = asked.get(&half).is_some_and(|names| names.contains(name));
            !asked || named.contains_key(name)
        };
        let members = sources.members(&clusters, going, stays);
        for (name, source) in members {
            named.entry(name).or_insert(source);
        }
        self.part(Kind::Cds, asked, going, &named);
    }

    /// Divides the asked names of a kind into those that something names and those that go.
    fn part(&mut self, kind: Kind, asked: &mut Going, going: &mut Going, named: &BTreeMap<Name, Source>) {
        for (half, names) in asked.iter_mut().filter(|((of, _), _)| of.kind() == kind) {
            let (stay, go) = std::mem::take(names)
                .into_iter()
                .partition(|name| named.contains_key(name));
            *names = stay;
            going.entry(half.clone()).or_default().append(&mut { go });
            let Some(removals) = self.held.get_mut(half) else {
                continue;
            };
            for name in &*names {
                let source = named.get(name);
                if let Some(source) = source {
                    self.referrers.begin(source.clone());
                }
                if let Some(removal) = removals.get_mut(name) {
                    removal.by = source.cloned();
                }
            }
        }
    }

    /// An endpoint assignment stays with the held cluster that takes its endpoints from it.
    fn endpoints(&mut self, mut asked: Going, going: &mut Going, cut: &Cut) {
        let clusters = self.held.iter().filter(|((of, _), _)| of.kind() == Kind::Cds);
        let needed = clusters.flat_map(|(half, names)| {
            let gone = going.get(half);
            let stay = names
                .keys()
                .filter(move |name| !gone.is_some_and(|gone| gone.contains(*name)));
            let state = half_of(cut, half);
            stay.filter_map(move |name| {
                let endpoints = state?.resource(name)?.endpoints()?;
                Some((endpoints.clone(), (half.0.clone(), name.clone())))
            })
        });
        let needed: BTreeMap<Name, Source> = needed.collect();
        self.part(Kind::Eds, &mut asked, going, &needed);
    }

    /// Takes these removals out of what waits.
    fn let_go(&mut self, going: Going, cut: &Cut, now: Instant) -> Vec<Changes> {
        let mut released = Vec::new();
        for (half, names) in going {
            let Some(removals) = self.held.get_mut(&half) else {
                continue;
            };
            let state = half_of(cut, &half);
            let mut updates: Vec<Update> = Vec::new();
            for name in names {
                let Some(removal) = removals.remove(&name) else {
                    continue;
                };
                if let Some(reason) = removal.reason() {
                    self.ledger.end(&half.0, reason, end_of(&removal, now));
                }
                if state.is_some_and(|state| is_present(state, &name)) {
                    updates.extend(removal.updates);
                }
            }
            if !updates.is_empty() {
                let (type_url, wildcard) = half;
                released.push(Changes {
                    type_url,
                    wildcard,
                    updates,
                    complete: None,
                    answered: None,
                    phase: Phase::Steady,
                });
            }
        }
        self.held.retain(|_, names| !names.is_empty());
        released
    }
}

fn names_of(going: &Going, kind: Kind) -> impl Iterator<Item = &Name> {
    going
        .iter()
        .filter(move |((of, _), _)| of.kind() == kind)
        .flat_map(|(_, names)| names)
}

/// Returns why a removal that goes is not held any more.
fn end_of(removal: &Removal, now: Instant) -> HoldEnd {
    let over = |at: Option<Instant>| at.is_some_and(|at| at <= now);
    if removal.released {
        HoldEnd::Person
    } else if over(removal.expires) {
        HoldEnd::Gone
    } else if over(removal.at_most) {
        HoldEnd::Clock
    } else {
        HoldEnd::Free
    }
}
