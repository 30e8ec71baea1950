// SPDX-License-Identifier: Apache-2.0
//! The first whole states of streams, and whether they lack too much.
//!
//! Owns what was served when each began, what it has lost since, and when and how that is judged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::ground::HeldLoss;
use super::measure::{is_emptied, is_mass, is_present};
use super::stream::AnsweredStream;
use super::table::Table;
use super::taking_over::Elsewhere;
use super::waiting::{Half, Item, Row};
use super::word::removes;
use xds::{Changes, Cut, HoldEnd, Known, Name, Phase, State, TypeUrl, Within};

/// How long a control plane must have said nothing of a type until what that has lost is judged, and how long that takes at most. By
/// then the first state of the type is over, too, but not before the stream is `SETTLING`: what is said of other types comes then.
const QUIET: Duration = Duration::from_millis(500);
const AT_MOST: Duration = Duration::from_secs(5);
const SETTLING: Duration = Duration::from_secs(5);
/// How long it takes at most until a wildcard is known to be whole, and names that are not mentioned count as gone.
const WHOLE: Duration = Duration::from_secs(11);
const CALM: Duration = Duration::from_secs(6);
/// The first whole states that are not over, or of which something is still to be judged.
#[derive(Debug, Default)]
pub(super) struct FirstStates {
    types: BTreeMap<TypeUrl, FirstState>,
    stream: AnsweredStream,
}

/// The first whole state of one type. Its halves can come on two streams; a name that both have counts once.
#[derive(Debug)]
struct FirstState {
    covered: Part,
    named: Part,
    /// Since when something lost waits to be judged.
    undecided: Option<Instant>,
    /// When the control plane spoke first and last.
    began: Instant,
    heard: Instant,
    /// Whether it has said all with its last message.
    whole: bool,
    /// The judgements that were made of it: of what each judgement elsewhere holds (`None`: of the rest).
    judgements: BTreeMap<Option<u32>, u32>,
}

#[derive(Debug, Default)]
struct Part {
    /// Whether it is not over.
    open: bool,
    /// Whether all was answered that was asked for; what comes soon belongs to it nevertheless.
    answered: bool,
    /// It is one message, which is judged like a first state.
    alone: bool,
    /// What clients were served when it began.
    before: Option<Arc<State>>,
    /// They were served that by the view of another server. Then: what this view had.
    elsewhere: Option<Elsewhere>,
    own: Option<Arc<State>>,
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
        let half = (type_url.clone(), wildcard);
        self.stream.hear(&half, changes.answered, cut, now);
        let is_first = changes.phase.is_first();
        let steady = changes.phase == Phase::Steady && changes.answered != Some(false);
        let follows = steady && self.part(&half).is_some_and(|part| part.open && !part.alone);
        let alone = steady && within == Within::Always && !follows;
        if within == Within::Never || !type_url.kind().is_judged() || !(is_first || alone || follows) {
            return self.close(type_url, wildcard);
        }
        // What came in the same turn and is not judged yet is judged with it.
        let unknown = self.part(&half).is_none_or(|part| part.before.is_none());
        let removes = within == Within::Always && unknown && changes.updates.iter().any(removes);
        let begins = is_first && changes.answered == Some(true) || removes;
        if begins {
            let before = |wildcard| {
                let served = elsewhere.map_or(cut, |elsewhere| &elsewhere.served);
                let before = served.half(type_url, wildcard);
                before.filter(|state| state.present() > 0).cloned()
            };
            let first = self.types.entry(type_url.clone());
            let first = first.or_insert_with(|| FirstState::new(now));
            if elsewhere.is_some() {
                // What is held there may be held here, too.
                first.undecided.get_or_insert(now);
            }
            *first.part_mut(wildcard) = Part {
                before: before(wildcard),
                elsewhere: elsewhere.cloned(),
                own: cut.half(type_url, wildcard).filter(|_| elsewhere.is_some()).cloned(),
                ..Part::default()
            };
            let other = first.part_mut(!wildcard);
            if !other.open {
                other.before = before(!wildcard);
            }
        }
        if let Some(first) = self.types.get_mut(type_url) {
            let part = first.part_mut(wildcard);
            part.open |= begins || alone;
            part.alone |= alone;
            (first.heard, first.whole) = (now, false);
        }
    }

    /// Whether the half has begun on the present stream, judged or not.
    pub(super) fn has_begun(&self, half: &Half) -> bool {
        self.stream.has_answered(half)
    }

    /// Notes whether all is answered with these changes.
    pub(super) fn end(&mut self, changes: &Changes) {
        let (type_url, wildcard) = (&changes.type_url, changes.wildcard);
        let Some(first) = self.types.get_mut(type_url) else {
            return;
        };
        let part = first.part_mut(wildcard);
        let alone = part.alone;
        part.answered |= !matches!(changes.phase, Phase::First | Phase::Anew);
        first.whole = changes.phase == Phase::Last;
        if changes.phase == Phase::Relayed || alone {
            self.close(type_url, wildcard);
        }
    }

    /// Ends the first states whose time is over.
    pub(super) fn pass(&mut self, now: Instant) {
        let stream = self.stream.first();
        for first in self.types.values_mut() {
            if first.ends(stream).is_some_and(|at| at <= now) {
                (first.covered.open, first.named.open) = (false, false);
            }
        }
        self.types.retain(|_, first| !first.is_over());
        let is_over = |of: &TypeUrl| !self.types.get(of).is_some_and(FirstState::is_open);
        self.stream.settle(is_over);
    }

    /// Returns when the next first state is over, as far as is known.
    pub(super) fn next_end(&self) -> Option<Instant> {
        let stream = self.stream.first();
        self.types.values().filter_map(|first| first.ends(stream)).min()
    }

    /// Returns from when on the clocks of the type's judgements count time.
    pub(super) fn counted_from(&self, of: &TypeUrl) -> Option<Instant> {
        let open = self.types.get(of).is_some_and(FirstState::is_open);
        self.stream.counted_from(of, open)
    }

    fn close(&mut self, type_url: &TypeUrl, wildcard: bool) {
        if let Some(part) = self.part_mut(&(type_url.clone(), wildcard)) {
            part.open = false;
        }
        self.types.retain(|_, first| !first.is_over());
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

    /// Returns all that clients were served there when the first state of this type began.
    pub(super) fn served_elsewhere(&self, of: &TypeUrl) -> Option<Arc<Cut>> {
        Some(self.types.get(of)?.elsewhere()?.served.clone())
    }

    /// Whether this is left from before, and the other server whose view sessions read has removed it: then its loss is none. `None`: no
    /// session reads that view; `true`: all do. What the server has said since it is served to who has come since.
    pub(super) fn gone_elsewhere(&self, (half, name): &Item) -> Option<bool> {
        let part = self.part(half).filter(|part| part.open && part.before.is_some())?;
        part.own.as_ref().filter(|own| is_present(own, name))?;
        let elsewhere = part.elsewhere.as_ref();
        let elsewhere = elsewhere.filter(|elsewhere| elsewhere.lacks(half, name));
        elsewhere.map(|elsewhere| elsewhere.all)
    }

    /// The half has lost the name; `emptied`: its endpoint assignment has become empty; `undecided`: no judgement holds it yet.
    pub(super) fn lose(&mut self, item: &Item, emptied: bool, undecided: bool, now: Instant) {
        let ((type_url, wildcard), name) = item;
        if let Some(first) = self.types.get_mut(type_url) {
            let part = first.part_mut(*wildcard);
            let into = if emptied { &mut part.emptied } else { &mut part.lost };
            into.insert(name.clone());
            if undecided {
                first.undecided.get_or_insert(now);
            }
        }
    }

    /// Whether the half has lost the name since its first state began.
    pub(super) fn has_lost(&self, half: &Half, name: &Name) -> bool {
        self.part(half).is_some_and(|part| part.lost.contains(name))
    }

    /// The half has the name again, or nobody wants it any more.
    pub(super) fn find(&mut self, (half, name): &Item) {
        if let Some(part) = self.part_mut(half) {
            part.lost.remove(name);
            part.emptied.remove(name);
        }
    }

    /// Returns when something is to be judged.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.types.values().filter_map(FirstState::due).min()
    }

    /// Decides about what waits for it.
    pub(super) fn judge(&mut self, cut: &Cut, table: &mut Table, now: Instant) {
        let due = |(_, first): &(&TypeUrl, &mut FirstState)| first.due().is_some_and(|due| due <= now);
        for (type_url, first) in self.types.iter_mut().filter(due) {
            first.judge(type_url, cut, table, now);
        }
        self.types.retain(|_, first| !first.is_over());
    }

    pub(super) fn clear(&mut self) {
        self.types.clear();
    }

    fn part(&self, half: &Half) -> Option<&Part> {
        self.types.get(&half.0).map(|first| first.part(half.1))
    }

    fn part_mut(&mut self, half: &Half) -> Option<&mut Part> {
        self.types.get_mut(&half.0).map(|first| first.part_mut(half.1))
    }
}

impl FirstState {
    fn new(now: Instant) -> Self {
        Self {
            covered: Part::default(),
            named: Part::default(),
            undecided: None,
            began: now,
            heard: now,
            whole: false,
            judgements: BTreeMap::new(),
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
        let parts = [&self.covered, &self.named];
        let lacks = parts.iter().any(|part| part.open && !part.answered);
        Some(match lacks || self.is_open() && !self.whole {
            true => (self.heard + QUIET).min(since + AT_MOST),
            false => self.heard,
        })
    }

    /// When it is over, as far as is known; `None`: it is.
    fn ends(&self, stream: Option<Instant>) -> Option<Instant> {
        let calm = (self.heard + QUIET).min(self.began + AT_MOST);
        let covered = match &self.covered {
            // What the wildcard covers is taken for gone after a calm, of which nothing is said if nothing is gone.
            part if part.answered => calm,
            part if part.elsewhere.is_some() => self.began + WHOLE,
            _ => self.heard + CALM,
        };
        let covered = self.covered.open.then_some(covered);
        let ends = covered.max(self.named.open.then_some(calm))?;
        Some(stream.map_or(ends, |first| ends.max(first + SETTLING)))
    }

    /// What clients were served by the view of another server when it began.
    fn elsewhere(&self) -> Option<&Elsewhere> {
        let mut parts = [&self.covered, &self.named].into_iter();
        parts.find_map(|part| part.elsewhere.as_ref())
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
    fn judge(&mut self, type_url: &TypeUrl, cut: &Cut, table: &mut Table, now: Instant) {
        self.undecided = None;
        let of_type = |half: &Half| half.0 == *type_url;
        let earlier = table.select(of_type, |row| row.judgement().is_some() && !row.is_emptied());
        let both = [(&self.covered, true), (&self.named, false)];
        let lost = both.iter().flat_map(|(part, _)| &part.lost);
        let lost: BTreeSet<&Name> = lost.chain(earlier.iter().map(|(_, name)| name)).collect();
        let emptied: BTreeSet<&Name> = both.iter().flat_map(|(part, _)| &part.emptied).collect();
        let gained = both.map(|(part, wildcard)| part.gained(cut.half(type_url, wildcard).map(|state| &**state)));
        let gained: BTreeSet<Name> = gained.into_iter().flatten().collect();
        let served = self.served();
        let is_mass = is_mass(type_url.kind(), lost.len(), gained.len(), served);
        let is_emptied = is_emptied(emptied.len(), served);
        let undecided = table.select(of_type, |row| row.loss() == Some(HeldLoss::Undecided));
        let is_much = |item: &Item| match table.get(item).is_some_and(Row::is_emptied) {
            true => is_emptied,
            false => is_mass,
        };
        let (much, passed): (Vec<Item>, Vec<Item>) = undecided.into_iter().partition(is_much);
        let pass = |item| table.change(item, HoldEnd::Free, Row::end_loss);
        passed.iter().for_each(pass);
        let elsewhere = self.elsewhere().cloned();
        let held = |item: &Item| elsewhere.as_ref()?.held(item);
        let mut judged: BTreeMap<Option<u32>, Vec<Item>> = BTreeMap::new();
        for item in much {
            let there = held(&item).map(|(number, ..)| number);
            judged.entry(there).or_default().push(item);
        }
        for (there, items) in judged {
            let known = self.judgements.get(&there).copied();
            let number = table.hold_loss(type_url, known, &items, now);
            self.judgements.insert(there, number);
        }
        table.resume(type_url, |item| held(item).map(|(_, clock, how)| (clock, how)), now);
    }
}

impl Part {
    /// Returns the names that are served now and were not before. It costs what has changed.
    fn gained(&self, now: Option<&State>) -> Vec<Name> {
        let none = OrdMap::new();
        let [before, now] = [self.before.as_deref(), now].map(|state| state.map_or(&none, State::entries));
        let gained = before.diff(now).filter_map(|item| match item {
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
