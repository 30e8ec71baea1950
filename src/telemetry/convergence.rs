// SPDX-License-Identifier: Apache-2.0
//! How fast changes arrive at clients.
//!
//! Owns the bounds of the buckets, and which observations are shown as examples of a bucket: those of changes that are traced.

use std::time::SystemTime;

use opentelemetry::trace::SpanContext;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;

use super::labels::Labels;

/// The histogram of one type.
#[derive(Clone, Debug)]
pub struct Convergence(Histogram);

/// The form in which it is registered. Examples have the numbers of a trace and a span.
pub(super) type Histogram = HistogramWithExemplars<Labels<2>>;

/// The label of an example with the number of its trace.
pub const TRACE_ID: &str = "trace_id";
/// The label of an example with the number of its span.
pub const SPAN_ID: &str = "span_id";

/// From what a relay in the same host takes to what an operator of a large fleet has to look at.
const SECONDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Creates a histogram in which nothing was observed.
pub(super) fn histogram() -> Histogram {
    Histogram::new(SECONDS.into_iter())
}

impl Convergence {
    pub(super) const fn new(histogram: Histogram) -> Self {
        Self(histogram)
    }

    /// Observes that a client has acknowledged a change after so many seconds. `traced`: the span of the change.
    pub fn observe(&self, seconds: f64, traced: Option<&SpanContext>) {
        let example = traced.map(|span| {
            let (trace, span) = (span.trace_id(), span.span_id());
            let labels = [(TRACE_ID, trace.to_string()), (SPAN_ID, span.to_string())];
            (labels, now())
        });
        let (labels, at) = example.unzip();
        self.0.observe(seconds, labels, at);
    }
}

#[expect(clippy::disallowed_methods, reason = "the time is only shown")]
fn now() -> SystemTime {
    SystemTime::now()
}
