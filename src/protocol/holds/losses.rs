//! The first whole states of streams, and whether they lack too much.
//!
//! Owns what was served when each began, what it has lost since, and when and how that is judged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use imbl::ordmap::DiffItem;

use super::ground::Loss;
use super::table::Table;
use super::taking_over::Elsewhere;
use super::waiting::{Half, Item, Row};
use super::word::removes;
use xds::{Changes, Cut, HoldEnd, Kind, Known, MassHold, Name, Phase, State, TypeUrl, Within};

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
    /// Since when something lost waits to be judged, and when the control plane spoke last.
    undecided: Option<Instant>,
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
    /// They were served that by the view of another server; `true`: all of them.
    elsewhere: Option<bool>,
    lost: BTreeSet<Name>,
    emptied: BTreeSet<Name>,
}

impl FirstStates {
    /// Notes that a first state begins or goes on with these changes; with `within: always` each message is one. What clients were served is
    /// what this view has, or `elsewhere`, if they read that.
    pub(super) fn hear(
        &mut self,
        changes: &Changes,
        cut: &Cut,
        elsewhere: Option<&Elsewhere>,
        within: Within,
        now: Instant,
    ) {
        let (type_url, wildcard) = (&changes.type_url, changes.wildcard);
        let is_first = changes.phase.is_first();
        let alone = changes.phase == Phase::Steady && within == Within::Always;
        if within == Within::Never || !is_judged(type_url.kind()) || !(is_first || alone) {
            return self.close(type_url, wildcard);
        }
        // What came in the same turn and is not judged yet is judged with it.
        let unknown = self
            .part(&(type_url.clone(), wildcard))
            .is_none_or(|part| part.before.is_none());
        let removes = within == Within::Always && unknown && changes.updates.iter().any(removes);
        let begins = is_first && changes.answered == Some(true) || removes;
        if begins {
            let before = |wildcard| {
                let served = elsewhere.map_or(cut, |elsewhere| &elsewhere.served);
                let before = served.half(type_url, wildcard);
                before.filter(|state| state.present() > 0).cloned()
            };
            let first = self.0.entry(type_url.clone()).or_insert_with(|| FirstState::new(now));
            first.judgement = first.judgement.filter(|_| first.is_open());
            *first.part_mut(wildcard) = Part {
                before: before(wildcard),
                elsewhere: elsewhere.map(|elsewhere| elsewhere.all),
                ..Part::default()
            };
            let other = first.part_mut(!wildcard);
            if !other.open {
                other.before = before(!wildcard);
            }
        }
        if let Some(first) = self.0.get_mut(type_url) {
            first.part_mut(wildcard).open |= begins || alone;
            first.heard = now;
        }
    }

    /// Notes that a first state ends with these changes.
    pub(super) fn end(&mut self, changes: &Changes) {
        if !matches!(changes.phase, Phase::First | Phase::Anew) {
            self.close(&changes.type_url, changes.wildcard);
        }
    }

    fn close(&mut self, type_url: &TypeUrl, wildcard: bool) {
        if let Some(first) = self.0.get_mut(type_url) {
            first.part_mut(wildcard).open = false;
            self.drop_over(type_url);
        }
    }

    /// Whether losses of this half are judged: its first state is not over, and something was served before.
    pub(super) fn judges(&self, half: &Half) -> bool {
        self.part(half).is_some_and(|part| part.open && part.before.is_some())
    }

    /// Returns what clients were served of this half by the view of another server.
    pub(super) fn elsewhere(&self, half: &Half) -> Option<&Arc<State>> {
        let part = self.part(half).filter(|part| part.open && part.elsewhere.is_some())?;
        part.before.as_ref()
    }

    /// Whether the view of another server does not serve this any more: then its loss is none. `None`: no session reads that view; `true`: all
    /// do.
    pub(super) fn gone_elsewhere(&self, (half, name): &Item) -> Option<bool> {
        let first = self.0.get(&half.0)?;
        let part = Some(first.part(half.1)).filter(|part| part.open && part.before.is_some())?;
        let serves = |part: &Part| part.before.as_ref().is_some_and(|before| is_present(before, name));
        // Who asks for a name is served what the wildcard covers as well.
        let served = serves(part) || !half.1 && serves(&first.covered);
        part.elsewhere.filter(|_| !served)
    }

    /// The half has lost the name; `emptied`: its endpoint assignment has become empty; `undecided`: no judgement holds it yet.
    pub(super) fn lose(&mut self, item: &Item, emptied: bool, undecided: bool, now: Instant) {
        let ((type_url, wildcard), name) = item;
        let Some(first) = self.0.get_mut(type_url) else { return };
        let part = first.part_mut(*wildcard);
        let into = if emptied { &mut part.emptied } else { &mut part.lost };
        into.insert(name.clone());
        if undecided {
            first.undecided.get_or_insert(now);
        }
    }

    /// The half has the name again, or nobody wants it any more.
    pub(super) fn find(&mut self, item: &Item) {
        let ((type_url, wildcard), name) = item;
        let Some(first) = self.0.get_mut(type_url) else { return };
        let part = first.part_mut(*wildcard);
        part.lost.remove(name);
        part.emptied.remove(name);
    }

    /// Returns when something is to be judged.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.0.values().filter_map(FirstState::due).min()
    }

    /// Decides about what waits for it.
    pub(super) fn judge(&mut self, cut: &Cut, mass: &MassHold, table: &mut Table, now: Instant) {
        let due = |(_, first): &(&TypeUrl, &mut FirstState)| first.due().is_some_and(|due| due <= now);
        for (type_url, first) in self.0.iter_mut().filter(due) {
            first.judge(type_url, cut, mass, table, now);
        }
        self.0.retain(|_, first| !first.is_over());
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn part(&self, half: &Half) -> Option<&Part> {
        self.0.get(&half.0).map(|first| first.part(half.1))
    }

    fn drop_over(&mut self, type_url: &TypeUrl) {
        if self.0.get(type_url).is_some_and(FirstState::is_over) {
            self.0.remove(type_url);
        }
    }
}

impl FirstState {
    fn new(now: Instant) -> Self {
        Self {
            covered: Part::default(),
            named: Part::default(),
            undecided: None,
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

    const fn is_over(&self) -> bool {
        !self.is_open() && self.undecided.is_none()
    }

    /// When what waits for it is judged.
    fn due(&self) -> Option<Instant> {
        let since = self.undecided?;
        Some(match self.is_open() {
            true => (self.heard + QUIET).min(since + AT_MOST),
            false => self.heard,
        })
    }

    /// Returns how many names were served; one that both halves had counts once.
    fn served(&self) -> usize {
        let covered = self.covered.before.as_deref();
        let named = self.named.before.iter().flat_map(|state| state.resources());
        let alone = named.filter(|resource| !covered.is_some_and(|state| is_present(state, resource.name())));
        covered.map_or(0, |state| state.resources().count()) + alone.count()
    }

    /// Judges the sum of all that was lost so far, however it was split, and of what earlier judgements hold: the server lacks that, too.
    /// What was gained counts against it: names may have changed.
    fn judge(&mut self, type_url: &TypeUrl, cut: &Cut, mass: &MassHold, table: &mut Table, now: Instant) {
        self.undecided = None;
        let of_type = |half: &Half| half.0 == *type_url;
        let earlier = table.select(of_type, |removal| {
            removal.judgement().is_some() && !removal.is_emptied()
        });
        let both = [(&self.covered, true), (&self.named, false)];
        let lost = both.iter().flat_map(|(part, _)| &part.lost);
        let lost: BTreeSet<&Name> = lost.chain(earlier.iter().map(|(_, name)| name)).collect();
        let emptied: BTreeSet<&Name> = both.iter().flat_map(|(part, _)| &part.emptied).collect();
        let gained = both.map(|(part, wildcard)| part.gained(cut.half(type_url, wildcard).map(|state| &**state)));
        let gained: BTreeSet<Name> = gained.into_iter().flatten().collect();
        let served = self.served();
        let is_mass = is_mass(type_url.kind(), lost.len(), gained.len(), served, mass);
        let is_emptied = emptied.len() >= mass.other.max(1) && is_share(emptied.len(), served, mass.emptied);
        let undecided = table.select(of_type, |row| row.loss() == Some(Loss::Undecided));
        let is_much = |item: &Item| match table.get(item).is_some_and(Row::is_emptied) {
            true => is_emptied,
            false => is_mass,
        };
        let (much, passed): (Vec<Item>, Vec<Item>) = undecided.into_iter().partition(is_much);
        passed.iter().for_each(|item| table.acquit(item, HoldEnd::Free));
        if !much.is_empty() {
            self.judgement = Some(table.condemn(type_url, self.judgement, &much, now));
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

/// Secrets and runtime layers are never table: what an old secret lets in may be what an operator wants to keep out.
pub(super) const fn is_judged(kind: Kind) -> bool {
    !matches!(kind, Kind::Sds | Kind::Rtds)
}

/// Whether so many lost names of so many are too many. What was gained counts against them: names may have changed.
fn is_mass(kind: Kind, lost: usize, gained: usize, served: usize, mass: &MassHold) -> bool {
    let net = lost.saturating_sub(gained);
    let least = if kind == Kind::Lds { mass.listeners } else { mass.other };
    let all = net > 0 && net >= served;
    all || net >= least.max(1) && is_share(net, served, mass.share)
}

pub(super) fn is_present(state: &State, name: &Name) -> bool {
    matches!(state.entries().get(name), Some(Known::Present(_)))
}

const fn is_share(part: usize, all: usize, percent: u8) -> bool {
    part.saturating_mul(100) >= all.saturating_mul(percent as usize)
}
