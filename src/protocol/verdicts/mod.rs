//! Content that clients of one kind reject is condemned for that kind: who comes later is served what the kind accepted before.
//!
//! Owns what is condemned, what stands in for it, and when clients are asked. Knows nothing of streams and of who serves what.

mod hearing;
mod memory;
mod pace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use classes::ClientKind;
use hearing::Counts;
pub use hearing::{Hearing, Witness};
use memory::{Charge, Memory};
use pace::{Extent, Pace};
use xds::{Condemned, Name, Objection, Resource, TypeUrl, VerdictEnd, Version};

/// The verdicts of one view.
///
/// A content is condemned for a kind of client if `after` clients of the kind have rejected it, or every one where there are fewer,
/// and none has accepted it. It is condemned until the control plane says something else, a client of the kind accepts it, or a person releases it; and only
/// as long as older content that the kind accepted can stand in for it.
///
/// - B, inputs: `handle_rejection`, `handle_trial`, `handle_hearing`, `handle_contents`, `release`, `follow`, `restore`.
/// - D, outputs: `poll_question`, to be answered with `handle_hearing`; `take_condemned`, after each input; `poll_timeout`.
#[derive(Debug, Default)]
pub struct Verdicts {
    after: usize,
    paces: BTreeMap<TypeUrl, Pace>,
    /// The kinds that have a place of their own.
    kinds: Vec<ClientKind>,
    condemned: Vec<Arc<Condemned>>,
    memory: Memory,
    changed: bool,
    events: Vec<(Arc<Condemned>, Option<VerdictEnd>)>,
}

/// What is condemned, and what has changed of that.
#[derive(Clone, Debug, Default)]
pub struct Sentence {
    /// All that is condemned.
    pub condemned: Vec<Arc<Condemned>>,
    /// The kinds that have a place of their own.
    pub kinds: Vec<ClientKind>,
    /// What is condemned now, or why it is not any more.
    pub events: Vec<(Arc<Condemned>, Option<VerdictEnd>)>,
}

/// Content that was replaced.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// The content.
    pub resource: Arc<Resource>,
    /// Until when it was served.
    pub until: Instant,
}

/// What the view has.
pub struct Contents<'a> {
    /// Whether this is what the control plane says now.
    pub is_current: &'a dyn Fn(&TypeUrl, &Name, Version) -> bool,
    /// Returns what this content has replaced, if it is kept.
    pub earlier: &'a dyn Fn(&TypeUrl, &Name, Version) -> Option<Earlier>,
}

/// Those to whom a content was sent already answer within this time.
const PATIENCE: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);
/// What is condemned is asked about again after so long.
const REVIEW: Duration = Duration::from_secs(10 * 60);
/// As many contents of a view are condemned.
const CONDEMNED_MAX: usize = 1024;
/// As many older contents of a name are looked at.
const OLDER_MAX: usize = 8;

impl Verdicts {
    /// A content is condemned after so many rejections; 0: nothing is condemned.
    pub fn set(&mut self, after: usize) {
        self.after = after;
        if after == 0 {
            self.end_where(VerdictEnd::Off, |_| true);
            self.paces.clear();
            self.memory = Memory::default();
        }
    }

    /// A client has rejected something of this type. Endpoints are never condemned: older ones lead nowhere.
    pub fn handle_rejection(&mut self, type_url: &TypeUrl, now: Instant) {
        if self.after > 0 && !type_url.kind().is_endpoints() {
            self.paces.entry(type_url.clone()).or_default().wish(now);
        }
    }

    /// A client tries what is condemned: it will accept or reject it.
    pub fn handle_trial(&mut self, now: Instant) {
        let types: BTreeSet<&TypeUrl> = self.condemned.iter().map(|one| &one.type_url).collect();
        for type_url in types {
            let pace = self.paces.entry(type_url.clone()).or_default();
            pace.watch(now + PATIENCE);
        }
    }

    /// Returns the next question to the clients.
    pub fn poll_question(&mut self, now: Instant) -> Option<Hearing> {
        let mut paces = self.paces.iter_mut();
        let (type_url, extent) =
            paces.find_map(|(type_url, pace)| pace.ask(now).map(|extent| (type_url.clone(), extent)))?;
        let condemned = self.condemned.iter().filter(|one| one.type_url == type_url);
        // Those to whom older ones were sent have answered, or will not.
        let asked = condemned.filter(|one| extent == Extent::All || one.since + PATIENCE + SECOND > now);
        let names = asked.map(|one| one.name().clone()).collect();
        Some(Hearing::new(type_url, names, self.kinds.clone()))
    }

    /// When [`Self::poll_question`] is due at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.paces.values().filter_map(Pace::poll_timeout).min()
    }

    /// Takes what clients have said.
    pub fn handle_hearing(&mut self, hearing: &Hearing, contents: &Contents<'_>, now: Instant) {
        let type_url = hearing.type_url();
        let mut condemned = self.condemned.iter().filter(|one| one.type_url == *type_url);
        let pending = condemned.any(|one| {
            let counts = hearing.counts(one.kind.as_ref(), one.name(), one.version);
            counts.is_some_and(Counts::is_pending)
        });
        if let Some(pace) = self.paces.get_mut(type_url) {
            pace.answered(pending, now);
        }
        if self.after == 0 {
            return;
        }
        // What was condemned until now stands in for nothing, and what stood in for it does.
        self.handle_contents(contents, now);
        self.kinds = hearing.kinds().to_vec();
        for (kind, tally) in hearing.of_kinds() {
            for ((name, version), counts) in tally.contents() {
                let charge = Charge {
                    type_url: type_url.clone(),
                    name: name.clone(),
                    version: *version,
                    kind: kind.cloned(),
                };
                if counts.is_accepted() {
                    self.memory.note_accepted(&charge);
                    self.end_where(VerdictEnd::Accepted, |one| Charge::of(one) == charge);
                } else if self.is_guilty(hearing.voices(counts), counts) {
                    self.memory.note_spoiled(charge.clone(), now);
                    self.end_where(VerdictEnd::StandInRejected, |one| {
                        charge == Charge::of(one).at(one.stands_in.version())
                    });
                    if (contents.is_current)(type_url, name, *version) {
                        self.condemn(charge, counts, tally.since(), contents, now);
                    }
                }
            }
        }
        let condemns = self.condemned.iter().any(|one| one.type_url == *type_url);
        if let Some(pace) = self.paces.get_mut(type_url).filter(|_| condemns) {
            pace.review(now + REVIEW);
        }
    }

    const fn is_guilty(&self, voices: usize, counts: &Counts) -> bool {
        voices >= self.after || counts.is_unanimous()
    }

    fn condemn(
        &mut self,
        charge: Charge,
        counts: &Counts,
        since: Option<Instant>,
        contents: &Contents<'_>,
        now: Instant,
    ) {
        let known = self.condemned.iter_mut().find(|one| Charge::of(one) == charge);
        if let Some(known) = known {
            if counts.rejected() > known.clients {
                let all = Condemned::clone(known);
                let (clients, of) = (counts.rejected(), counts.all().max(known.of));
                *known = Arc::new(Condemned { clients, of, ..all });
                self.changed = true;
            }
            return;
        }
        if self.condemned.len() >= CONDEMNED_MAX || self.memory.is_released(&charge) {
            return;
        }
        let Some(stands_in) = self.stand_in(&charge, since, contents) else {
            return;
        };
        let nothing = || Arc::new(Objection::new(0, "", now));
        let condemned = Arc::new(Condemned {
            type_url: charge.type_url,
            version: charge.version,
            kind: charge.kind,
            stands_in,
            since: now,
            clients: counts.rejected(),
            of: counts.all(),
            objection: counts.objection().cloned().unwrap_or_else(nothing),
        });
        if let Some(pace) = self.paces.get_mut(&condemned.type_url).filter(|_| counts.is_pending()) {
            pace.expect(now + PATIENCE);
        }
        self.events.push((condemned.clone(), None));
        self.condemned.push(condemned);
        self.changed = true;
    }

    /// Returns the last content of the name that the kind has not rejected, and that it was there to accept.
    fn stand_in(&self, charge: &Charge, since: Option<Instant>, contents: &Contents<'_>) -> Option<Arc<Resource>> {
        let mut version = charge.version;
        let find = |charge: &Charge| self.condemned.iter().find(|one| Charge::of(one) == *charge);
        for _ in 0..OLDER_MAX {
            let newer = charge.at(version);
            let stands_in = find(&newer).map(|one| &one.stands_in);
            let stood_in = stands_in.or_else(|| self.memory.stood_in(&newer)).cloned();
            let earlier = || {
                let earlier = (contents.earlier)(&charge.type_url, &charge.name, version)?;
                since
                    .is_some_and(|since| since < earlier.until)
                    .then_some(earlier.resource)
            };
            let older = stood_in.or_else(earlier)?;
            let found = charge.at(older.version());
            // What an earlier run knew counts as current for a while, and may be condemned still.
            if !self.memory.is_spoiled(&found) && find(&found).is_none() {
                return Some(older);
            }
            version = older.version();
        }
        None
    }

    /// Looks at what the control plane says now: what has changed is not condemned any more.
    pub fn handle_contents(&mut self, contents: &Contents<'_>, now: Instant) {
        let changed = |one: &Condemned| !(contents.is_current)(&one.type_url, one.name(), one.version);
        let past = self.condemned.iter().filter(|one| changed(one)).cloned();
        for one in past.collect::<Vec<_>>() {
            self.memory.note_spoiled(Charge::of(&one), now);
            self.memory.note_past(one, now);
        }
        self.end_where(VerdictEnd::Changed, changed);
        self.memory.forget(contents.is_current, now);
    }

    /// A person releases what is meant. Returns whether anything was.
    pub fn release(&mut self, is_meant: impl Fn(&Condemned) -> bool) -> bool {
        let released = self.condemned.iter().filter(|one| is_meant(one));
        let released: Vec<Charge> = released.map(|one| Charge::of(one)).collect();
        let any = !released.is_empty();
        released
            .into_iter()
            .for_each(|charge| self.memory.note_released(charge));
        self.end_where(VerdictEnd::Released, is_meant);
        any
    }

    /// Content that clients can take along to this view is not condemned any more where they are. If it has only changed there, this view's
    /// server may still say it.
    pub fn follow(&mut self, one: &Condemned, end: VerdictEnd, now: Instant) {
        let charge = Charge::of(one);
        let older = one.stands_in.version();
        match end {
            VerdictEnd::Changed | VerdictEnd::Off => return,
            VerdictEnd::Accepted => self.memory.note_accepted(&charge),
            VerdictEnd::Released => self.memory.note_released(charge.clone()),
            VerdictEnd::StandInRejected => self.memory.note_spoiled(charge.at(older), now),
        }
        let ends = |known: &Condemned| end != VerdictEnd::StandInRejected || known.stands_in.version() == older;
        self.end_where(end, |known| Charge::of(known) == charge && ends(known));
    }

    /// Takes over what an earlier run of the relay has condemned, or the view from which clients come. Clients are asked at once: they may
    /// have accepted it here.
    pub fn restore(&mut self, condemned: Vec<Condemned>, now: Instant) {
        for one in condemned {
            let charge = Charge::of(&one);
            let known = self.condemned.iter().any(|known| Charge::of(known) == charge);
            if known || self.after == 0 || self.condemned.len() >= CONDEMNED_MAX || self.memory.is_released(&charge) {
                continue;
            }
            let own = one.kind.iter().filter(|kind| !self.kinds.contains(kind)).cloned();
            self.kinds.extend(own.collect::<Vec<_>>());
            let pace = self.paces.entry(one.type_url.clone()).or_default();
            pace.review(now);
            // Those to whom it was sent before may come along, and answer here.
            if one.since + PATIENCE > now {
                pace.watch(one.since + PATIENCE);
            }
            self.condemned.push(Arc::new(one));
            self.changed = true;
        }
    }

    fn end_where(&mut self, end: VerdictEnd, ends: impl Fn(&Condemned) -> bool) {
        let events = &mut self.events;
        self.condemned.retain(|one| {
            let ended = ends(one);
            if ended {
                events.push((one.clone(), Some(end)));
            }
            !ended
        });
        self.changed |= !self.events.is_empty();
    }

    /// Returns what is condemned, if that has changed since the last call.
    pub fn take_condemned(&mut self) -> Option<Sentence> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        Some(Sentence {
            condemned: self.condemned.clone(),
            kinds: self.kinds.clone(),
            events: std::mem::take(&mut self.events),
        })
    }

    /// What is condemned.
    #[must_use]
    pub const fn condemned(&self) -> &Vec<Arc<Condemned>> {
        &self.condemned
    }

    /// Whether nothing is condemned, asked or remembered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.condemned.is_empty() && !self.changed && self.memory.is_empty() && self.paces.values().all(Pace::is_idle)
    }
}
