//! Traced changes as OTLP says them: one span for the change, and one for each step of its way.
//!
//! Owns the names of the spans and of their attributes. Knows nothing of when they are sent.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::described::{self, attribute, count, list};
use crate::clock::WallClock;
use crate::proto::opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest;
use crate::proto::opentelemetry::proto::common::v1::KeyValue;
use crate::proto::opentelemetry::proto::resource::v1::Resource;
use crate::proto::opentelemetry::proto::trace::v1 as otlp;
use crate::proto::opentelemetry::proto::trace::v1::span::{Link, SpanKind};
use crate::proto::opentelemetry::proto::trace::v1::status::StatusCode;
use crate::telemetry::{Change, Course, SpanId, TraceContext};

/// How many spans a change has at most.
pub(super) const SPANS: usize = 6;

/// Returns one export.
pub(super) fn request<'a>(
    resource: Resource,
    changes: impl Iterator<Item = &'a Arc<Change>>,
    clock: WallClock,
) -> ExportTraceServiceRequest {
    let scope_spans = otlp::ScopeSpans {
        scope: Some(described::scope()),
        spans: changes.flat_map(|change| spans(change, clock)).collect(),
        ..otlp::ScopeSpans::default()
    };
    ExportTraceServiceRequest {
        resource_spans: vec![otlp::ResourceSpans {
            resource: Some(resource),
            scope_spans: vec![scope_spans],
            ..otlp::ResourceSpans::default()
        }],
    }
}

/// A change whose spans are written.
struct Written<'a> {
    change: &'a Change,
    course: Course,
    clock: WallClock,
}

fn spans(change: &Change, clock: WallClock) -> Vec<otlp::Span> {
    let course = change.course();
    let written = Written { change, course, clock };
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

impl Written<'_> {
    fn whole(&self) -> otlp::Span {
        let Change {
            own,
            arrival,
            news,
            links,
            ..
        } = self.change;
        let course = &self.course;
        let ends = [course.applied, course.sent.map(|(_, last)| last), course.answered];
        let end = ends.into_iter().flatten().max().unwrap_or(arrival.decoded);
        let span = self.span(own.span, "change", (arrival.received, end));
        otlp::Span {
            parent_span_id: arrival
                .parent
                .map(|parent| bytes(parent.span.as_bytes()))
                .unwrap_or_default(),
            kind: SpanKind::Consumer.into(),
            attributes: vec![
                attribute("grpc.xds.server", &arrival.server),
                attribute("grpc.xds.resource_type", arrival.type_url.full_name()),
                count("messaging.message.body.size", arrival.bytes as u64),
                count("distributary.resources", news.resources as u64),
                list("distributary.names", news.names.iter().map(|name| name.as_str())),
            ],
            links: links.iter().map(link).collect(),
            status: self.status(),
            ..span
        }
    }

    /// The receivers' spans are below this one.
    fn delivery(&self, time: (Instant, Instant)) -> otlp::Span {
        otlp::Span {
            kind: SpanKind::Producer.into(),
            span_id: bytes(self.change.delivery.as_bytes()),
            ..self.step(
                "send",
                time,
                vec![count("distributary.responses", self.course.responses)],
            )
        }
    }

    fn acknowledgement(&self, (sent, _): (Instant, Instant)) -> otlp::Span {
        let course = &self.course;
        let counts = vec![
            count("distributary.accepted", course.accepted),
            count("distributary.rejected", course.rejected),
            count("distributary.gone", course.gone),
            count("distributary.unanswered", course.unanswered()),
        ];
        otlp::Span {
            status: self.status(),
            ..self.step("acknowledge", (sent, course.answered.unwrap_or(sent)), counts)
        }
    }

    /// Returns a span below that of the change.
    fn step(&self, name: &str, time: (Instant, Instant), attributes: Vec<KeyValue>) -> otlp::Span {
        otlp::Span {
            parent_span_id: bytes(self.change.own.span.as_bytes()),
            kind: SpanKind::Internal.into(),
            attributes,
            ..self.span(SpanId::random(), name, time)
        }
    }

    fn span(&self, span: SpanId, name: &str, (start, end): (Instant, Instant)) -> otlp::Span {
        otlp::Span {
            trace_id: bytes(self.change.own.trace.as_bytes()),
            span_id: bytes(span.as_bytes()),
            name: name.to_owned(),
            start_time_unix_nano: self.unix(start),
            end_time_unix_nano: self.unix(end.max(start)),
            ..otlp::Span::default()
        }
    }

    /// A change has failed if clients rejected it, or did not answer.
    fn status(&self) -> Option<otlp::Status> {
        let Course {
            responses, rejected, ..
        } = self.course;
        let message = match (rejected, self.course.unanswered()) {
            (0, 0) => return None,
            (0, unanswered) => format!("{unanswered} of {responses} responses were not answered"),
            (rejected, 0) => format!("{rejected} of {responses} responses were rejected"),
            (rejected, unanswered) => {
                format!("{rejected} of {responses} responses were rejected, and {unanswered} not answered")
            }
        };
        let code = StatusCode::Error.into();
        Some(otlp::Status { message, code })
    }

    fn unix(&self, at: Instant) -> u64 {
        u64::try_from(self.clock.unix(at).as_nanos()).unwrap_or(u64::MAX)
    }
}

fn link(to: &TraceContext) -> Link {
    Link {
        trace_id: bytes(to.trace.as_bytes()),
        span_id: bytes(to.span.as_bytes()),
        ..Link::default()
    }
}

fn bytes(number: &[u8]) -> Bytes {
    Bytes::copy_from_slice(number)
}
