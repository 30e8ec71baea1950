//! The first whole states of streams, and whether they lack too much.
//!
//! Owns what was served when each began, what it has lost since, and when that is judged. Does not hold anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use imbl::ordmap::DiffItem;

use super::removal::{Half, Item};
use xds::{Changes, Cut, Kind, Known, MassHold, Name, Phase, State, TypeUrl};

/// How long a control plane must have said nothing of a type until what that has lost is judged, and how long that takes at most.
const QUIET: Duration = Duration::from_millis(500);
const AT_MOST: Duration = Duration::from_secs(5);

/// The first whole states that are not over, or of which something is still to be judged.
#[derive(Debug, Default)]
pub(super) struct FirstStates(BTreeMap<TypeUrl, FirstState>);

/// The first whole state of one type. Its halves can come on two streams; a name that both have counts once.
#[derive(Debug)]
struct FirstState {
    covered: Part,
    named: Part,
    /// What is lost and was not judged yet, since when, and when the control plane spoke last.
    undecided: BTreeSet<Item>,
    since: Instant,
    heard: Instant,
    /// The judgement that was made of it.
    judgement: Option<u32>,
}

#[derive(Debug, Default)]
struct Part {
    /// Whether it is not over.
    open: bool,
    /// What clients were served when it began.
    before: Option<Arc<State>>,
    /// They were served that by the view of another server.
    elsewhere: bool,
    lost: BTreeSet<Name>,
    emptied: BTreeSet<Name>,
}

/// What was decided of one type.
pub(super) struct Verdict {
    pub(super) type_url: TypeUrl,
    /// The judgement that was made of the first state before.
    pub(super) judgement: Option<u32>,
    pub(super) held: Vec<Item>,
    pub(super) passed: Vec<Item>,
}

impl FirstStates {
    /// Notes that a first state begins or goes on with these changes. What clients were served is what this view has, or `elsewhere`, if
    /// they read that.
    pub(super) fn hear(&mut self, changes: &Changes, cut: &Cut, elsewhere: Option<&Cut>, now: Instant) {
        let (type_url, wildcard) = (&changes.type_url, changes.wildcard);
        if !changes.phase.is_first() || !is_judged(type_url.kind()) {
            return;
        }
        if changes.answered == Some(true) {
            let before = |wildcard| {
                let before = state(elsewhere.unwrap_or(cut), type_url, wildcard);
                before.filter(|state| state.present() > 0)
            };
            let first = self.0.entry(type_url.clone()).or_insert_with(|| FirstState::new(now));
            first.judgement = first.judgement.filter(|_| first.is_open());
            *first.part_mut(wildcard) = Part {
                open: true,
                before: before(wildcard),
                elsewhere: elsewhere.is_some(),
                ..Part::default()
            };
            let other = first.part_mut(!wildcard);
            if !other.open {
                other.before = before(!wildcard);
            }
        }
        if let Some(first) = self.0.get_mut(type_url) {
            first.heard = now;
        }
    }

    /// Notes that a first state ends with these changes.
    pub(super) fn end(&mut self, changes: &Changes) {
        let over = match changes.phase {
            Phase::First | Phase::Anew => false,
            Phase::Last | Phase::Relayed => true,
            Phase::Steady => changes.answered.is_some() || !changes.updates.is_empty(),
        };
        if over && let Some(first) = self.0.get_mut(&changes.type_url) {
            first.part_mut(changes.wildcard).open = false;
            self.drop_over(&changes.type_url);
        }
    }

    /// Whether losses of this half are judged: its first state is not over, and something was served before.
    pub(super) fn judges(&self, half: &Half) -> bool {
        self.part(half).is_some_and(|part| part.open && part.before.is_some())
    }

    /// Returns what clients were served of this half by the view of another server.
    pub(super) fn elsewhere(&self, half: &Half) -> Option<&Arc<State>> {
        let part = self.part(half).filter(|part| part.open && part.elsewhere)?;
        part.before.as_ref()
    }

    /// The half has lost the name; `emptied`: its endpoint assignment has become empty; `undecided`: no judgement holds it yet.
    pub(super) fn lose(&mut self, item: &Item, emptied: bool, undecided: bool, now: Instant) {
        let ((type_url, wildcard), name) = item;
        let Some(first) = self.0.get_mut(type_url) else { return };
        let part = first.part_mut(*wildcard);
        let into = if emptied { &mut part.emptied } else { &mut part.lost };
        into.insert(name.clone());
        if undecided {
            if first.undecided.is_empty() {
                first.since = now;
            }
            first.undecided.insert(item.clone());
        }
    }

    /// The half has the name again, or nobody wants it any more.
    pub(super) fn find(&mut self, item: &Item) {
        let ((type_url, wildcard), name) = item;
        let Some(first) = self.0.get_mut(type_url) else { return };
        let part = first.part_mut(*wildcard);
        part.lost.remove(name);
        part.emptied.remove(name);
        first.undecided.remove(item);
    }

    /// Returns when something is to be judged.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.0.values().filter_map(FirstState::due).min()
    }

    /// Decides about what waits for it. `held` are the names of a type that earlier judgements hold: the server lacks them, too.
    pub(super) fn judge(
        &mut self,
        cut: &Cut,
        mass: &MassHold,
        held: impl Fn(&TypeUrl) -> BTreeSet<Name>,
        now: Instant,
    ) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for (type_url, first) in &mut self.0 {
            if first.due().is_some_and(|due| due <= now) {
                verdicts.push(first.judge(type_url, cut, mass, &held(type_url)));
            }
        }
        for verdict in &verdicts {
            self.drop_over(&verdict.type_url);
        }
        verdicts
    }

    /// Whether the first state of this half lacks too much, if it lacks these names as well and is over then.
    pub(super) fn would_be_mass(&self, half: &Half, lost: &BTreeSet<Name>, gained: usize, mass: &MassHold) -> bool {
        let Some(first) = self.0.get(&half.0) else { return false };
        let lost = first.part(half.1).lost.union(lost).count();
        is_mass(half.0.kind(), lost, gained, first.served(), mass)
    }

    /// What was judged is held by this judgement.
    pub(super) fn note(&mut self, type_url: &TypeUrl, judgement: u32) {
        if let Some(first) = self.0.get_mut(type_url) {
            first.judgement = Some(judgement);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn part(&self, half: &Half) -> Option<&Part> {
        self.0.get(&half.0).map(|first| first.part(half.1))
    }

    fn drop_over(&mut self, type_url: &TypeUrl) {
        let over = |first: &FirstState| !first.is_open() && first.undecided.is_empty();
        if self.0.get(type_url).is_some_and(over) {
            self.0.remove(type_url);
        }
    }
}

impl FirstState {
    fn new(now: Instant) -> Self {
        Self {
            covered: Part::default(),
            named: Part::default(),
            undecided: BTreeSet::new(),
            since: now,
            heard: now,
            judgement: None,
        }
    }

    const fn part(&self, wildcard: bool) -> &Part {
        if wildcard { &self.covered } else { &self.named }
    }

    const fn part_mut(&mut self, wildcard: bool) -> &mut Part {
        if wildcard { &mut self.covered } else { &mut self.named }
    }

    const fn is_open(&self) -> bool {
        self.covered.open || self.named.open
    }

    /// When what waits for it is judged.
    fn due(&self) -> Option<Instant> {
        match (self.undecided.is_empty(), self.is_open()) {
            (true, _) => None,
            (false, false) => Some(self.heard),
            (false, true) => Some((self.heard + QUIET).min(self.since + AT_MOST)),
        }
    }

    fn served(&self) -> usize {
        served(self.covered.before.as_deref(), self.named.before.as_deref())
    }

    /// Judges the sum of all that was lost so far, however it was split. What was gained counts against it: names may have changed.
    fn judge(&mut self, type_url: &TypeUrl, cut: &Cut, mass: &MassHold, held: &BTreeSet<Name>) -> Verdict {
        let undecided = std::mem::take(&mut self.undecided);
        let both = [&self.covered, &self.named];
        let lost: BTreeSet<&Name> = both.iter().flat_map(|part| &part.lost).chain(held).collect();
        let emptied: BTreeSet<&Name> = both.iter().flat_map(|part| &part.emptied).collect();
        let now = [state(cut, type_url, true), state(cut, type_url, false)];
        let gained = both.iter().zip(&now);
        let gained: BTreeSet<Name> = gained.flat_map(|(part, now)| part.gained(now.as_deref())).collect();
        let served = self.served();
        let is_mass = is_mass(type_url.kind(), lost.len(), gained.len(), served, mass);
        let is_emptied = emptied.len() >= mass.other.max(1) && is_share(emptied.len(), served, mass.emptied);
        let much = |((_, wildcard), name): &Item| {
            let part = self.part(*wildcard);
            is_mass && part.lost.contains(name) || is_emptied && part.emptied.contains(name)
        };
        let (held, passed) = undecided.into_iter().partition(much);
        Verdict {
            type_url: type_url.clone(),
            judgement: self.judgement,
            held,
            passed,
        }
    }
}

impl Part {
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
    let least = if kind == Kind::Lds { mass.listeners } else { mass.other };
    let all = net > 0 && net >= served;
    all || net >= least.max(1) && is_share(net, served, mass.share)
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

/// Returns one half of a type.
pub(super) fn state(cut: &Cut, type_url: &TypeUrl, wildcard: bool) -> Option<Arc<State>> {
    let slot = cut.slot(type_url)?;
    if wildcard {
        slot.wildcard.clone()
    } else {
        Some(slot.named.clone())
    }
}
