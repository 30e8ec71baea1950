//! The first whole states of streams, and whether they lack too much.
//!
//! Owns what was served when each began, and what it has lost since. Does not hold anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::ordmap::DiffItem;

use super::removal::Half;
use xds::{Changes, Cut, Kind, Known, MassHold, Name, Phase, State, TypeUrl};

/// The first whole states that are not over.
#[derive(Debug, Default)]
pub(super) struct FirstStates(BTreeMap<TypeUrl, FirstState>);

/// The first whole state of one type. Its halves can come on two streams.
#[derive(Debug, Default)]
pub(super) struct FirstState {
    covered: Part,
    named: Part,
    /// It is over: what comes from now on is meant.
    over: bool,
    /// A person has released what it lacks.
    pardoned: bool,
}

#[derive(Debug, Default)]
struct Part {
    /// What was served when it began.
    before: Option<Arc<State>>,
    lost: BTreeSet<Name>,
    emptied: BTreeSet<Name>,
}

/// What a first state lacks, if that is too much.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) lost: BTreeSet<Name>,
    pub(super) emptied: BTreeSet<Name>,
}

impl FirstStates {
    /// Notes where the first states begin and end that these changes are a part of.
    pub(super) fn note(&mut self, changes: &Changes, cut: &Cut) {
        let (type_url, phase) = (&changes.type_url, changes.phase);
        if phase == Phase::First && changes.answered == Some(true) && is_judged(type_url.kind()) {
            let slot = cut.slot(type_url);
            let covered = slot.and_then(|slot| slot.wildcard.clone());
            let named = slot.map(|slot| slot.named.clone());
            let first = self.0.entry(type_url.clone()).or_default();
            if first.over {
                *first = FirstState::default();
            }
            first.covered.begin(covered, changes.wildcard);
            first.named.begin(named, !changes.wildcard);
        } else if phase != Phase::First
            && !changes.updates.is_empty()
            && let Some(first) = self.0.get_mut(type_url)
        {
            first.over = true;
            if !first.covered.lacks() && !first.named.lacks() {
                self.0.remove(type_url);
            }
        }
    }

    /// Whether this half has a first state that is not over, and something was served before.
    pub(super) fn judges(&self, half: &Half) -> bool {
        let first = self.0.get(&half.0);
        first.is_some_and(|first| !first.over && first.part(half.1).before.is_some())
    }

    /// The half has lost the name; `emptied`: its endpoint assignment has become empty.
    pub(super) fn lose(&mut self, half: &Half, name: &Name, emptied: bool) {
        if let Some(first) = self.0.get_mut(&half.0) {
            let part = first.part_mut(half.1);
            let into = if emptied { &mut part.emptied } else { &mut part.lost };
            into.insert(name.clone());
        }
    }

    /// The half has the name again.
    pub(super) fn find(&mut self, half: &Half, name: &Name) {
        if let Some(first) = self.0.get_mut(&half.0) {
            let part = first.part_mut(half.1);
            part.lost.remove(name);
            part.emptied.remove(name);
        }
    }

    /// Whether anything is lost that may still turn out to be too little or too much.
    pub(super) fn is_open(&self, type_url: &TypeUrl) -> bool {
        let first = self.0.get(type_url);
        first.is_some_and(|first| [&first.covered, &first.named].into_iter().any(Part::lacks))
    }

    /// What the first state of this type lacks is meant.
    pub(super) fn pardon(&mut self, type_url: &TypeUrl) {
        if let Some(first) = self.0.get_mut(type_url) {
            first.pardoned = true;
        }
    }

    /// Returns what each first state lacks, if that is too much. Those that are over are judged for the last time.
    pub(super) fn judge(&mut self, cut: &Cut, mass: &MassHold) -> Vec<(TypeUrl, Verdict)> {
        let judged = self
            .0
            .iter()
            .filter(|(_, first)| first.covered.lacks() || first.named.lacks());
        let judged = judged.map(|(type_url, first)| (type_url.clone(), first.judge(type_url, cut, mass)));
        let judged = judged.collect();
        self.0.retain(|_, first| !first.over);
        judged
    }
}

impl FirstState {
    const fn part(&self, wildcard: bool) -> &Part {
        if wildcard { &self.covered } else { &self.named }
    }

    const fn part_mut(&mut self, wildcard: bool) -> &mut Part {
        if wildcard { &mut self.covered } else { &mut self.named }
    }

    fn judge(&self, type_url: &TypeUrl, cut: &Cut, mass: &MassHold) -> Verdict {
        if self.pardoned {
            return Verdict::default();
        }
        let both = [&self.covered, &self.named];
        let names = |of: fn(&Part) -> &BTreeSet<Name>| both.iter().flat_map(|part| of(part)).cloned().collect();
        let lost: BTreeSet<Name> = names(|part| &part.lost);
        let emptied: BTreeSet<Name> = names(|part| &part.emptied);
        let slot = cut.slot(type_url);
        let now = [
            slot.and_then(|slot| slot.wildcard.as_deref()),
            slot.map(|slot| &*slot.named),
        ];
        let gained = both.iter().zip(now).flat_map(|(part, now)| part.gained(now));
        let gained = gained.collect::<BTreeSet<_>>().len();
        let served = served(self.covered.before.as_deref(), self.named.before.as_deref());
        let is_mass = is_mass(type_url.kind(), lost.len(), gained, served, mass);
        let is_emptied = emptied.len() >= mass.other.max(1) && is_share(emptied.len(), served, mass.emptied);
        Verdict {
            lost: if is_mass { lost } else { BTreeSet::new() },
            emptied: if is_emptied { emptied } else { BTreeSet::new() },
        }
    }
}

impl Part {
    /// Begins with what is served; `anew` if this half's own stream has begun.
    fn begin(&mut self, before: Option<Arc<State>>, anew: bool) {
        if !anew && self.before.is_some() {
            return;
        }
        self.before = before.filter(|state| state.present() > 0);
        self.lost.clear();
        self.emptied.clear();
    }

    fn lacks(&self) -> bool {
        !self.lost.is_empty() || !self.emptied.is_empty()
    }

    /// Returns the names that are served now and were not before. It costs what has changed.
    fn gained(&self, now: Option<&State>) -> Vec<Name> {
        let (Some(before), Some(now)) = (&self.before, now) else {
            let all = now.into_iter().flat_map(State::resources);
            return all.map(|resource| resource.name().clone()).collect();
        };
        let differences = before.entries().diff(now.entries());
        let gained = differences.filter_map(|item| match item {
            DiffItem::Add(name, Known::Present(_)) => Some(name),
            DiffItem::Update {
                old: (_, Known::Absent(_)),
                new: (name, Known::Present(_)),
            } => Some(name),
            DiffItem::Add(..) | DiffItem::Update { .. } | DiffItem::Remove(..) => None,
        });
        gained.cloned().collect()
    }
}

/// Secrets and runtime layers are never held: what an old secret lets in may be what an operator wants to keep out.
pub(super) const fn is_judged(kind: Kind) -> bool {
    !matches!(kind, Kind::Sds | Kind::Rtds)
}

/// Whether so many lost names of so many are too many. What was gained counts against them: names may have changed.
pub(super) fn is_mass(kind: Kind, lost: usize, gained: usize, served: usize, mass: &MassHold) -> bool {
    let net = lost.saturating_sub(gained);
    let all = net > 0 && net >= served;
    let many = if kind == Kind::Lds {
        net >= mass.listeners.max(1)
    } else {
        net >= mass.other.max(1) && is_share(net, served, mass.share)
    };
    all || many
}

/// Returns how many names the halves have; one that both have counts once.
pub(super) fn served(covered: Option<&State>, named: Option<&State>) -> usize {
    let named_alone = named.into_iter().flat_map(State::resources).filter(|resource| {
        let covers = |state: &State| matches!(state.entries().get(resource.name()), Some(Known::Present(_)));
        !covered.is_some_and(covers)
    });
    covered.map_or(0, |state| state.resources().count()) + named_alone.count()
}

const fn is_share(part: usize, all: usize, percent: u8) -> bool {
    part.saturating_mul(100) >= all.saturating_mul(percent as usize)
}
