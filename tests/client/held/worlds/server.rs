// SPDX-License-Identifier: Apache-2.0
//! The life of a control plane: its streams end, it is away, it comes back with a part of what it had, and answers types late, in any order.
//!
//! Owns what its operators want it to have, and what happens to it by itself. Does not know what the relay makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds::TypeUrl;

use super::super::plane::{Content, endpoints};
use super::super::stage::Stage;
use super::rng::Rng;
use crate::{CDS, EDS, LDS, RDS};

pub(super) const KINDS: [&str; 4] = [LDS, RDS, CDS, EDS];

/// What a control plane is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ways {
    /// How long its streams last, and how long it is away then.
    lasts: Option<Duration>,
    rests: Duration,
    /// Whether it answers types late on a new stream.
    late: bool,
    /// Whether it has a part of its content on a new stream.
    forgets: bool,
}

/// How it is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// Its stream ends.
    Alone,
    /// So does that to the relay between.
    All,
    /// It only counts as being away.
    Counted,
}

/// One control plane.
pub(super) struct Server {
    intended: Content,
    /// What it has ever had on a stream, by type and name.
    ever: BTreeSet<(String, String)>,
    /// How many streams it has begun.
    streams: usize,
    ways: Ways,
    /// When its stream ends.
    ends: Option<Instant>,
    /// When it is there again.
    returns: Option<Instant>,
    /// When it has all again.
    whole: Option<Instant>,
    /// When it answers for these types.
    answers: BTreeMap<&'static str, Instant>,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = self.answers.keys().map(|kind| TypeUrl::new(kind));
        let part = if self.whole.is_some() { "with a part, " } else { "" };
        write!(f, "{part}late: {:?}", late.collect::<Vec<_>>())
    }
}

impl Ways {
    /// Its stream never ends by itself.
    pub(super) const CALM: Self = Self {
        lasts: None,
        rests: Duration::ZERO,
        late: false,
        forgets: false,
    };

    pub(super) fn new(rng: &mut Rng) -> Self {
        let lasts = rng.of(&[0, 0, 10, 30, 60, 90]);
        Self {
            lasts: Some(Duration::from_secs(lasts)).filter(|_| lasts > 0),
            rests: rng.millis(&[0, 0, 12_000]),
            late: rng.one_in(2),
            forgets: rng.one_in(2),
        }
    }
}

impl Server {
    /// One whose stream has begun with all that it has.
    pub(super) fn new(ways: Ways, stage: &mut Stage) -> Self {
        Self {
            intended: stage.top().plane.content.clone(),
            ever: BTreeSet::new(),
            streams: 1,
            ends: ways.lasts.map(|time| stage.upstream.now + time),
            ways,
            returns: None,
            whole: None,
            answers: BTreeMap::new(),
        }
    }

    /// Another one that is to have the same, and has no stream yet.
    pub(super) fn replica(&self) -> Self {
        Self {
            intended: self.intended.clone(),
            ever: BTreeSet::new(),
            streams: 0,
            ways: self.ways,
            ends: None,
            returns: None,
            whole: None,
            answers: BTreeMap::new(),
        }
    }

    /// Its operators give it something, or take it away.
    pub(super) fn change(&mut self, stage: &mut Stage, kind: &str, name: &str, body: Option<Bytes>) {
        let has = &mut stage.top().plane.content;
        for content in [&mut self.intended, has] {
            let of_kind = content.entry(kind.to_owned()).or_default();
            match &body {
                Some(body) => drop(of_kind.insert(name.to_owned(), body.clone())),
                None => drop(of_kind.remove(name)),
            }
        }
        self.remember(&stage.top().plane.content);
    }

    fn remember(&mut self, content: &Content) {
        let names = content
            .iter()
            .flat_map(|(kind, all)| all.keys().map(move |name| (kind.clone(), name.clone())));
        self.ever.extend(names);
    }

    /// Whether it has ever had this on a stream.
    pub(super) fn had(&self, kind: &str, name: &str) -> bool {
        self.ever.contains(&(kind.to_owned(), name.to_owned()))
    }

    /// What it is to have.
    pub(super) fn intends(&self, kind: &str, name: &str) -> Option<&Bytes> {
        self.intended.get(kind)?.get(name)
    }

    /// Whether its first stream lasts.
    pub(super) const fn is_new(&self) -> bool {
        self.streams == 1
    }

    pub(super) const fn is_away(&self) -> bool {
        self.returns.is_some()
    }

    /// Whether it is there again from now on.
    pub(super) fn is_back(&self, now: Instant) -> bool {
        self.returns.is_some_and(|at| at <= now)
    }

    /// It is away for a while.
    pub(super) fn go(&mut self, stage: &mut Stage, time: Duration, how: Absence) {
        self.returns = Some(stage.upstream.now + time);
        self.ends = None;
        match how {
            Absence::Alone => stage.top().lose(),
            Absence::All => {
                stage.top().lose();
                stage.lose();
            }
            Absence::Counted => stage.top().count(false),
        }
    }

    /// A stream begins.
    pub(super) fn begin(&mut self, stage: &mut Stage, rng: &mut Rng) {
        let now = stage.upstream.now;
        self.returns = None;
        self.streams += 1;
        self.ends = self.ways.lasts.map(|time| now + time);
        let plane = &mut stage.top().plane;
        // What it has forgotten it lacks on further streams, too.
        if self.whole.is_none_or(|at| at <= now) {
            self.whole = None;
            plane.content = self.intended.clone();
            if self.ways.forgets && rng.one_in(2) {
                forget(&mut plane.content, rng);
                self.whole = Some(now + rng.millis(&[300, 4_000, 30_000, 100_000, 400_000]));
            }
        }
        self.remember(&plane.content);
        let late = KINDS.into_iter().filter(|_| self.ways.late && rng.one_in(2));
        self.answers = late.collect::<Vec<_>>().into_iter().map(|kind| (kind, now)).collect();
        for at in self.answers.values_mut() {
            *at += rng.millis(&[700, 3_000, 13_000, 33_000, 100_000, 300_000]);
        }
        plane.habits.late = self.answers.keys().copied().collect();
        stage.top().find();
        stage.find();
    }

    /// Returns when something happens to it.
    pub(super) fn due(&self) -> Option<Instant> {
        let all = [self.ends, self.returns, self.whole];
        all.into_iter().flatten().chain(self.answers.values().copied()).min()
    }

    /// What is due happens. Returns whether its stream has ended.
    pub(super) fn pass(&mut self, stage: &mut Stage, rng: &mut Rng) -> bool {
        let now = stage.upstream.now;
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let ends = is_due(self.ends);
        if ends {
            self.go(stage, self.ways.rests, rng.of(&[Absence::Alone, Absence::All]));
        }
        if is_due(self.returns) {
            self.begin(stage, rng);
        }
        let plane = &mut stage.top().plane;
        if is_due(self.whole) {
            self.whole = None;
            plane.content = self.intended.clone();
            self.remember(&plane.content);
        }
        self.answers.retain(|_, at| *at > now);
        plane.habits.late = self.answers.keys().copied().collect();
        ends
    }

    /// From now on it is there, has all, and answers.
    pub(super) fn heal(&mut self, stage: &mut Stage) {
        stage.top().find();
        stage.find();
        *self = Self {
            ways: Ways::CALM,
            ..self.replica()
        };
        let plane = &mut stage.top().plane;
        plane.content = self.intended.clone();
        plane.habits.late.clear();
    }
}

/// Some types lack a part, or all, or clusters have no endpoints.
fn forget(content: &mut Content, rng: &mut Rng) {
    let loss = rng.below(4);
    for (kind, all) in content {
        match loss {
            0 => all.clear(),
            1 | 2 if rng.below(3) > 0 => all.retain(|_, _| !rng.one_in(2)),
            3 if kind == EDS => all.iter_mut().for_each(|(name, body)| *body = endpoints(name, 0)),
            _ => {}
        }
    }
}
