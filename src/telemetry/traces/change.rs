// SPDX-License-Identifier: Apache-2.0
//! One change from a control plane that is traced, from its arrival until its last acknowledgement.
//!
//! Owns the times and the counts. Knows nothing of streams, and asks none: who delivers it tells it so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator};
use parking_lot::Mutex;

use crate::xds::{Name, TypeUrl};

/// A response of a control plane, when it was decoded.
#[derive(Clone, Debug)]
pub struct TracedArrival {
    /// The name of the server.
    pub server: Arc<str>,
    /// The type of the response.
    pub type_url: TypeUrl,
    /// Its size.
    pub bytes: usize,
    /// When its last byte was read. All content that it brings has this time.
    pub received: Instant,
    /// When it was decoded.
    pub decoded: Instant,
    /// The span of the server in which the change happened.
    pub parent: Option<SpanContext>,
    /// The span of the server for the whole stream.
    pub stream: Option<SpanContext>,
}

/// What is new in a response.
#[derive(Clone, Debug, Default)]
pub struct TracedNews {
    /// How many resources are new or have new content.
    pub resources: usize,
    /// The first of their names.
    pub names: Vec<Name>,
    /// When the content that they replace had arrived.
    pub(super) replaced: Vec<Instant>,
}

/// A change that is traced.
#[derive(Debug)]
pub struct TracedChange {
    /// Its own span.
    pub own: SpanContext,
    /// The span of its delivery, to which the receivers' spans belong.
    pub delivery: SpanId,
    /// The traces that it has to do with: that of the stream, and those of changes that it supersedes.
    pub links: Vec<SpanContext>,
    /// The response that brought it.
    pub arrival: TracedArrival,
    /// What is new in it.
    pub news: TracedNews,
    course: Mutex<ChangeCourse>,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCourse {
    /// When clients could be sent it.
    pub applied: Option<Instant>,
    /// When its first encoding began and ended.
    pub encoded: Option<(Instant, Instant)>,
    /// How many times it was encoded. One encoding may serve many clients.
    pub encodings: u64,
    /// When it was sent first and last.
    pub sent: Option<(Instant, Instant)>,
    /// The responses with it.
    pub responses: u64,
    /// When the last answer to them came.
    pub answered: Option<Instant>,
    /// The responses that were acknowledged.
    pub accepted: u64,
    /// The responses that were rejected.
    pub rejected: u64,
    /// The responses on streams that ended before an answer.
    pub gone: u64,
}

/// A response with a change, on its way. Dropping it means that there will be no answer.
#[derive(Debug)]
pub struct Delivery {
    change: Arc<TracedChange>,
    answered: bool,
}

/// How many names are kept of a change, and how many of the times of what it replaces.
const NAMES_MAX: usize = 5;
const REPLACED_MAX: usize = 64;
/// When a change is over: it has been sent to nobody for so long, and nobody owes an answer.
const QUIET: Duration = Duration::from_secs(2);
/// When it is given up.
const PATIENCE: Duration = Duration::from_secs(30);

impl TracedNews {
    /// Notes new content; `replaced` is when the content before it had arrived.
    pub fn note(&mut self, name: &Name, replaced: Option<Instant>) {
        self.resources += 1;
        if self.names.len() < NAMES_MAX {
            self.names.push(name.clone());
        }
        if let Some(at) = replaced
            && self.replaced.len() < REPLACED_MAX
            && self.replaced.last() != Some(&at)
        {
            self.replaced.push(at);
        }
    }
}

impl TracedChange {
    pub(super) fn new(trace: TraceId, links: Vec<SpanContext>, arrival: TracedArrival, news: TracedNews) -> Arc<Self> {
        Arc::new(Self {
            own: sampled(trace, RandomIdGenerator::default().new_span_id()),
            delivery: RandomIdGenerator::default().new_span_id(),
            links,
            arrival,
            news,
            course: Mutex::default(),
        })
    }

    /// Returns the context for a receiver that traces the change too.
    pub fn context(&self) -> SpanContext {
        sampled(self.own.trace_id(), self.delivery)
    }

    /// Returns what became of it so far.
    pub fn course(&self) -> ChangeCourse {
        *self.course.lock()
    }

    /// From now on, clients can be sent it.
    pub fn apply(&self, now: Instant) {
        self.course.lock().applied = Some(now);
    }

    /// A response with it was encoded in this time.
    pub fn encode(&self, begun: Instant, ended: Instant) {
        let mut course = self.course.lock();
        course.encoded.get_or_insert((begun, ended));
        course.encodings += 1;
    }

    /// A response with it is sent.
    pub fn send(self: &Arc<Self>, now: Instant) -> Delivery {
        let mut course = self.course.lock();
        let first = course.sent.map_or(now, |(first, _)| first);
        course.sent = Some((first, now));
        course.responses += 1;
        drop(course);
        Delivery {
            change: Arc::clone(self),
            answered: false,
        }
    }

    /// Whether everything that can be known of it is known.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let course = self.course();
        let [applied, sent] = [course.applied, course.sent.map(|(_, last)| last)];
        let last = [applied, sent, course.answered].into_iter().flatten().max();
        let last = last.unwrap_or(self.arrival.received);
        let quiet = course.unanswered() == 0 && now >= last + QUIET;
        quiet || now >= self.arrival.received + PATIENCE
    }
}

/// Returns a span of the relay's own.
fn sampled(trace: TraceId, span: SpanId) -> SpanContext {
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::NONE)
}

impl ChangeCourse {
    /// Returns how many responses are neither acknowledged nor rejected, on streams that are open.
    pub const fn unanswered(&self) -> u64 {
        self.responses
            .saturating_sub(self.accepted)
            .saturating_sub(self.rejected)
            .saturating_sub(self.gone)
    }
}

impl Delivery {
    /// Returns what is delivered.
    pub fn change(&self) -> &TracedChange {
        &self.change
    }

    /// The client acknowledged the response.
    pub fn accept(mut self, now: Instant) {
        self.answered = true;
        let mut course = self.change.course.lock();
        course.accepted += 1;
        course.answered = Some(now);
    }

    /// The client rejected the response.
    pub fn reject(mut self, now: Instant) {
        self.answered = true;
        let mut course = self.change.course.lock();
        course.rejected += 1;
        course.answered = Some(now);
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.answered {
            self.change.course.lock().gone += 1;
        }
    }
}
