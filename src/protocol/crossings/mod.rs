//! Changes that lead into another source: a control plane orders what it says itself, and nobody orders what two of them say.
//!
//! Owns which changed listeners, routes and virtual hosts wait until the other source has what they lead to (D-12). Knows nothing of
//! other views: what they have is an argument.

mod ground;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::guard::references;
use ground::{Ground, newly_named};
use xds::{
    Beside, Changes, Cut, HeldRemoval, Hold, HoldAction, HoldChange, HoldEnd, HoldEvent, HoldOrder, HoldReason,
    HoldTarget, Kind, Name, Reason, Referrer, Resource, Spots, State, Target, TypeUrl, Update,
};

/// One half of a type, as in [`Changes`], and a name in it.
type Item = ((TypeUrl, bool), Name);

/// The changes of one view that wait. D-12: a changed listener, route configuration or virtual host that newly names a cluster of which
/// the cluster or its endpoints come from another source is not served before both are there; clients are served the earlier content
/// meanwhile. Each resource waits by itself, and only its latest content does, so that none starves. What is new, and what has a time
/// to live, never waits.
///
/// What is published together counts as a whole: a route leads to a cluster as that is then, in whatever order both were said.
///
/// - B, inputs: `hear`, with all that the control plane says, before the guard; `hold`, with all that is to be published next;
///   `handle_order`, from people; `handle_unwanted`; `set`.
/// - D, outputs: `release`, after each published change of this view and of those beside it, and when `poll_timeout` is due;
///   `take_holds`.
#[derive(Debug, Default)]
pub struct Crossings {
    /// How long a change waits if the other source does not have what it leads to, and how long while its server is away.
    bound: Duration,
    unready: Duration,
    waiting: BTreeMap<Item, Crossing>,
    /// What was removed by the last word of the control plane, since the last call of `hold`.
    gone: BTreeSet<Item>,
    /// What has happened since the last call of `take_holds`, by type: to how many changes, and one of their names.
    events: BTreeMap<(TypeUrl, HoldChange), (usize, Name)>,
    changed: bool,
}

/// A change that waits.
#[derive(Debug)]
struct Crossing {
    /// Since when the resource waits, whatever was said of it meanwhile.
    since: Instant,
    content: Arc<Resource>,
    /// The clusters that it names and the served content does not.
    clusters: Vec<Name>,
    /// For what it waits.
    ground: Ground,
    /// Since when the server of that is there, as far as was seen.
    there: Instant,
    /// Until when a person holds it, and why.
    order: Option<(Instant, Arc<str>)>,
    /// A person has let it go.
    released: bool,
}

impl Crossings {
    /// Changes wait so long at most from now on: if the other source says that it does not have what they lead to, and while its server
    /// is away. If that is zero, as at first, nothing waits.
    pub const fn set(&mut self, bound: Duration, unready: Duration) {
        self.bound = bound;
        self.unready = unready;
    }

    /// Whether nothing waits: then changes of other views concern nobody here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The control plane removes what waits, or has been said and is not published yet: nothing of it comes later, although the removal
    /// itself may be held.
    pub fn hear(&mut self, changes: &[Changes]) {
        for change in changes.iter().filter(|change| is_leading(change)) {
            for update in &change.updates {
                let removed = match update {
                    Update::Absent(_, reason) => *reason == Reason::Said,
                    Update::Forget(_) => true,
                    Update::Put(..) => false,
                    Update::Whole(_) | Update::Error(..) => continue,
                };
                if !removed && self.gone.is_empty() {
                    continue;
                }
                let item = ((change.type_url.clone(), change.wildcard), update.name().clone());
                if removed {
                    self.end(&item, HoldEnd::Server);
                    self.gone.insert(item);
                } else {
                    self.gone.remove(&item);
                }
            }
        }
    }

    /// The same for a source that states all it has each time: what waits and is not said again has been taken back.
    pub fn hear_again(&mut self, changes: &[Changes]) {
        let is_said = |((type_url, wildcard), name): &Item| {
            let of_half = changes
                .iter()
                .filter(|change| (&change.type_url, change.wildcard) == (type_url, *wildcard));
            let mut said = of_half.flat_map(|change| &change.updates);
            said.any(|update| matches!(update, Update::Put(..)) && update.name() == name)
        };
        let gone: Vec<Item> = self.waiting.keys().filter(|item| !is_said(item)).cloned().collect();
        for item in gone {
            self.end(&item, HoldEnd::Server);
        }
    }

    /// Takes the changes that must wait out of what is to be published next; `own` is what the view has. Without `beside`, its clients
    /// read nothing of other servers.
    pub fn hold(&mut self, changes: &mut [Changes], own: &Cut, beside: Option<&Beside>, now: Instant) {
        let gone = std::mem::take(&mut self.gone);
        let (Some(beside), true) = (beside, changes.iter().any(is_leading)) else {
            return;
        };
        let after = after(own, changes);
        for change in changes.iter_mut().filter(|change| is_leading(change)) {
            let half = (change.type_url.clone(), change.wildcard);
            let served = own.half(&half.0, half.1).map(|state| &**state);
            for update in std::mem::take(&mut change.updates) {
                if let Some(update) = self.sift(&half, update, served, (&after, beside, &gone), now) {
                    change.updates.push(update);
                }
            }
            let taken = self.make_room(&half, &change.updates, served);
            change.updates.extend(taken);
        }
    }

    /// Returns an update that need not wait.
    fn sift(
        &mut self,
        half: &(TypeUrl, bool),
        update: Update,
        served: Option<&State>,
        (after, beside, gone): (&Cut, &Beside, &BTreeSet<Item>),
        now: Instant,
    ) -> Option<Update> {
        let item = (half.clone(), update.name().clone());
        let content = match &update {
            Update::Put(content, None) if !self.unready.is_zero() => content.clone(),
            Update::Put(..) => {
                self.end(&item, HoldEnd::Server);
                return Some(update);
            }
            Update::Absent(..) | Update::Forget(_) | Update::Whole(_) | Update::Error(..) => return Some(update),
        };
        let clusters = newly_named(
            half.0.kind(),
            served.and_then(|served| served.resource(&item.1)),
            &content,
        );
        let Some(ground) = Ground::find((&half.0, &item.1), &clusters, after, beside) else {
            self.end(&item, HoldEnd::Server);
            return Some(update);
        };
        if gone.contains(&item) {
            return None;
        }
        self.changed = true;
        if let Some(crossing) = self.waiting.get_mut(&item) {
            (crossing.content, crossing.clusters) = (content, clusters);
            crossing.wait_for(ground, now);
        } else {
            self.note(&item, HoldChange::Begun);
            self.waiting.insert(item, Crossing::new(content, clusters, ground, now));
        }
        None
    }

    /// A listener takes an address that a waiting one leaves, or a virtual host its domain: that goes with it, because a client could
    /// not have both (C-26).
    fn make_room(&mut self, half: &(TypeUrl, bool), updates: &[Update], served: Option<&State>) -> Vec<Update> {
        let kind = half.0.kind();
        if self.waiting.is_empty() || !matches!(kind, Kind::Lds | Kind::Vhds) {
            return Vec::new();
        }
        let put = updates.iter().filter_map(|update| match update {
            Update::Put(resource, _) => references(kind, resource),
            Update::Absent(..) | Update::Forget(_) | Update::Whole(_) | Update::Error(..) => None,
        });
        let taken: Spots = put.flat_map(|found| found.spots.iter().cloned()).collect();
        let leaves = |name: &Name| {
            let before = served.and_then(|served| references(kind, served.resource(name)?));
            before.is_some_and(|before| before.spots.iter().any(|spot| taken.collide(spot)))
        };
        let of_half = self.waiting.keys().filter(|(of, name)| of == half && leaves(name));
        let going: Vec<Item> = of_half.cloned().collect();
        let going = going.into_iter().filter_map(|item| self.end(&item, HoldEnd::Replaced));
        going.map(|crossing| Update::Put(crossing.content, None)).collect()
    }

    /// Adds the changes that wait for nothing any more to those that are to be published next; `own` is what the view has, and `beside` what
    /// its clients read of other servers, if there are any. To be called once all that was said is published.
    pub fn release(&mut self, changes: &mut Vec<Changes>, own: &Cut, beside: Option<&Beside>, now: Instant) {
        if self.is_empty() {
            return;
        }
        let after = after(own, changes);
        let mut going: Vec<(Item, HoldEnd)> = Vec::new();
        let (bound, unready) = (self.bound, self.unready);
        for (item, crossing) in &mut self.waiting {
            let find = |beside| Ground::find((&item.0.0, &item.1), &crossing.clusters, &after, beside);
            let ground = beside.and_then(find);
            let end = match ground {
                _ if crossing.released => HoldEnd::Person,
                _ if unready.is_zero() => HoldEnd::Settings,
                None => HoldEnd::Free,
                Some(ground) => {
                    self.changed |= crossing.wait_for(ground, now);
                    if crossing.until(bound, unready) > now {
                        continue;
                    }
                    HoldEnd::Clock
                }
            };
            going.push((item.clone(), end));
        }
        let mut all: BTreeMap<(TypeUrl, bool), Vec<Update>> = BTreeMap::new();
        for (item, end) in going {
            let crossing = self.end(&item, end);
            let updates = crossing.map(|crossing| Update::Put(crossing.content, None));
            all.entry(item.0).or_default().extend(updates);
        }
        changes.extend(all.into_iter().map(|(half, updates)| Changes::of(half, updates)));
    }

    /// Returns when `release` is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let all = self.waiting.values();
        all.map(|crossing| crossing.until(self.bound, self.unready)).min()
    }

    /// The view does not want something any more: what waits of it is forgotten.
    pub fn handle_unwanted(&mut self, type_url: &TypeUrl, target: &Target) {
        let is_of = |((of, wildcard), name): &Item| {
            let same = match target {
                Target::Wildcard => *wildcard,
                Target::Name(unwanted) => !wildcard && name == unwanted,
            };
            of == type_url && same
        };
        let gone: Vec<Item> = self.waiting.keys().filter(|item| is_of(item)).cloned().collect();
        for item in gone {
            self.end(&item, HoldEnd::Gone);
        }
    }

    /// A person has given an order. Returns how many changes it is for. What is released goes with the next `release`.
    pub fn handle_order(&mut self, order: &HoldOrder, now: Instant) -> usize {
        let is_meant = |((of, _), name): &Item| match &order.target {
            HoldTarget::Hold(type_url, reason, _) => *reason == HoldReason::Unready && of == type_url,
            HoldTarget::Resource(type_url, only) => of == type_url && name == only,
        };
        let mut concerned = 0;
        for (_, crossing) in self.waiting.iter_mut().filter(|(item, _)| is_meant(item)) {
            concerned += 1;
            match order.action {
                HoldAction::Release => crossing.released = true,
                HoldAction::Extend(time) => {
                    let ordered = Some((now + time, order.reason.clone()));
                    crossing.order = crossing.order.take().max(ordered);
                }
            }
        }
        self.changed |= concerned > 0;
        concerned
    }

    /// Returns what waits, and what has happened since the last call, if anything has changed.
    pub fn take_holds(&mut self) -> Option<(Vec<Hold>, Vec<HoldEvent>)> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let mut holds: BTreeMap<&TypeUrl, Hold> = BTreeMap::new();
        for (((type_url, wildcard), name), crossing) in &self.waiting {
            let hold = holds.entry(type_url).or_insert_with(|| Hold {
                type_url: type_url.clone(),
                reason: HoldReason::Unready,
                judgement: None,
                removals: imbl::OrdMap::new(),
            });
            let shown = crossing.shown(*wildcard, crossing.until(self.bound, self.unready));
            hold.removals.insert(name.clone(), shown);
        }
        let events = std::mem::take(&mut self.events).into_iter();
        let events = events.map(|((type_url, change), (removals, name))| HoldEvent {
            type_url,
            reason: HoldReason::Unready,
            judgement: None,
            change,
            removals,
            name,
        });
        Some((holds.into_values().collect(), events.collect()))
    }

    /// The view ends, and with it what waits.
    pub fn close(&mut self) {
        let all: Vec<Item> = self.waiting.keys().cloned().collect();
        for item in all {
            self.end(&item, HoldEnd::Gone);
        }
    }

    /// A change does not wait any more.
    fn end(&mut self, item: &Item, end: HoldEnd) -> Option<Crossing> {
        let crossing = self.waiting.remove(item)?;
        self.note(item, HoldChange::Ended(end));
        Some(crossing)
    }

    fn note(&mut self, ((type_url, _), name): &Item, change: HoldChange) {
        let event = self.events.entry((type_url.clone(), change));
        event.or_insert((0, name.clone())).0 += 1;
        self.changed = true;
    }
}

impl Crossing {
    const fn new(content: Arc<Resource>, clusters: Vec<Name>, ground: Ground, now: Instant) -> Self {
        Self {
            since: now,
            content,
            clusters,
            ground,
            there: now,
            order: None,
            released: false,
        }
    }

    /// It waits for this. Returns whether that has changed what is shown.
    fn wait_for(&mut self, ground: Ground, now: Instant) -> bool {
        if self.ground.is_away() {
            self.there = now;
        }
        let is_new = self.ground != ground;
        self.ground = ground;
        is_new
    }

    /// Until when it waits at most.
    fn until(&self, bound: Duration, unready: Duration) -> Instant {
        // From its return, the other server has as long to answer as any; one that flaps does not make it longer.
        let until = match self.ground.is_away() {
            true => self.since + unready,
            false => (self.there + bound).min(self.since + unready.max(bound)),
        };
        let ordered = self.order.as_ref().map(|(until, _)| *until);
        ordered.map_or(until, |ordered| ordered.max(until))
    }

    fn shown(&self, wildcard: bool, until: Instant) -> HeldRemoval {
        let (type_url, name) = self.ground.missing();
        HeldRemoval {
            since: self.since,
            until: Some(until),
            by: Some(Referrer {
                type_url: type_url.clone(),
                name: name.clone(),
                said: !self.ground.is_away(),
            }),
            emptied: false,
            wildcard,
            extended: self.order.as_ref().map(|(_, reason)| reason.clone()),
        }
    }
}

/// Whether these are about resources that lead to clusters.
fn is_leading(change: &Changes) -> bool {
    matches!(change.type_url.kind(), Kind::Lds | Kind::Rds | Kind::Vhds) && !change.type_url.is_v2()
}

/// Returns what the view has of clusters and endpoints once these changes are published.
fn after<'a>(own: &'a Cut, changes: &[Changes]) -> Cow<'a, Cut> {
    let led = |change: &&Changes| matches!(change.type_url.kind(), Kind::Cds | Kind::Eds);
    let led = changes.iter().filter(led);
    led.fold(Cow::Borrowed(own), |cut, change| Cow::Owned(cut.with(change).0))
}
