//! What is condemned for some kinds of clients, and the cuts that these read.
//!
//! Owns that all clients of a kind share one cut, which is made when it is first read, and who tries what is condemned. Condemns nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::{Ring, View};
use crate::interest::Woken;
use classes::{ClientKind, Node};
use xds::{Condemned, Cut, Known, Slot, State, TypeUrl, Update};

/// What is condemned in one view.
#[derive(Default)]
pub(super) struct Verdicts {
    any: AtomicBool,
    kinds: ArcSwap<Kinds>,
    trials: Mutex<Trials>,
    orders: Mutex<Vec<Arc<Condemned>>>,
}

/// The kinds for which something is condemned.
#[derive(Default)]
struct Kinds {
    own: Vec<(ClientKind, KindCut)>,
    /// The kinds with a place of their own. All others are one kind.
    told_apart: Vec<ClientKind>,
    others: KindCut,
}

/// What the clients of one kind read.
#[derive(Default)]
struct KindCut {
    condemned: Vec<Arc<Condemned>>,
    /// One for all that are served the same, by what they are spared: the places in `condemned`.
    made: Mutex<BTreeMap<Vec<usize>, Made>>,
}

/// The cut that was made last, and of what.
#[derive(Default)]
struct Made {
    cuts: Option<(Arc<Cut>, Arc<Cut>)>,
    /// By the id of the state that the control plane says.
    states: BTreeMap<u64, Arc<State>>,
}

/// Who tries what is condemned. One client of each kind does in each [`TRIAL`].
#[derive(Default)]
struct Trials {
    all: Vec<Trial>,
    begun: bool,
}

struct Trial {
    kind: Option<ClientKind>,
    next: Instant,
    seat: Option<u32>,
}

/// So many cuts of a kind are shared. Nearly all clients are spared either everything or nothing.
const MADE_MAX: usize = 64;
/// So often a client that comes tries what is condemned for its kind.
const TRIAL: Duration = Duration::from_secs(10 * 60);

impl Kinds {
    fn of(&self, node: &Node) -> Option<(Option<&ClientKind>, &KindCut)> {
        let own = self.own.iter().find(|(kind, _)| kind.has(node));
        let own = own.map(|(kind, cut)| (Some(kind), cut));
        let others = || !self.others.condemned.is_empty() && !self.told_apart.iter().any(|kind| kind.has(node));
        own.or_else(|| others().then_some((None, &self.others)))
    }
}

impl Verdicts {
    /// Another cut is there.
    pub(super) fn renew(&self, head: &Arc<Cut>) {
        if self.any.load(Ordering::Acquire) {
            let kinds = self.kinds.load();
            let own = kinds.own.iter().map(|(_, cut)| cut);
            own.chain([&kinds.others]).for_each(|cut| cut.renew(head));
        }
    }
}

impl KindCut {
    /// Returns what a client reads that is spared these, while the control plane says `head`: the very same where nothing differs.
    fn cut(&self, spared: Vec<usize>, head: &Arc<Cut>) -> Arc<Cut> {
        let mut all = self.made.lock();
        if all.len() >= MADE_MAX && !all.contains_key(&spared) {
            all.clear();
        }
        let made = all.get(&spared).and_then(|made| made.cuts.as_ref());
        if let Some((_, cut)) = made.filter(|(of, _)| Arc::ptr_eq(of, head)) {
            return cut.clone();
        }
        let condemned: Vec<_> = spared
            .iter()
            .filter_map(|at| self.condemned.get(*at).cloned())
            .collect();
        all.entry(spared).or_default().make(&condemned, head)
    }

    /// Lets go of what was made of an older cut than this.
    fn renew(&self, head: &Arc<Cut>) {
        let types = self.condemned.iter().filter_map(|one| head.slot(&one.type_url));
        let current: BTreeSet<u64> = types.flat_map(Slot::halves).map(|state| state.id()).collect();
        let mut all = self.made.lock();
        all.values_mut().for_each(|made| made.renew(head, &current));
    }
}

impl Made {
    fn make(&mut self, condemned: &[Arc<Condemned>], head: &Arc<Cut>) -> Arc<Cut> {
        let Self { cuts, states } = self;
        let mut left = BTreeMap::new();
        let mut cut = head.clone();
        for same_type in condemned.chunk_by(|a, b| a.type_url == b.type_url) {
            let Some(type_url) = same_type.first().map(|one| &one.type_url) else {
                continue;
            };
            let next = cut.with_halves(type_url, |state| {
                let known = states.get(&state.id()).cloned();
                let state_of_kind = known.or_else(|| standing_in(state, same_type).map(Arc::new));
                state_of_kind.map_or_else(
                    || state.clone(),
                    |made| {
                        left.insert(state.id(), made.clone());
                        made
                    },
                )
            });
            if !left.is_empty() {
                cut = Arc::new(next);
            }
        }
        *states = left;
        *cuts = Some((head.clone(), cut.clone()));
        cut
    }

    fn renew(&mut self, head: &Arc<Cut>, current: &BTreeSet<u64>) {
        self.cuts.take_if(|(of, _)| !Arc::ptr_eq(of, head));
        self.states.retain(|id, _| current.contains(id));
    }
}

/// Returns the state in which older content stands in for what is condemned; `None` if it has nothing that is.
fn standing_in(state: &State, condemned: &[Arc<Condemned>]) -> Option<State> {
    let updates = condemned
        .iter()
        .filter_map(|one| match state.entries().get(one.name()) {
            Some(Known::Present(found)) if found.version() == one.version => {
                Some(Update::Put(one.stands_in.clone(), state.expiry(one.name())))
            }
            Some(_) | None => None,
        });
    let updates: Vec<Update> = updates.collect();
    (!updates.is_empty()).then(|| state.with(&updates, None).0)
}

impl Trials {
    fn set(&mut self, kinds: impl Iterator<Item = Option<ClientKind>>, now: Instant) {
        let mut before = std::mem::take(&mut self.all);
        for kind in kinds {
            let known = before.iter().position(|trial| trial.kind == kind);
            self.all.push(match known {
                Some(at) => before.swap_remove(at),
                None => Trial {
                    kind,
                    next: now + TRIAL,
                    seat: None,
                },
            });
        }
    }

    fn of(&mut self, kind: Option<&ClientKind>) -> Option<&mut Trial> {
        self.all.iter_mut().find(|trial| trial.kind.as_ref() == kind)
    }
}

impl View {
    /// Returns what a client reads. `keeps` says whether it was sent a content and needs no other in its place.
    pub(super) fn cut_for(&self, node: &Node, seat: u32, keeps: impl Fn(&Condemned) -> bool) -> Arc<Cut> {
        let head = self.cut();
        if !self.verdicts.any.load(Ordering::Acquire) {
            return head;
        }
        let kinds = self.verdicts.kinds.load();
        let Some((kind, cut)) = kinds.of(node) else { return head };
        if self.tries(kind, seat) {
            return head;
        }
        let spared = cut.condemned.iter().enumerate().filter(|(_, one)| !keeps(one));
        let spared: Vec<usize> = spared.map(|(at, _)| at).collect();
        if spared.is_empty() {
            return head;
        }
        cut.cut(spared, &head)
    }

    /// Returns what is condemned for a client, unless it tries that.
    pub(super) fn condemned_for(&self, node: &Node, seat: u32) -> Vec<Arc<Condemned>> {
        if !self.verdicts.any.load(Ordering::Acquire) {
            return Vec::new();
        }
        let kinds = self.verdicts.kinds.load();
        let found = kinds.of(node).filter(|(kind, _)| !self.tries(*kind, seat));
        found.map(|(_, cut)| cut.condemned.clone()).unwrap_or_default()
    }

    fn tries(&self, kind: Option<&ClientKind>, seat: u32) -> bool {
        let mut trials = self.verdicts.trials.lock();
        trials.of(kind).is_some_and(|trial| trial.seat == Some(seat))
    }

    /// Returns all that is condemned.
    #[must_use]
    pub fn condemned(&self) -> Arc<Vec<Arc<Condemned>>> {
        self.cut.load().condemned().clone()
    }

    /// A client comes: once in a while one of its kind tries what is condemned.
    pub(super) fn come(self: &Arc<Self>, node: &Node, seat: u32, now: Instant) {
        if !self.verdicts.any.load(Ordering::Acquire) {
            return;
        }
        let kinds = self.verdicts.kinds.load();
        let Some((kind, _)) = kinds.of(node) else { return };
        let mut trials = self.verdicts.trials.lock();
        let Some(trial) = trials.of(kind).filter(|trial| trial.next <= now) else {
            return;
        };
        trial.next = now + TRIAL;
        trial.seat = Some(seat);
        trials.begun = true;
        drop(trials);
        self.docket.add(self);
    }

    /// A client has rejected something, or is gone: if it tried what is condemned, it does not any more.
    pub(super) fn end_trial(&self, seat: u32) {
        if !self.verdicts.any.load(Ordering::Acquire) {
            return;
        }
        let mut trials = self.verdicts.trials.lock();
        trials.all.iter_mut().for_each(|trial| {
            trial.seat.take_if(|tries| *tries == seat);
        });
    }

    /// Returns whether a client has begun to try what is condemned since the last call.
    #[must_use]
    pub fn take_trial(&self) -> bool {
        std::mem::take(&mut self.verdicts.trials.lock().begun)
    }

    /// Publishes what is condemned, and the kinds that are told apart. The sessions that want any of it look again.
    pub fn publish_condemned(
        &self,
        condemned: Vec<Arc<Condemned>>,
        told_apart: Vec<ClientKind>,
        now: Instant,
    ) -> Woken {
        let replaced = self.writer.lock();
        let before = self.condemned();
        let mut kinds = Kinds {
            told_apart,
            ..Kinds::default()
        };
        let mut sorted = condemned.clone();
        sorted.sort_by(|a, b| (&a.type_url, a.name()).cmp(&(&b.type_url, b.name())));
        for one in sorted {
            let Some(kind) = &one.kind else {
                kinds.others.condemned.push(one);
                continue;
            };
            match kinds.own.iter_mut().find(|(known, _)| known == kind) {
                Some((_, cut)) => cut.condemned.push(one),
                None => {
                    let (kind, made) = (kind.clone(), Mutex::default());
                    let condemned = vec![one];
                    kinds.own.push((kind, KindCut { condemned, made }));
                }
            }
        }
        let others = (!kinds.others.condemned.is_empty()).then_some(None);
        let own = kinds.own.iter().map(|(kind, _)| Some(kind.clone()));
        self.verdicts.trials.lock().set(own.chain(others), now);
        let any = !condemned.is_empty();
        // Removals may wait for what stood in.
        self.interest.notify_one();
        let rings = rings(&before, &condemned);
        self.verdicts.kinds.store(Arc::new(kinds));
        self.verdicts.any.store(any, Ordering::Release);
        let cut = self.cut().with_condemned(condemned);
        if rings.is_empty() {
            self.cut.store(Arc::new(cut));
            return Woken::new(Vec::new());
        }
        self.finish(replaced, cut, &rings)
    }

    /// A person wants this to be condemned no more.
    pub fn release_condemned(self: &Arc<Self>, one: Arc<Condemned>) {
        self.verdicts.orders.lock().push(one);
        self.docket.add(self);
    }

    /// Returns what persons want to be condemned no more, since the last call.
    #[must_use]
    pub fn take_released(&self) -> Vec<Arc<Condemned>> {
        std::mem::take(&mut *self.verdicts.orders.lock())
    }
}

/// Returns who must look again: those that want what is condemned in only one of the two.
fn rings(before: &[Arc<Condemned>], now: &[Arc<Condemned>]) -> Vec<Ring> {
    let differs = |one: &&Arc<Condemned>, others: &[Arc<Condemned>]| {
        !others.iter().any(|other| {
            other.kind == one.kind
                && other.is(&one.type_url, one.name(), one.version)
                && other.stands_in.version() == one.stands_in.version()
        })
    };
    let ended = before.iter().filter(|one| differs(one, now));
    let begun = now.iter().filter(|one| differs(one, before));
    let mut names: BTreeMap<TypeUrl, Vec<_>> = BTreeMap::new();
    for one in ended.chain(begun) {
        names.entry(one.type_url.clone()).or_default().push(one.name().clone());
    }
    let ring = |(type_url, names)| Ring::Some {
        type_url,
        names,
        wildcard: true,
    };
    names.into_iter().map(ring).collect()
}
