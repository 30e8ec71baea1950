//! What is condemned for some kinds of clients, and the cuts that these read.
//!
//! Owns that all clients of a kind share one cut, which is made when it is first read. Condemns nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use classes::{ClientKind, Node};
use xds::{Condemned, Cut, Known, Slot, State, Update};

/// The kinds for which something is condemned.
#[derive(Default)]
pub(super) struct Kinds {
    own: Vec<(ClientKind, KindCut)>,
    /// The kinds with a place of their own. All others are one kind.
    told_apart: Vec<ClientKind>,
    others: KindCut,
}

/// What the clients of one kind read.
#[derive(Default)]
pub(super) struct KindCut {
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

/// So many cuts of a kind are shared. Nearly all clients are spared either everything or nothing.
const MADE_MAX: usize = 64;

impl Kinds {
    /// Sorts what is condemned. Those that are told apart have a place of their own.
    pub(super) fn new(condemned: &[Arc<Condemned>], told_apart: Vec<ClientKind>) -> Self {
        let mut kinds = Self {
            told_apart,
            ..Self::default()
        };
        let mut sorted = condemned.to_vec();
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
        kinds
    }

    /// Returns the kinds for which something is condemned; `None`: all others.
    pub(super) fn all(&self) -> impl Iterator<Item = Option<ClientKind>> {
        let others = (!self.others.condemned.is_empty()).then_some(None);
        self.own.iter().map(|(kind, _)| Some(kind.clone())).chain(others)
    }

    /// Another cut is there.
    pub(super) fn renew(&self, head: &Arc<Cut>) {
        let own = self.own.iter().map(|(_, cut)| cut);
        own.chain([&self.others]).for_each(|cut| cut.renew(head));
    }

    /// Returns the kind of a client, if anything is condemned for it.
    pub(super) fn of(&self, node: &Node) -> Option<(Option<&ClientKind>, &KindCut)> {
        let own = self.own.iter().find(|(kind, _)| kind.has(node));
        let own = own.map(|(kind, cut)| (Some(kind), cut));
        let others = || !self.others.condemned.is_empty() && !self.told_apart.iter().any(|kind| kind.has(node));
        own.or_else(|| others().then_some((None, &self.others)))
    }
}

impl KindCut {
    /// What is condemned for the kind.
    pub(super) fn condemned(&self) -> &[Arc<Condemned>] {
        &self.condemned
    }

    /// Returns what a client reads that is spared these, while the control plane says `head`: the very same where nothing differs.
    pub(super) fn cut(&self, spared: Vec<usize>, head: &Arc<Cut>) -> Arc<Cut> {
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
