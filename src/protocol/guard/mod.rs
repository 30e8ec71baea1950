//! Removals that wait: until the control plane has said what replaces the removed resources, until nothing that is served refers to
//! them, and where too much is lost at once, until somebody has had time to look.
//!
//! Owns which removals wait and how long. Knows nothing of clients: the content that is about to go is still there for all.

mod decision;
mod first_state;
mod inheritance;
mod intake;
mod ledger;
mod reading;
mod referrers;
mod removal;
mod sources;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use first_state::FirstStates;
use inheritance::Inheritance;
use ledger::Ledger;
use referrers::Referrers;
use removal::{Half, Removal, Removals, removes};

use xds::{
    Changes, Cut, GuardSettings, HeldRemoval, Hold, HoldAction, HoldEnd, HoldEvent, HoldOrder, HoldReason, HoldTarget,
    Kind, Name, ReferenceHold, Target, TypeUrl, Update, Within,
};

/// The removals of one view that wait. Additions and changes never wait, and a name that returns was never gone. There are three
/// rules; a removal goes once none of them holds it:
///
/// - *Quiet* (D-03): a control plane may remove a cluster before it sends the route that leads elsewhere; go-control-plane does so
///   in each delta snapshot. So a cluster, a listener or an endpoint assignment goes only when the control plane has sent nothing
///   that directs traffic for a while.
/// - *Referenced*: a cluster or a route configuration goes once no served listener and no route in use names it, and the endpoint
///   assignment of a held cluster with the cluster.
/// - *Mass*: where the first whole state of a stream lacks much of what was served, what it lacks goes when its time is over.
///
/// What goes goes in one step, in the order listeners, routes, clusters, endpoints.
///
/// - B, inputs: `hold`, with all that the control plane says; `hold_again` for a source that always states all it has;
///   `handle_order`, from people; `handle_settings`.
/// - D, outputs: `release`, after each published change and when `poll_timeout` is due; `take_holds`.
///
/// Invariant: `held` has no empty half.
#[derive(Debug)]
pub struct Guard {
    quiet: Duration,
    bound: Duration,
    settings: GuardSettings,
    held: BTreeMap<Half, Removals>,
    /// The names that wait for a quiet time, oldest first. A name that has returned stays here until its time.
    queue: VecDeque<(Instant, Half, Name)>,
    /// When something that directs traffic came last.
    directed: Option<Instant>,
    first_states: FirstStates,
    inheritance: Inheritance,
    /// What an earlier run of the relay has held, until the control plane speaks of it.
    remembered: BTreeMap<(Half, Name), (HoldReason, HeldRemoval)>,
    /// What refers to held resources.
    referrers: Referrers,
    /// When the next clock of a held removal ends.
    clock: Option<Instant>,
    /// Whether what refers to held resources may have changed.
    moved: bool,
    /// Whether something else has changed that may let a removal go.
    undecided: bool,
    ledger: Ledger,
}

impl Guard {
    /// Creates a guard whose removals wait until nothing that directs traffic has come for `quiet`, but at most `bound`, and by
    /// these settings.
    #[must_use]
    pub fn new(quiet: Duration, bound: Duration, settings: GuardSettings) -> Self {
        Self {
            quiet,
            bound,
            settings,
            held: BTreeMap::new(),
            queue: VecDeque::new(),
            directed: None,
            first_states: FirstStates::default(),
            inheritance: Inheritance::default(),
            remembered: BTreeMap::new(),
            referrers: Referrers::default(),
            clock: None,
            moved: false,
            undecided: false,
            ledger: Ledger::default(),
        }
    }

    /// Replaces the times of the quiet rule. What waits already goes by the new ones.
    pub const fn set(&mut self, quiet: Duration, bound: Duration) {
        self.quiet = quiet;
        self.bound = bound;
    }

    /// Replaces the settings of the other rules. What a rule that is off holds is let go; what a clock holds keeps its time.
    pub fn handle_settings(&mut self, settings: GuardSettings) {
        if self.settings == settings {
            return;
        }
        self.settings = settings;
        self.moved = true;
        if settings.mass.within == Within::Never {
            self.first_states = FirstStates::default();
            for ((type_url, _), removals) in &mut self.held {
                for removal in removals.values_mut().filter(|removal| removal.mass.is_some()) {
                    if let Some(reason) = removal.reason() {
                        self.ledger.end(type_url, reason, HoldEnd::Settings);
                    }
                    removal.mass = None;
                }
            }
        }
    }

    /// An earlier run of the relay held these. If the control plane removes them again, their times go on.
    pub fn remember(&mut self, holds: &[Hold]) {
        for hold in holds {
            for (name, removal) in &hold.removals {
                let half = (hold.type_url.clone(), removal.wildcard);
                let held = (hold.reason, removal.clone());
                self.remembered.insert((half, name.clone()), held);
            }
        }
    }

    /// A person has given an order. Returns how many removals it is for. Released removals go with the next `release`; what only
    /// they referred to goes with them.
    pub fn handle_order(&mut self, order: &HoldOrder, now: Instant) -> usize {
        let mut concerned = 0;
        for ((type_url, _), removals) in &mut self.held {
            for (name, removal) in removals {
                let Some(reason) = removal.reason() else { continue };
                if !order.target.is(type_url, reason, name) {
                    continue;
                }
                concerned += 1;
                match order.action {
                    HoldAction::Release => removal.released = true,
                    HoldAction::Extend(time) => {
                        let until = now + time;
                        removal.released = false;
                        removal.extended = Some((until, order.reason.clone()));
                        if reason == HoldReason::Mass {
                            removal.mass = removal.mass.max(Some(until));
                        }
                    }
                }
            }
        }
        if let (HoldAction::Release, HoldTarget::Hold(type_url, _)) = (order.action, &order.target) {
            self.first_states.pardon(type_url);
        }
        self.undecided |= concerned > 0;
        self.ledger.change();
        concerned
    }

    /// The view ends, and with it every hold.
    pub fn close(&mut self) {
        self.held.clear();
        self.ledger.change();
    }

    /// The view does not want something any more: what waits of it is forgotten, and what it names is not held for it.
    pub fn handle_unwanted(&mut self, type_url: &TypeUrl, target: &Target) {
        self.moved |= self.referrers.may_leave(type_url, target);
        let half = (type_url.clone(), *target == Target::Wildcard);
        let Some(removals) = self.held.get_mut(&half) else {
            return;
        };
        let dropped: Vec<Removal> = match target {
            Target::Name(name) => removals.remove(name).into_iter().collect(),
            Target::Wildcard => std::mem::take(removals).into_values().collect(),
        };
        if removals.is_empty() {
            self.held.remove(&half);
        }
        for reason in dropped.iter().filter_map(Removal::reason) {
            self.ledger.end(type_url, reason, HoldEnd::Gone);
            self.moved = true;
        }
    }

    /// The same as `hold` for a source that states all it has each time: a name that waits and is not removed again has returned.
    pub fn hold_again(&mut self, changes: &mut Vec<Changes>, cut: &Cut, now: Instant) {
        let mut removed: BTreeMap<Half, BTreeSet<&Name>> = BTreeMap::new();
        for change in changes.iter().filter(|change| self.has(change)) {
            let names = removed.entry((change.type_url.clone(), change.wildcard)).or_default();
            names.extend(change.updates.iter().filter(|update| removes(update)).map(Update::name));
        }
        for (half, names) in &mut self.held {
            let removed = removed.get(half);
            names.retain(|name, _| removed.is_some_and(|removed| removed.contains(name)));
        }
        self.held.retain(|_, names| !names.is_empty());
        self.hold(changes, cut, now);
    }

    /// Returns when `release` is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.quiet_ends().into_iter().chain(self.clock).min()
    }

    /// Returns all holds, and what has begun and ended since the last call, if anything may have changed.
    pub fn take_holds(&mut self) -> Option<(Vec<Hold>, Vec<HoldEvent>)> {
        self.ledger.take(&self.held)
    }

    /// Returns when the oldest waiting removal has waited long enough for routes.
    fn quiet_ends(&self) -> Option<Instant> {
        let (since, ..) = self.queue.front()?;
        let last = self.directed.map_or(*since, |directed| directed.max(*since));
        Some((last + self.quiet).min(*since + self.bound))
    }

    fn has(&self, change: &Changes) -> bool {
        !self.held.is_empty() && self.held.contains_key(&(change.type_url.clone(), change.wildcard))
    }

    const fn follows_references(&self) -> bool {
        !matches!(self.settings.references, ReferenceHold::Off)
    }

    /// Whether a removal of this kind waits for what refers to it.
    const fn is_referred(&self, kind: Kind) -> bool {
        self.follows_references() && sources::is_referred(kind)
    }
}
