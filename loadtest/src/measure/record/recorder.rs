// SPDX-License-Identifier: Apache-2.0
//! The recorder: it is told when phases begin and end, and fetches the clients' counters and the processes' figures once a
//! second. It writes the record. It drives nothing, and only compares numbers with bounds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::state::{Open, SECOND_LEAST, State, millis};
use super::{
    Assertion, Base, Breach, Distribution, FORM, Machine, Note, Percentiles, Phase, Quantity, Ratio, Record, Relation,
    Second, TOOL_LOAD_LEAST, TOOL_SHARE_MAX, Unit, Verdict, float, surroundings,
};
use crate::measure::now;
use crate::measure::process::{Meter, Process};
use crate::measure::tally::{Feed, Tally};

/// A handle; all clones share one recorder.
#[derive(Clone)]
pub(crate) struct Recorder(Arc<Mutex<State>>);

/// What must hold, and what was measured.
#[derive(Clone, Debug)]
pub(crate) struct Claim<'a> {
    pub(crate) text: &'a str,
    pub(crate) measured: Quantity,
    pub(crate) relation: Relation,
    /// In the unit of the measured value.
    pub(crate) bound: f64,
    /// Whether it is about time, and therefore void if the tool took too much processor time.
    pub(crate) timed: bool,
    /// How busy the tool was, if it is not that of the whole phase.
    pub(crate) effort: Option<Effort>,
    /// The reason, if it does not hold and the figures do not show why.
    pub(crate) why: Option<String>,
}

/// How busy the tool was during something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Its part of the processor time of all, from 0 to 1.
    pub(crate) share: f64,
    /// Its processor time as a part of the time that passed: 1 is one processor.
    pub(crate) load: f64,
}

/// The state of the fleets, available at any time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fleets {
    pub(crate) clients: u64,
    /// How many of the clients have a stream; none if none uses streams.
    pub(crate) with_stream: Option<u64>,
    /// How many deliveries of changes are still to come, if that is known.
    pub(crate) owed: Option<u64>,
}

/// The figures of a second.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) phase: Option<String>,
    pub(crate) second: Second,
    /// How long the clients of the phase took to join, in microseconds; none if none has joined.
    pub(crate) joins_micros: Option<Percentiles>,
    /// The counters of the run up to then, by name.
    pub(crate) counters: BTreeMap<String, f64>,
}

const TICK: Duration = Duration::from_secs(1);

impl Recorder {
    /// Begins the record of a run.
    pub(crate) fn new(scenario: &str, now: Instant) -> anyhow::Result<Self> {
        let record = Record {
            form: FORM,
            scenario: scenario.to_owned(),
            setup: String::new(),
            command: std::env::args().collect(),
            commit: surroundings::commit(),
            machine: Machine::this(),
            start_unix: surroundings::unix_time(),
            length_ms: 0.0,
            base: None,
            phases: Vec::new(),
            counters: [].into(),
            notes: Vec::new(),
            assertions: Vec::new(),
            breaches: Vec::new(),
            breached: 0,
        };
        Ok(Self(Arc::new(Mutex::new(State {
            record,
            began: now,
            open: None,
            feeds: Vec::new(),
            server: None,
            own: Meter::start(Process::own())?,
            ticked: now,
            fresh: Tally::new()?,
            idle: 0.0,
            empty: Distribution::new()?,
        }))))
    }

    /// Sets the sentence that says what is simulated.
    pub(crate) fn describe(&self, setup: &str) {
        self.state().record.setup = setup.to_owned();
    }

    /// Adds these clients to what is counted.
    pub(crate) fn attach(&self, feed: Feed, count: impl Fn() -> Fleets + Send + 'static) {
        self.state().feeds.push((feed, Box::new(count)));
    }

    /// Sets the server whose costs count from now on.
    pub(crate) fn watch(&self, server: &Process) -> anyhow::Result<()> {
        self.state().server = Some(Meter::start(server.clone())?);
        Ok(())
    }

    /// Takes the server's current memory as that of these few clients; any growth counts for further clients.
    pub(crate) fn base(&self, clients: u64) -> anyhow::Result<()> {
        let mut state = self.state();
        if let Some(server) = &state.server {
            let resident_bytes = server.process().resident_bytes()?;
            state.record.base = Some(Base {
                clients,
                resident_bytes,
            });
        }
        Ok(())
    }

    /// Ends the phase before, if there is one, and begins another.
    pub(crate) fn begin(&self, name: &str, now: Instant) -> anyhow::Result<()> {
        let mut state = self.state();
        state.end(now)?;
        let phase = state.blank(name, now);
        state.open = Some(Open { phase, began: now });
        Ok(())
    }

    /// Takes the server's processor time in the current phase as its idle rate, which is subtracted in later phases.
    pub(crate) fn idle(&self, now: Instant) -> anyhow::Result<()> {
        let mut state = self.state();
        state.tick(now)?;
        if let Some(Open { phase, began }) = &state.open {
            let length = now.saturating_duration_since(*began);
            // A very short phase gives no usable rate.
            if length >= SECOND_LEAST {
                let cpu_ms = phase.server.map_or(0.0, |server| server.cpu_ms);
                state.idle = cpu_ms / millis(length);
            }
        }
        Ok(())
    }

    /// Returns the current phase as if it ended now, for claims about it.
    pub(crate) fn look(&self, now: Instant) -> anyhow::Result<Option<Phase>> {
        let mut state = self.state();
        state.tick(now)?;
        Ok(state.closed(now))
    }

    /// Ends the current phase. Later claims are about the whole run.
    pub(crate) fn end(&self, now: Instant) -> anyhow::Result<()> {
        self.state().end(now)
    }

    /// Records what must hold and whether it does.
    pub(crate) fn claim(&self, claim: &Claim<'_>) -> Verdict {
        let mut state = self.state();
        let held = claim.relation.holds(claim.measured.value, claim.bound);
        let effort = claim.effort.or_else(|| state.effort());
        // A claim without a measurement fails; it is not void.
        let timed = claim.timed && claim.measured.value.is_finite();
        let busy = effort.filter(|it| timed && it.share > TOOL_SHARE_MAX && it.load > TOOL_LOAD_LEAST);
        let verdict = match (busy, held) {
            (Some(_), _) => Verdict::Void,
            (None, true) => Verdict::Held,
            (None, false) => Verdict::Failed,
        };
        let why = match busy {
            Some(Effort { share, .. }) => Some(format!("the tool took {:.0} % of all processor time", share * 100.0)),
            None => claim.why.clone().filter(|_| !held),
        };
        let assertion = Assertion {
            phase: state.phase(),
            text: claim.text.to_owned(),
            relation: claim.relation,
            bound: Some(Quantity::new(claim.bound, claim.measured.unit)),
            // A value that could not be measured is left out, and never holds.
            measured: Some(claim.measured).filter(|measured| measured.value.is_finite()),
            verdict,
            why,
        };
        state.record.assertions.push(assertion);
        verdict
    }

    /// Records a failure: something did not happen that had to, or happened that must not.
    pub(crate) fn fail(&self, text: &str, why: Option<String>) {
        let mut state = self.state();
        let assertion = Assertion {
            phase: state.phase(),
            text: text.to_owned(),
            relation: Relation::Exactly,
            bound: None,
            measured: None,
            verdict: Verdict::Failed,
            why,
        };
        state.record.assertions.push(assertion);
    }

    /// Adds a note to the report.
    pub(crate) fn note(&self, what: &str, value: impl std::fmt::Display) {
        let mut state = self.state();
        let note = Note {
            phase: state.phase(),
            what: what.to_owned(),
            value: value.to_string(),
        };
        state.record.notes.push(note);
    }

    /// Adds a note of how long something took.
    pub(crate) fn time(&self, what: &str, taken: Duration) {
        self.note(what, Quantity::new(millis(taken), Unit::Millis));
    }

    /// Claims that a count is `wanted`.
    pub(crate) fn expect(&self, what: &str, found: u64, wanted: u64) {
        self.claim(&Claim {
            text: what,
            measured: Quantity::new(float(found), Unit::Count),
            relation: Relation::Exactly,
            bound: float(wanted),
            timed: false,
            effort: None,
            why: None,
        });
    }

    /// Adds to a counter of the current phase and of the run.
    pub(crate) fn count(&self, name: &str, amount: f64) {
        self.state().count(name, amount);
    }

    /// Records a figure of the current phase as multiples of the floor's.
    pub(crate) fn ratio(&self, what: &str, mut rounds: Vec<f64>) {
        rounds.retain(|round| round.is_finite());
        if let Some(open) = &mut self.state().open {
            let what = what.to_owned();
            open.phase.ratios.push(Ratio { what, rounds });
        }
    }

    /// Notes for how long a client was without a stream that it had, at most, in the current phase.
    pub(crate) fn without_stream(&self, longest: Duration) {
        if let Some(open) = &mut self.state().open {
            open.phase.longest_without_stream_ms = Some(millis(longest));
        }
    }

    /// Records a violation that one client saw.
    pub(crate) fn breach(&self, client: u64, what: String, transcript: Vec<String>) {
        let mut state = self.state();
        let breach = Breach {
            phase: state.phase(),
            client,
            what,
            transcript,
        };
        state.record.breached += 1;
        if state.record.breaches.len() < BREACHES_TOLD_MAX {
            state.record.breaches.push(breach);
        }
    }

    /// Ends the current phase and the record.
    pub(crate) fn finish(&self, now: Instant) -> anyhow::Result<Record> {
        let mut state = self.state();
        state.end(now)?;
        state.tick(now)?;
        state.record.length_ms = millis(now.saturating_duration_since(state.began));
        Ok(state.record.clone())
    }

    /// Ticks once a second, counted from the start of a phase, for as long as it is polled, and reports each tick.
    pub(crate) async fn run(&self, mut tell: impl FnMut(&Live)) -> anyhow::Error {
        loop {
            let due = self.state().ticked + TICK;
            tokio::time::sleep_until(due.into()).await;
            // A new phase may have begun meanwhile, and a new second with it.
            if self.state().ticked + TICK > due {
                continue;
            }
            match self.tick(due.max(now())) {
                Ok(live) => tell(&live),
                Err(error) => return error,
            }
        }
    }

    pub(crate) fn tick(&self, now: Instant) -> anyhow::Result<Live> {
        let mut state = self.state();
        let second = state.tick(now)?;
        Ok(Live {
            phase: state.phase(),
            second,
            joins_micros: state.joins(),
            counters: state.record.counters.clone(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Further ones are only counted.
const BREACHES_TOLD_MAX: usize = 20;
