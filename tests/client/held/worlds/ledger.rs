// SPDX-License-Identifier: Apache-2.0
//! An observer of what one view holds: its clocks count no time without the word of its control plane, whatever ends has one of its ends in
//! the log, and nothing is held without a bound.
//!
//! Owns what it saw last. Knows of the control plane when it answered what; nothing of the table.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds::{Hold, HoldReason, Name, ServerState, TypeUrl};

use super::super::plane::endpoints;
use super::super::stage::{Stage, USUAL};
use crate::ms;

const MOMENT: Duration = ms(1);
/// A stream is this old at least until a first state on it is over.
const SETTLING: Duration = Duration::from_secs(5);
/// So long after the first answer for a type its clocks certainly count.
const OVER: Duration = Duration::from_secs(31);
/// After this time, a server counts as there for a type of which it says nothing.
const SILENT: Duration = Duration::from_secs(30);
const AWAY: Duration = Duration::from_secs(10);
const ABSENCES: u32 = 5;
const LEAST: Duration = Duration::from_secs(60);

/// What it saw.
pub(super) struct Ledger {
    at: Instant,
    holds: Vec<Hold>,
    terms: BTreeMap<(TypeUrl, u32), Term>,
    /// When the control plane answered first on the stream that was seen last.
    first: Option<Instant>,
    /// How many streams in a row may have ended before a first state was over.
    short: u32,
    /// What was left of the clocks that clients bring from another server, when they were there last.
    brought: Vec<(TypeUrl, Duration)>,
}

/// What was seen of a judgement's clock.
struct Term {
    /// When it ran last.
    ran: Instant,
    /// How often it got more time.
    rises: u32,
}

impl Ledger {
    pub(super) const fn new(at: Instant) -> Self {
        Self {
            at,
            holds: Vec::new(),
            terms: BTreeMap::new(),
            first: None,
            short: 0,
            brought: Vec::new(),
        }
    }

    /// Looks at the view, after time has passed in which its stream was one and the same. `heard`: what has ended and begun meanwhile;
    /// `there`: since when all servers are there and hold nothing for a judgement. Returns what is wrong.
    pub(super) fn look(&mut self, stage: &Stage, heard: &str, there: Instant) -> Option<String> {
        let now = stage.upstream.now;
        let mut found = self.ends(stage, heard);
        if stage.above.is_some() && stage.holds.iter().any(|hold| hold.reason == HoldReason::Mass) {
            return Some("what another relay says is judged".to_owned());
        }
        if let Some(served) = &stage.elsewhere {
            let left = |hold: &Hold| Some((hold.type_url.clone(), hold.clock?.left(now)));
            self.brought = served.holds().iter().filter_map(left).collect();
        }
        for hold in &stage.holds {
            found = found.or_else(|| match hold.reason {
                HoldReason::Mass => self.clock(stage, hold),
                HoldReason::Unready => {
                    let since = hold.since()?;
                    let late = now > (since.max(there) + ms(2_000)).min(since + USUAL.unready) + ms(20);
                    late.then(|| format!("a change waits since {:?}", now - since))
                }
                HoldReason::Referenced => {
                    let mut all = hold.removals.values();
                    let late = all.any(|removal| removal.until.is_some_and(|until| until + ms(20) < now));
                    late.then(|| "a reference counts for longer than it may".to_owned())
                }
            });
        }
        self.first = self.first.or(first(stage));
        (self.at, self.holds) = (now, stage.holds.clone());
        found.map(|what| format!("{what}, at {:?}", stage.holds))
    }

    /// The stream ends at this moment, after the look.
    pub(super) fn end_stream(&mut self) {
        if let Some(first) = self.first.take() {
            let long = self.at - first > SETTLING + ms(4_000);
            self.short = if long { 0 } else { self.short + 1 };
        }
    }

    /// Whatever is held no longer has an end in the log, and a true one.
    fn ends(&self, stage: &Stage, heard: &str) -> Option<String> {
        for hold in &self.holds {
            let now = stage
                .holds
                .iter()
                .filter(|now| (&now.type_url, now.reason) == (&hold.type_url, hold.reason));
            let now: Vec<_> = now.collect();
            let is_held = |name: &Name| now.iter().any(|hold| hold.removals.contains_key(name));
            let left: Vec<&Name> = hold.removals.keys().filter(|name| !is_held(name)).collect();
            if left.is_empty() {
                continue;
            }
            let word = format!("-{} {} ", hold.type_url.word(), hold.reason);
            let ends: Vec<&str> = heard
                .split(", ")
                .filter_map(|event| event.strip_prefix(&*word))
                .collect();
            if ends.is_empty() {
                return Some(format!("{left:?} are held no longer, and no end is in the log"));
            }
            if hold.reason != HoldReason::Mass {
                continue;
            }
            let of_type = stage.plane.content.get(hold.type_url.url());
            let is_said = |name: &&&Name| {
                let body = of_type.and_then(|all| all.get(name.as_str()));
                let is_empty = |body: &Bytes| hold.removals[**name].emptied && *body == endpoints(name.as_str(), 0);
                body.is_some_and(|body| !is_empty(body))
            };
            let over = hold.clock.is_some_and(|clock| clock.left(stage.upstream.now) <= MOMENT);
            // What all its clients have lost elsewhere is not served to them again.
            let gone = stage.elsewhere.is_some() && ends.contains(&"gone");
            let unsaid = left.iter().find(|name| !is_said(name) && !gone);
            if let Some(unsaid) = unsaid.filter(|_| !over || !ends.contains(&"clock")) {
                let left = hold.clock.map(|clock| clock.left(stage.upstream.now));
                return Some(format!(
                    "a judgement with {left:?} left holds {unsaid} no longer, because of {ends:?}"
                ));
            }
        }
        None
    }

    /// From when on clocks of a type may count on the stream.
    fn counts_from(&self, stage: &Stage, of: &TypeUrl) -> Option<Instant> {
        let first = first(stage).filter(|_| stage.state == ServerState::Up)?;
        let answered = stage.answered.get(of.url());
        let over = answered.map(|at| (*at).max(first + SETTLING));
        match self.short {
            0 | 1 => over.into_iter().chain([first + SILENT]).min(),
            _ => Some(first),
        }
    }

    /// No clock counts time without the server's word. With it, it does; and it gets more time only after an absence, five times at most. One
    /// that clients bring goes on where they are.
    fn clock(&mut self, stage: &Stage, hold: &Hold) -> Option<String> {
        let now = stage.upstream.now;
        let clock = hold.clock?;
        let term = self
            .terms
            .entry((hold.type_url.clone(), hold.judgement?))
            .or_insert(Term { ran: now, rises: 0 });
        let ran = term.ran;
        if clock.runs.is_some_and(|since| since <= now) {
            term.ran = now;
        }
        let mut all = judged(&self.holds, &hold.type_url);
        let before = all.find(|before| before.judgement == hold.judgement)?;
        let (was, left) = (before.clock?.left(self.at), clock.left(now));
        if left > was + MOMENT {
            term.rises += 1;
            let wrong = term.rises > ABSENCES || left > LEAST || now - ran <= AWAY;
            return wrong.then(|| format!("a clock has {left:?} left again, for the {}. time", term.rises));
        }
        let counted = was.saturating_sub(left);
        let time_from = |from: Option<Instant>| {
            let time = from.map(|from| now.saturating_duration_since(from.max(self.at)));
            time.unwrap_or_default()
        };
        let allowed = time_from(self.counts_from(stage, &hold.type_url));
        let answered = stage.answered.get(hold.type_url.url());
        let due = time_from(answered.map(|at| *at + OVER).filter(|_| stage.state == ServerState::Up));
        let mut brought = self.brought.iter().filter(|(of, _)| *of == hold.type_url);
        let too_much = counted > allowed + MOMENT && !brought.any(|(_, there)| left + MOMENT >= *there);
        let wrong = too_much || counted + MOMENT < due.min(was);
        wrong.then(|| format!("a clock has counted {counted:?}, of {due:?} to {allowed:?}"))
    }
}

fn first(stage: &Stage) -> Option<Instant> {
    stage.answered.values().min().copied()
}

fn judged<'a>(holds: &'a [Hold], of: &TypeUrl) -> impl Iterator<Item = &'a Hold> {
    holds
        .iter()
        .filter(move |hold| hold.reason == HoldReason::Mass && hold.type_url == *of)
}
