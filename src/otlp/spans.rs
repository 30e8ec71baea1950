// SPDX-License-Identifier: Apache-2.0
//! Traced changes as OpenTelemetry says them: one span for the change, and one for each step of its way.
//!
//! Owns the names of the spans and of their attributes. Knows nothing of when they are sent.

use std::borrow::Cow;
use std::time::Instant;

use opentelemetry::trace::{Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator, SpanData, SpanEvents, SpanLinks};

use super::described;
use crate::clock::WallClock;
use crate::telemetry::{ChangeCourse, TracedChange};

/// How many spans a change has at most.
pub(super) const SPANS: usize = 6;

/// A change whose spans are written.
struct SpannedChange<'a> {
    change: &'a TracedChange,
    course: ChangeCourse,
    clock: WallClock,
    scope: InstrumentationScope,
}

/// Returns the spans of a change.
pub(super) fn spans(change: &TracedChange, clock: WallClock) -> Vec<SpanData> {
    let course = change.course();
    let written = SpannedChange {
        change,
        course,
        clock,
        scope: described::scope(),
    };
    let arrival = &change.arrival;
    let mut spans = vec![written.whole()];
    spans.push(written.step("decode", (arrival.received, arrival.decoded), Vec::new()));
    if let Some(applied) = course.applied {
        spans.push(written.step("apply", (arrival.decoded, applied), Vec::new()));
    }
    if let Some(encoded) = course.encoded {
        let encodings = vec![count("distributary.encodings", course.encodings)];
        spans.push(written.step("encode", encoded, encodings));
    }
    if let Some(sent) = course.sent {
        spans.push(written.delivery(sent));
        spans.push(written.acknowledgement(sent));
    }
    spans
}

impl SpannedChange<'_> {
    fn whole(&self) -> SpanData {
        let TracedChange {
            own,
            arrival,
            news,
            links,
            ..
        } = self.change;
        let course = &self.course;
        let ends = [course.applied, course.sent.map(|(_, last)| last), course.answered];
        let end = ends.into_iter().flatten().max().unwrap_or(arrival.decoded);
        let names = news
            .names
            .iter()
            .map(|name| StringValue::from(name.as_str().to_owned()));
        let mut to = SpanLinks::default();
        to.links = links.iter().map(|link| Link::with_context(link.clone())).collect();
        SpanData {
            parent_span_id: arrival.parent.as_ref().map_or(SpanId::INVALID, SpanContext::span_id),
            parent_span_is_remote: arrival.parent.as_ref().is_some_and(SpanContext::is_remote),
            span_kind: SpanKind::Consumer,
            attributes: vec![
                KeyValue::new("grpc.xds.server", arrival.server.clone()),
                KeyValue::new("grpc.xds.resource_type", arrival.type_url.full_name().to_owned()),
                count("messaging.message.body.size", arrival.bytes as u64),
                count("distributary.resources", news.resources as u64),
                KeyValue::new("distributary.names", Value::Array(Array::String(names.collect()))),
            ],
            links: to,
            status: self.status(),
            ..self.span(own.span_id(), "change", (arrival.received, end))
        }
    }

    /// The receivers' spans are below this one.
    fn delivery(&self, time: (Instant, Instant)) -> SpanData {
        let responses = vec![count("distributary.responses", self.course.responses)];
        SpanData {
            span_context: self.change.context(),
            span_kind: SpanKind::Producer,
            ..self.step("send", time, responses)
        }
    }

    fn acknowledgement(&self, (sent, _): (Instant, Instant)) -> SpanData {
        let course = &self.course;
        let counts = vec![
            count("distributary.accepted", course.accepted),
            count("distributary.rejected", course.rejected),
            count("distributary.gone", course.gone),
            count("distributary.unanswered", course.unanswered()),
        ];
        SpanData {
            status: self.status(),
            ..self.step("acknowledge", (sent, course.answered.unwrap_or(sent)), counts)
        }
    }

    /// Returns a span below that of the change.
    fn step(&self, name: &'static str, time: (Instant, Instant), attributes: Vec<KeyValue>) -> SpanData {
        SpanData {
            parent_span_id: self.change.own.span_id(),
            attributes,
            ..self.span(RandomIdGenerator::default().new_span_id(), name, time)
        }
    }

    fn span(&self, id: SpanId, name: &'static str, (start, end): (Instant, Instant)) -> SpanData {
        let trace = self.change.own.trace_id();
        SpanData {
            span_context: SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::NONE),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: Cow::Borrowed(name),
            start_time: self.clock.system(start),
            end_time: self.clock.system(end.max(start)),
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        }
    }

    /// A change has failed if clients rejected it, or did not answer.
    fn status(&self) -> Status {
        let ChangeCourse {
            responses, rejected, ..
        } = self.course;
        Status::error(match (rejected, self.course.unanswered()) {
            (0, 0) => return Status::Unset,
            (0, unanswered) => format!("{unanswered} of {responses} responses were not answered"),
            (rejected, 0) => format!("{rejected} of {responses} responses were rejected"),
            (rejected, unanswered) => {
                format!("{rejected} of {responses} responses were rejected, and {unanswered} not answered")
            }
        })
    }
}

/// Returns an attribute that is a number.
fn count(key: &'static str, value: u64) -> KeyValue {
    KeyValue::new(key, i64::try_from(value).unwrap_or(i64::MAX))
}
