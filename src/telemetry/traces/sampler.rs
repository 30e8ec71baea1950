// SPDX-License-Identifier: Apache-2.0
//! Which changes are traced.
//!
//! Owns the rules that OpenTelemetry defines, and one of the relay's own: one change a second. Does not know what a change is.

use std::time::{Duration, Instant};

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanKind, TraceContextExt as _, TraceId};
use opentelemetry_sdk::trace::{
    self as standard, IdGenerator as _, RandomIdGenerator, SamplingDecision, ShouldSample as _,
};
use parking_lot::Mutex;

/// Decides which changes are traced.
#[derive(Debug)]
pub struct Sampler(SamplingRule);

#[derive(Debug)]
enum SamplingRule {
    Standard(standard::Sampler),
    /// What a parent demands, and at most one in each pause; the time of the last one.
    Paced(Mutex<Option<Instant>>),
}

/// How long after a traced change no other is, unless a parent demands it.
const PAUSE: Duration = Duration::from_secs(1);
/// The names that the standard has for a sampler that heeds parents begin with this.
const PARENT_BASED: &str = "parentbased_";

impl Default for Sampler {
    /// Returns the sampler that is cheap however many changes there are: one change a second, and what a parent demands.
    fn default() -> Self {
        Self(SamplingRule::Paced(Mutex::default()))
    }
}

impl Sampler {
    /// Returns the sampler with this standard name; only those that trace a part of all changes take a ratio.
    #[must_use]
    pub fn named(name: &str, ratio: f64) -> Option<Self> {
        let bare = name.strip_prefix(PARENT_BASED);
        let sampler = match bare.unwrap_or(name) {
            "always_on" => standard::Sampler::AlwaysOn,
            "always_off" => standard::Sampler::AlwaysOff,
            "traceidratio" => standard::Sampler::TraceIdRatioBased(ratio),
            _ => return None,
        };
        Some(Self(SamplingRule::Standard(match bare {
            Some(_) => standard::Sampler::ParentBased(Box::new(sampler)),
            None => sampler,
        })))
    }

    /// Returns the trace to which a change at this time belongs, if it is to be traced.
    pub(super) fn decide(&self, parent: Option<&SpanContext>, now: Instant) -> Option<TraceId> {
        let trace = parent.map_or_else(|| RandomIdGenerator::default().new_trace_id(), SpanContext::trace_id);
        let sampled = match &self.0 {
            SamplingRule::Standard(sampler) => {
                let parent = parent.map(|parent| Context::new().with_remote_span_context(parent.clone()));
                let sampled = sampler.should_sample(parent.as_ref(), trace, "change", &SpanKind::Consumer, &[], &[]);
                sampled.decision == SamplingDecision::RecordAndSample
            }
            SamplingRule::Paced(last) => parent.map_or_else(
                || last.lock().is_none_or(|last| now >= last + PAUSE),
                SpanContext::is_sampled,
            ),
        };
        sampled.then_some(trace)
    }

    /// A change is traced.
    pub(super) fn spend(&self, now: Instant) {
        if let SamplingRule::Paced(last) = &self.0 {
            *last.lock() = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::traceparent;

    fn parent(sampled: bool) -> Option<SpanContext> {
        let flag = if sampled { "01" } else { "00" };
        traceparent::read(&format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flag}"))
    }

    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn one_change_a_second() {
        let (sampler, start) = (Sampler::default(), start());
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        assert!(sampler.decide(None, at(0)).is_some());
        assert!(sampler.decide(None, at(0)).is_some(), "none was traced yet");
        sampler.spend(at(0));
        assert!(sampler.decide(None, at(999)).is_none());
        assert_eq!(
            sampler.decide(parent(true).as_ref(), at(999)),
            parent(true).map(|parent| parent.trace_id())
        );
        assert!(sampler.decide(parent(false).as_ref(), at(1000)).is_none());
        assert!(sampler.decide(None, at(1000)).is_some());
    }

    #[test]
    fn standard_names() {
        let now = start();
        let traced = |name: &str, ratio: f64, parent: Option<SpanContext>| {
            let sampler = Sampler::named(name, ratio).unwrap();
            (0..1000)
                .filter(|_| sampler.decide(parent.as_ref(), now).is_some())
                .count()
        };
        assert_eq!(traced("always_on", 0.0, parent(false)), 1000);
        assert_eq!(traced("always_off", 1.0, parent(true)), 0);
        assert_eq!(traced("parentbased_always_on", 0.0, parent(false)), 0);
        assert_eq!(traced("parentbased_always_off", 0.0, parent(true)), 1000);
        assert_eq!(traced("traceidratio", 1.0, None), 1000);
        assert_eq!(traced("traceidratio", 0.0, None), 0);
        let part = traced("parentbased_traceidratio", 0.25, None);
        assert!((150..350).contains(&part), "{part}");
        // All relays decide alike about one trace.
        assert!([0, 1000].contains(&traced("traceidratio", 0.25, parent(true))));
        assert!(Sampler::named("jaeger_remote", 1.0).is_none());
    }
}
