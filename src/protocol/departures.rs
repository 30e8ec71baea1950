//! Removals that wait until the control plane has said what replaces the removed resources.
//!
//! Owns which removals wait and how long. Knows nothing of clients: the content that is about to go is still there for all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use crate::xds::{Changes, Cut, Kind, Known, Name, Reason, State, TypeUrl, Update};

/// The removals of one view that wait (D-03).
///
/// A control plane may remove a cluster before it sends the route that leads elsewhere; go-control-plane does so in each delta
/// snapshot. A client that is told at once has a route without its cluster. So a cluster, a listener or an endpoint assignment
/// goes only when the control plane has sent nothing that directs traffic for a while. A name that returns meanwhile was never
/// gone.
///
/// - B, inputs: `hold`, with all that the control plane says; `hold_again` for a source that always states all it has.
/// - D, outputs: `release`, when `poll_timeout` is due.
#[derive(Debug)]
pub struct Departures {
    quiet: Duration,
    bound: Duration,
    held: BTreeMap<Half, BTreeMap<Name, Departure>>,
    /// The held names, oldest first. A name that has returned stays here until its time.
    queue: VecDeque<(Instant, Half, Name)>,
    /// When something that directs traffic came last.
    directed: Option<Instant>,
}

/// One half of a type: what the wildcard covers (`true`), or what was requested by name.
type Half = (TypeUrl, bool);

/// What was said of a name that goes.
#[derive(Debug)]
struct Departure {
    since: Instant,
    updates: Vec<Update>,
}

impl Departures {
    /// Creates a machine whose removals wait until nothing that directs traffic has come for `quiet`, but at most `bound`.
    #[must_use]
    pub const fn new(quiet: Duration, bound: Duration) -> Self {
        Self {
            quiet,
            bound,
            held: BTreeMap::new(),
            queue: VecDeque::new(),
            directed: None,
        }
    }

    /// Replaces these times. What waits already goes by the new ones.
    pub const fn set(&mut self, quiet: Duration, bound: Duration) {
        self.quiet = quiet;
        self.bound = bound;
    }

    /// Takes the removals that must wait out of these changes, which the control plane has just said; `cut` is what the view
    /// has.
    pub fn hold(&mut self, changes: &mut Vec<Changes>, cut: &Cut, now: Instant) {
        if self.quiet.is_zero() {
            return;
        }
        let mut emptied = false;
        for change in &mut *changes {
            let kind = change.type_url.kind();
            if kind.gated() && !change.updates.is_empty() {
                self.directed = Some(now);
            }
            if waits(kind) && (self.has(change) || change.updates.iter().any(removes)) {
                self.sift(change, cut, now);
                emptied |= change.updates.is_empty();
            }
        }
        if emptied {
            changes
                .retain(|change| !change.updates.is_empty() || change.complete.is_some() || change.answered.is_some());
        }
    }

    /// The same for a source that states all it has each time: a name that waits and is not removed again has returned.
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
        self.hold(changes, cut, now);
    }

    /// Returns the removals that have waited long enough. What the view, at `cut`, has forgotten meanwhile is not removed.
    pub fn release(&mut self, cut: &Cut, now: Instant) -> Vec<Changes> {
        let mut released: BTreeMap<Half, Vec<Update>> = BTreeMap::new();
        while self.poll_timeout().is_some_and(|due| due <= now) {
            let Some((since, half, name)) = self.queue.pop_front() else {
                break;
            };
            let Some(names) = self.held.get_mut(&half) else {
                continue;
            };
            // The name may have returned, and gone again later.
            if names.get(&name).is_some_and(|departure| departure.since == since)
                && let Some(departure) = names.remove(&name)
            {
                released.entry(half).or_default().extend(departure.updates);
            }
        }
        if !released.is_empty() {
            // At the bound, a listener goes no later than the clusters that it leads to.
            let listeners = self.held.iter_mut().filter(|((of, _), _)| of.kind() == Kind::Lds);
            for (half, names) in listeners {
                let updates = std::mem::take(names)
                    .into_values()
                    .flat_map(|departure| departure.updates);
                released.entry(half.clone()).or_default().extend(updates);
            }
        }
        self.held.retain(|_, names| !names.is_empty());
        let released = released.into_iter().map(|((type_url, wildcard), mut updates)| {
            let state = half_of(cut, &type_url, wildcard);
            updates.retain(|update| state.is_some_and(|state| is_present(state, update.name())));
            Changes {
                type_url,
                wildcard,
                updates,
                complete: None,
                answered: None,
            }
        });
        released.filter(|changes| !changes.updates.is_empty()).collect()
    }

    /// Returns when `release` is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (since, ..) = self.queue.front()?;
        let last = self.directed.map_or(*since, |directed| directed.max(*since));
        Some((last + self.quiet).min(*since + self.bound))
    }

    fn has(&self, change: &Changes) -> bool {
        !self.held.is_empty() && self.held.contains_key(&(change.type_url.clone(), change.wildcard))
    }

    /// Takes the removals that wait out of the changes of one half of a type.
    fn sift(&mut self, change: &mut Changes, cut: &Cut, now: Instant) {
        let half = (change.type_url.clone(), change.wildcard);
        let state = half_of(cut, &half.0, half.1);
        let names = self.held.entry(half.clone()).or_default();
        let updates = std::mem::take(&mut change.updates);
        for update in updates {
            let name = update.name();
            let waits =
                || state.is_some_and(|state| is_present(state, name) && !ends_by(state, name, now + self.bound));
            if removes(&update) && waits() {
                let queue = &mut self.queue;
                let departure = names.entry(name.clone()).or_insert_with(|| {
                    queue.push_back((now, half.clone(), name.clone()));
                    Departure {
                        since: now,
                        updates: Vec::new(),
                    }
                });
                departure.updates = vec![update];
                continue;
            }
            match names.get_mut(name) {
                Some(departure) if matches!(update, Update::Error(..)) => departure.updates.push(update),
                _ => {
                    change.updates.extend(overtaken(names, &update));
                    change.updates.push(update);
                }
            }
        }
    }
}

/// Whether removals of this kind wait.
const fn waits(kind: Kind) -> bool {
    kind.gates() || matches!(kind, Kind::Lds)
}

/// Whether the control plane says that a name does not exist, or that the wildcard or a collection does not have it any more.
/// K-16: that it does not answer takes nothing from anybody. The end of a time to live never waits, nor does a variant.
fn removes(update: &Update) -> bool {
    match update {
        Update::Absent(_, reason) => *reason == Reason::Said,
        Update::Forget(_) => true,
        Update::Withdraw(resource) => resource.constraints().is_none(),
        Update::Put(..) | Update::Whole(_) | Update::Error(..) => false,
    }
}

/// Drops what is held of the name that this update is about. Returns what must come before the update: a name goes together with
/// what replaces it (K-20).
fn overtaken(names: &mut BTreeMap<Name, Departure>, update: &Update) -> Vec<Update> {
    let mut before = Vec::new();
    if names.is_empty() {
        return before;
    }
    match update {
        Update::Put(resource, _) => {
            let own = names.remove(resource.name());
            if resource.constraints().is_some() {
                before.extend(own.into_iter().flat_map(|departure| departure.updates));
            }
            for alias in resource.aliases() {
                before.extend(names.remove(alias).into_iter().flat_map(|departure| departure.updates));
            }
        }
        Update::Withdraw(resource) if resource.constraints().is_none() => drop(names.remove(resource.name())),
        Update::Absent(name, _) | Update::Forget(name) => drop(names.remove(name)),
        Update::Withdraw(_) | Update::Whole(_) | Update::Error(..) => {}
    }
    before
}

fn half_of<'a>(cut: &'a Cut, type_url: &TypeUrl, wildcard: bool) -> Option<&'a State> {
    let slot = cut.slot(type_url)?;
    if wildcard {
        slot.wildcard.as_deref()
    } else {
        Some(&slot.named)
    }
}

fn is_present(state: &State, name: &Name) -> bool {
    matches!(state.entries().get(name), Some(Known::Present(_)))
}

/// Whether the resource expires by this time.
fn ends_by(state: &State, name: &Name, time: Instant) -> bool {
    state.expiry(name).is_some_and(|expiry| expiry.at <= time)
}
