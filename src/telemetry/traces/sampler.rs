//! Which changes are traced.
//!
//! Owns the rules that OpenTelemetry defines, and one of the relay's own: one change a second. Does not know what a change is.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::context::{TraceContext, TraceId};

/// Decides which changes are traced.
#[derive(Debug)]
pub struct Sampler {
    /// Whether the decision of whoever passed a context counts.
    parent_based: bool,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    Never,
    Always,
    /// Those whose number is below this.
    Ratio(u64),
    /// At most one in each pause; the time of the last one.
    Paced(Mutex<Option<Instant>>),
}

/// How long after a traced change no other is, unless a context demands it.
const PAUSE: Duration = Duration::from_secs(1);
/// The names that the standard has for a sampler that heeds contexts begin with this.
const PARENT_BASED: &str = "parentbased_";

impl Default for Sampler {
    /// Returns the sampler that is cheap however many changes there are: one change a second, and what a context demands.
    fn default() -> Self {
        Self {
            parent_based: true,
            rule: Rule::Paced(Mutex::default()),
        }
    }
}

impl Sampler {
    /// Returns the sampler with this standard name; only those that trace a part of all changes take a ratio.
    #[must_use]
    pub fn named(name: &str, ratio: f64) -> Option<Self> {
        let rule = match name.strip_prefix(PARENT_BASED).unwrap_or(name) {
            "always_on" => Rule::Always,
            "always_off" => Rule::Never,
            "traceidratio" => Rule::Ratio((ratio.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64),
            _ => return None,
        };
        Some(Self {
            parent_based: name.starts_with(PARENT_BASED),
            rule,
        })
    }

    /// Returns the trace to which a change at this time belongs, if it is to be traced.
    pub(super) fn decide(&self, parent: Option<TraceContext>, now: Instant) -> Option<TraceId> {
        let trace = parent.map_or_else(TraceId::random, |parent| parent.trace);
        let sampled = match (parent, &self.rule) {
            (Some(parent), _) if self.parent_based => parent.sampled,
            (_, Rule::Never) => false,
            (_, Rule::Always) => true,
            (_, Rule::Ratio(below)) => trace.randomness() >> 1 < *below,
            (_, Rule::Paced(last)) => last.lock().is_none_or(|last| now >= last + PAUSE),
        };
        sampled.then_some(trace)
    }

    /// A change is traced.
    pub(super) fn spend(&self, now: Instant) {
        if let Rule::Paced(last) = &self.rule {
            *last.lock() = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(sampled: bool) -> Option<TraceContext> {
        let flag = if sampled { "01" } else { "00" };
        TraceContext::read(&format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flag}"))
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
            sampler.decide(parent(true), at(999)),
            parent(true).map(|parent| parent.trace)
        );
        assert!(sampler.decide(parent(false), at(1000)).is_none());
        assert!(sampler.decide(None, at(1000)).is_some());
    }

    #[test]
    fn standard_names() {
        let now = start();
        let traced = |name: &str, ratio: f64, parent| {
            let sampler = Sampler::named(name, ratio).unwrap();
            (0..1000).filter(|_| sampler.decide(parent, now).is_some()).count()
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
