//! Removals that wait: until the control plane has said what replaces the removed resources, until nothing that is served refers to
//! them, and where too much is lost at once, until somebody has had time to look.
//!
//! Owns which removals wait and how long. Knows nothing of clients: the content that is about to go is still there for all.

mod baseline;
mod decision;
mod first_states;
mod held;
mod intake;
mod judgements;
mod ledger;
mod reading;
mod references;
mod removal;

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use baseline::Elsewhere;
use first_states::FirstStates;
use held::Held;
pub(crate) use reading::references;
use references::References;
use removal::{Half, Item, Removal, removes};

use xds::{
    Changes, Cut, GuardSettings, Hold, HoldAction, HoldEnd, HoldEvent, HoldOrder, HoldReason, HoldTarget, Name, Phase,
    ReferenceHold, Target, TypeUrl, Update, Within,
};

/// The longest time for which a person can hold removals.
const LONGEST_ORDER: Duration = Duration::from_secs(24 * 60 * 60);

/// The removals of one view that wait. Additions and changes never wait, and a name that returns was never gone. There are three
/// rules; a removal goes once none of them holds it:
///
/// - *Quiet* (D-03): a control plane may remove a cluster before it sends the route that leads elsewhere; go-control-plane does so
///   in each delta snapshot. So a cluster, a listener or an endpoint assignment goes only when the control plane has sent nothing
///   that directs traffic for a while.
/// - *Referenced*: a cluster or a route configuration goes once no served listener and no route in use names it, and the endpoint
///   assignment of a held cluster with the cluster.
/// - *Mass*: the first whole state of a stream is judged once. If it lacks much of what was served, that judgement holds what it lacks
///   until the control plane sends the name again, the judgement's clock ends, a person releases it, or a new resource takes its
///   address. Nothing else ends it: later messages and later judgements only hold more.
///
/// What goes goes in one step, in the order listeners, routes, clusters, endpoints.
///
/// - B, inputs: `hold`, with all that the control plane says; `hold_again` for a source that always states all it has;
///   `handle_server`; `handle_order`, from people; `handle_settings`.
/// - D, outputs: `release`, after each published change and when `poll_timeout` is due; `take_holds`.
#[derive(Debug)]
pub struct Guard {
    quiet: Duration,
    bound: Duration,
    settings: GuardSettings,
    held: Held,
    first_states: FirstStates,
    references: References,
    /// The names that wait for a quiet time, oldest first. A name that has returned stays here until its time.
    queue: VecDeque<(Instant, Item)>,
    /// When something that directs traffic came last.
    directed: Option<Instant>,
    /// What the sessions are served by the view of another server, if they read that.
    elsewhere: Option<Elsewhere>,
    /// The halves of which an earlier run has held something that the control plane has not spoken of since.
    earlier_run: BTreeSet<Half>,
}

impl Guard {
    /// Creates a guard whose removals wait until nothing that directs traffic has come for `quiet`, but at most `bound`, and by
    /// these settings.
    #[must_use]
    pub fn new(quiet: Duration, bound: Duration, settings: GuardSettings) -> Self {
        let mut guard = Self {
            quiet,
            bound,
            settings: GuardSettings::OFF,
            held: Held::default(),
            first_states: FirstStates::default(),
            references: References::default(),
            queue: VecDeque::new(),
            directed: None,
            elsewhere: None,
            earlier_run: BTreeSet::new(),
        };
        guard.handle_settings(settings);
        guard
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
        self.held.set(settings.references, settings.mass.hold);
        if settings.mass.within == Within::Never {
            self.first_states.clear();
            for item in self.held.items() {
                self.held.acquit(&item, HoldEnd::Settings);
            }
        }
    }

    /// Whether the control plane is there: the clocks of judgements stand while it is not.
    pub fn handle_server(&mut self, there: bool, now: Instant) {
        self.held.handle_server(there, now);
    }

    /// An earlier run of the relay held these. Until the first state of the control plane is over, they are held for the same time; if
    /// it removes them again, their times go on.
    pub fn remember(&mut self, holds: &[Hold], now: Instant) {
        for hold in holds {
            self.held.remember(hold, now);
            for (name, removal) in &hold.removals {
                let half = (hold.type_url.clone(), removal.wildcard);
                let until = removal.until.map(|until| until.min(now + LONGEST_ORDER));
                self.earlier_run.insert(half.clone());
                let earlier = Removal::remembered(removal, hold.judgement, until);
                self.held.enter(&(half, name.clone()), earlier, None);
            }
        }
    }

    /// What an earlier run knew is not needed any more: what is not served, at `cut`, is not held.
    pub fn forget_unserved(&mut self, cut: &Cut) {
        for half in std::mem::take(&mut self.earlier_run) {
            let state = cut.half(&half.0, half.1);
            let is_served = |name: &Name| {
                state
                    .as_ref()
                    .is_some_and(|state| first_states::is_present(state, name))
            };
            for item in self.remembered(&half) {
                if is_served(&item.1) {
                    self.earlier_run.insert(half.clone());
                } else {
                    self.leave(&item, HoldEnd::Gone);
                }
            }
        }
    }

    /// The first state of the control plane is over with these changes: what it does not lack is not held any more.
    fn forget_earlier_run(&mut self, change: &Changes, half: &Half) {
        let over = match change.phase {
            Phase::First | Phase::Anew => false,
            Phase::Last | Phase::Relayed => true,
            Phase::Steady => change.answered != Some(false),
        };
        if over && self.earlier_run.remove(half) {
            for item in self.remembered(half) {
                self.leave(&item, HoldEnd::Server);
            }
        }
    }

    fn remembered(&self, half: &Half) -> Vec<Item> {
        self.held.select(|other| other == half, Removal::is_remembered)
    }

    /// A person has given an order. Returns how many removals it is for. It reaches only what it names. Released removals go with the
    /// next `release`, if nothing else holds them.
    pub fn handle_order(&mut self, order: &HoldOrder, now: Instant) -> usize {
        let items = match &order.target {
            HoldTarget::Hold(type_url, reason, number) => self.held.held_for(type_url, *reason, *number),
            HoldTarget::Resource(type_url, name) => {
                let halves = [true, false].map(|wildcard| (type_url.clone(), wildcard));
                let items = halves.into_iter().map(|half| (half, name.clone()));
                let held = |item: &Item| self.held.get(item).is_some_and(|removal| removal.reason().is_some());
                items.filter(held).collect()
            }
        };
        match (order.action, &order.target) {
            // What joins the judgement later is held as long.
            (HoldAction::Extend(time), HoldTarget::Hold(type_url, HoldReason::Mass, number)) => {
                self.held.extend(type_url, *number, &(now + time, order.reason.clone()));
            }
            (HoldAction::Extend(time), _) => {
                let order = (now + time, order.reason.clone());
                self.change(&items, |removal| removal.extend(&order));
            }
            (HoldAction::Release, HoldTarget::Hold(_, HoldReason::Mass, _)) => self.change(&items, Removal::acquit),
            (HoldAction::Release, _) => self.change(&items, |removal| removal.free(HoldEnd::Person)),
        }
        items.len()
    }

    /// A person changes these.
    fn change(&mut self, items: &[Item], change: impl Fn(&mut Removal)) {
        for item in items {
            self.held.change(item, HoldEnd::Person, &change);
        }
    }

    /// The view ends, and with it every hold.
    pub fn close(&mut self) {
        self.held.clear();
    }

    /// The view does not want something any more: what waits of it is forgotten, and what it names is not held for it.
    pub fn handle_unwanted(&mut self, type_url: &TypeUrl, target: &Target) {
        let half = (type_url.clone(), *target == Target::Wildcard);
        let dropped: Vec<Item> = match target {
            Target::Name(name) => vec![(half, name.clone())],
            Target::Wildcard => self.held.select(|other| *other == half, |_| true),
        };
        for item in dropped {
            self.first_states.find(&item);
            self.leave(&item, HoldEnd::Gone);
        }
    }

    /// The same as `hold` for a source that states all it has each time: a name that waits and is not removed again has returned.
    pub fn hold_again(&mut self, changes: &mut Vec<Changes>, cut: &Cut, now: Instant) {
        let mut removed: BTreeSet<Item> = BTreeSet::new();
        for change in &*changes {
            let half = (change.type_url.clone(), change.wildcard);
            let names = change.updates.iter().filter(|update| removes(update)).map(Update::name);
            removed.extend(names.map(|name| (half.clone(), name.clone())));
        }
        for item in self.held.items() {
            if !removed.contains(&item) {
                self.leave(&item, HoldEnd::Server);
            }
        }
        self.hold(changes, cut, now);
    }

    /// Returns when `release` is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let all = [
            self.quiet_ends(),
            self.first_states.poll_timeout(),
            self.held.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Returns all holds, and what has happened to them since the last call, if anything has changed.
    pub fn take_holds(&mut self) -> Option<(Vec<Hold>, Vec<HoldEvent>)> {
        self.held.take_holds()
    }

    /// Returns when the oldest waiting removal has waited long enough for routes.
    fn quiet_ends(&self) -> Option<Instant> {
        let (since, _) = self.queue.front()?;
        let last = self.directed.map_or(*since, |directed| directed.max(*since));
        Some((last + self.quiet).min(*since + self.bound))
    }

    const fn follows_references(&self) -> bool {
        !matches!(self.settings.references, ReferenceHold::Off)
    }
}
