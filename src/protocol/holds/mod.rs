// SPDX-License-Identifier: Apache-2.0
//! What waits: names for which something else is served than the control plane has said, because clients could not do without it yet.
//!
//! Owns what waits, why, and how long. Knows nothing of clients: what is about to go or to change is still there for all.

mod clocks;
mod crossing;
mod ground;
mod hearing;
mod judgements;
mod looking;
mod losses;
mod measure;
mod missing;
mod reach;
mod stream;
mod table;
mod taking_over;
mod told;
mod waiting;
mod word;

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use losses::FirstStates;
use reach::Reach;
use table::Table;
use taking_over::FromElsewhere;
use waiting::{Half, Item, Row};
use word::removes;
use xds::{
    Changes, Cut, GuardSettings, Hold, HoldAction, HoldEnd, HoldEvent, HoldOrder, HoldReason, HoldTarget, Phase,
    Target, TypeUrl, Update, Within,
};

/// The longest time for which a person can hold removals.
const LONGEST_ORDER: Duration = Duration::from_secs(24 * 60 * 60);

/// What waits of one view: a row for each name for which something else is served than the control plane has said. A row has one ground at
/// least, and goes once it has none. A name that is said again was never gone. What is new never waits. The grounds are these:
///
/// - *Quiet* (D-03): a control plane may remove a cluster before it sends the route that leads elsewhere; go-control-plane does so
///   in each delta snapshot. So a cluster, a listener or an endpoint assignment goes only when the control plane has sent nothing
///   that directs traffic for a while.
/// - *Named* (D-09): a cluster or a route configuration goes once no served listener and no route in use names it, and the endpoint
///   assignment of a held cluster with the cluster.
/// - *Lost* (D-10): the first whole state of a stream is judged once. If it lacks much of what was served, that judgement holds what it
///   lacks until the control plane sends the name again, the judgement's clock ends, a person releases it, or a new resource takes its
///   address. Nothing else ends it: later messages and later judgements only hold more.
/// - *Unready* (D-12): a changed listener, scoped route, route configuration or virtual host that newly names a cluster of which the cluster or its
///   endpoints come from another source is not served before both are there.
/// - *Ordered*: a person holds it.
///
/// What goes goes in one step, in the order listeners, routes, clusters, endpoints.
///
/// - B, inputs: `hear`, with all that the control plane says; `hear_again` for a source that always states all it has; `cross`, with all
///   that is to be published next; `handle_server`; `handle_order`, from people; `handle_settings`; `handle_unwanted`.
/// - D, outputs: `look`, after `hear` in each turn, after each published change of this view and of those that are read with it, and
///   when `poll_timeout` is due; `take_told`.
#[derive(Debug, Default)]
pub struct Holds {
    quiet: Duration,
    table: Table,
    first_states: FirstStates,
    /// What sessions bring from another server, until this one has had its time to answer for every type.
    from_elsewhere: Option<FromElsewhere>,
    reach: Reach,
    /// The names that wait for a quiet time, oldest first. A name that has returned stays here until its time.
    queue: VecDeque<(Instant, Item)>,
    /// When something that directs traffic came last.
    directed: Option<Instant>,
    /// The halves of which an earlier run may have held something that the control plane has not spoken of since.
    earlier_run: BTreeSet<Half>,
}

impl Holds {
    /// Creates a table whose removals wait until nothing that directs traffic has come for `quiet`, but at most `bound`, and by
    /// these settings.
    #[must_use]
    pub fn new(quiet: Duration, bound: Duration, settings: GuardSettings) -> Self {
        let mut holds = Self::default();
        holds.set(quiet, bound);
        holds.handle_settings(settings);
        holds
    }

    /// Replaces the times of the quiet rule. What waits already goes by the new ones.
    pub fn set(&mut self, quiet: Duration, bound: Duration) {
        self.quiet = quiet;
        self.table.set(bound, *self.settings());
    }

    /// Replaces the settings of the other rules. What a rule that is off holds is let go; what a clock holds keeps its time.
    pub fn handle_settings(&mut self, settings: GuardSettings) {
        let judges = self.settings().within != Within::Never;
        self.table.set(self.bound(), settings);
        if judges && settings.within == Within::Never {
            self.first_states.clear();
            for item in self.table.items() {
                self.table.change(&item, HoldEnd::Settings, Row::end_loss);
            }
        }
    }

    const fn settings(&self) -> &GuardSettings {
        &self.table.clocks().settings
    }

    /// The longest time that a removal waits for a quiet time.
    const fn bound(&self) -> Duration {
        self.table.clocks().bound
    }

    /// Whether the control plane is there.
    pub fn handle_server(&mut self, there: bool, now: Instant) {
        self.table.handle_server(there, now);
        self.run_clocks(now);
    }

    /// The clocks of judgements stand while the control plane is away, and until it has said on its present stream what it has of the type.
    fn run_clocks(&mut self, now: Instant) {
        let is_there = self.table.clocks().away.is_none();
        let from = |of: &TypeUrl| self.first_states.counted_from(of).filter(|_| is_there);
        self.table.run_clocks(from, now);
    }

    /// An earlier run of the relay held these. Until the first state of the control plane is over, they are held for the same time; if
    /// it removes them again, their times go on.
    pub fn remember(&mut self, holds: &[Hold], now: Instant) {
        for hold in holds {
            self.table.remember(hold, now);
            for (name, removal) in &hold.removals {
                let half = (hold.type_url.clone(), removal.wildcard);
                let order = removal.extended.clone();
                let order = order.map(|(until, why)| (until.min(now + LONGEST_ORDER), why));
                self.earlier_run.insert(half.clone());
                let earlier = Row::remembered(removal, hold.judgement, order);
                self.table.enter(&(half, name.clone()), earlier, None);
            }
        }
    }

    /// What an earlier run knew is not needed any more: what is not served, at `cut`, is not held.
    pub fn forget_unserved(&mut self, cut: &Cut) {
        for item in self.table.select(|_| true, Row::is_remembered) {
            let state = cut.half(&item.0.0, item.0.1);
            if !state.is_some_and(|state| measure::is_present(state, &item.1)) {
                self.leave(&item, HoldEnd::Gone);
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
            for item in self.table.select(|other| other == half, Row::is_remembered) {
                self.leave(&item, HoldEnd::Server);
            }
        }
    }

    /// A person has given an order. Returns how many removals it is for. It reaches only what it names. Released removals go with the
    /// next `release`, if nothing else holds them.
    pub fn handle_order(&mut self, order: &HoldOrder, now: Instant) -> usize {
        let items = match &order.target {
            HoldTarget::Hold(type_url, reason, number) => self.table.held_for(type_url, *reason, *number),
            HoldTarget::Resource(type_url, name) => {
                let halves = [true, false].map(|wildcard| (type_url.clone(), wildcard));
                let items = halves.into_iter().map(|half| (half, name.clone()));
                let held = |item: &Item| self.table.get(item).is_some_and(|row| row.reason().is_some());
                items.filter(held).collect()
            }
        };
        let mut change = |change: &dyn Fn(&mut Row)| {
            for item in &items {
                self.table.change(item, HoldEnd::Person, change);
            }
        };
        let until = |time| (now + time, order.reason.clone());
        match (order.action, &order.target) {
            // What joins the judgement later is held as long.
            (HoldAction::Extend(time), HoldTarget::Hold(of, HoldReason::Mass, number)) => {
                self.table.extend(of, *number, &until(time));
            }
            (HoldAction::Extend(time), _) => change(&|row| row.extend(&until(time))),
            (HoldAction::Release, HoldTarget::Hold(_, HoldReason::Mass, _)) => change(&Row::release),
            (HoldAction::Release, _) => change(&|row| row.free(HoldEnd::Person)),
        }
        items.len()
    }

    /// The view ends, and with it every hold.
    pub fn close(&mut self) {
        for item in self.table.items() {
            self.table.leave(&item, HoldEnd::Gone);
        }
    }

    /// The view does not want something any more: what waits of it is forgotten, and what it names is not held for it.
    pub fn handle_unwanted(&mut self, type_url: &TypeUrl, target: &Target) {
        let half = (type_url.clone(), *target == Target::Wildcard);
        let dropped: Vec<Item> = match target {
            Target::Name(name) => vec![(half, name.clone())],
            Target::Wildcard => self.table.select(|other| *other == half, |_| true),
        };
        for item in dropped {
            self.first_states.find(&item);
            self.leave(&item, HoldEnd::Gone);
        }
    }

    /// The same as `hear` for a source that states all it has each time: what waits and is not said again has been taken back.
    pub fn hear_again(&mut self, changes: &mut Vec<Changes>, cut: &Cut, now: Instant) {
        let mut said = BTreeSet::new();
        for change in &*changes {
            let half = (change.type_url.clone(), change.wildcard);
            let words = change.updates.iter();
            let words = words.filter(|word| removes(word) || matches!(word, Update::Put(..)));
            said.extend(words.map(|word| ((half.clone(), word.name().clone()), removes(word))));
        }
        for item in self.table.items() {
            if !said.contains(&(item.clone(), self.table.is_going(&item))) {
                self.leave(&item, HoldEnd::Server);
            }
        }
        self.hear(changes, cut, || None, now);
    }

    /// Returns when `look` is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let all = [
            self.quiet_ends(),
            self.first_states.poll_timeout(),
            self.first_states.next_end().filter(|_| self.table.has_judgements()),
            self.table.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Returns all holds, and what has happened to them since the last call, if anything has changed.
    pub fn take_told(&mut self) -> Option<(Vec<Hold>, Vec<HoldEvent>)> {
        self.table.take_told()
    }

    /// Returns when the oldest waiting removal has waited long enough for routes.
    fn quiet_ends(&self) -> Option<Instant> {
        let (since, _) = self.queue.front()?;
        let last = self.directed.map_or(*since, |directed| directed.max(*since));
        Some((last + self.quiet).min(*since + self.bound()))
    }
}
