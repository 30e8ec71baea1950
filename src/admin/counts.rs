// SPDX-License-Identifier: Apache-2.0
//! What `/events` tells of the metrics: some of them, added up over their labels.
//!
//! Owns which metrics. What they are called there is in `answers`. Counts nothing.

use std::collections::BTreeMap;

use crate::answers::{CountSums, PressureGlimpse};
use crate::telemetry::MetricFamily;
use crate::telemetry::model::Metric;

/// Returns how much of each limited resource is in use, in percent, and what the relay does about it.
pub(super) fn pressure(metrics: &[MetricFamily]) -> PressureGlimpse {
    let percent = of(metrics, "distributary_overload_pressure");
    let active = of(metrics, "distributary_overload_active").filter(|metric| number(metric) > 0.0);
    PressureGlimpse {
        percent: percent
            .map(|metric| (label(metric, "resource").to_owned(), number(metric)))
            .collect(),
        active: active.map(|metric| label(metric, "action").to_owned()).collect(),
    }
}

/// Returns the sums of the metrics over their labels. That of the time until changes are acknowledged is by upper bound.
pub(super) fn sums(metrics: &[MetricFamily]) -> CountSums {
    let exact = |metric| of(metrics, metric).map(number).sum::<f64>();
    // Whole numbers, as far as they are any.
    let sum = |metric| exact(metric) as u64;
    let mut convergence: BTreeMap<String, u64> = BTreeMap::new();
    let histograms = of(metrics, "distributary_convergence_seconds").filter_map(|metric| metric.histogram.as_ref());
    for bucket in histograms.flat_map(|histogram| &histogram.bucket) {
        *convergence.entry(bound(bucket.upper_bound)).or_default() += bucket.cumulative_count;
    }
    CountSums {
        connections: sum("distributary_connections"),
        streams: sum("distributary_streams"),
        views: sum("distributary_views"),
        subscriptions: sum("distributary_subscriptions"),
        resources: sum("distributary_cache_resources"),
        bytes: sum("distributary_cache_bytes"),
        requests: sum("distributary_requests_total"),
        responses: sum("distributary_responses_total"),
        response_bytes: sum("distributary_response_bytes_total"),
        acks: sum("distributary_acks_total"),
        nacks: sum("distributary_nacks_total"),
        updates: sum("grpc_xds_client_resource_updates_valid_total"),
        memory: sum("process_resident_memory_bytes"),
        started: sum("process_start_time_seconds"),
        stalls: sum("distributary_process_stalls_total"),
        convergence_seconds: convergence,
        processor_millis: (exact("process_cpu_seconds_total") * 1000.0) as u64,
        // Pauses are counted from one second on: whole ones would be wrong by up to half.
        stalled_seconds: (exact("distributary_process_stalled_seconds_total") * 10.0).round() / 10.0,
    }
}

/// Returns the metrics with this name.
fn of<'a>(metrics: &'a [MetricFamily], name: &str) -> impl Iterator<Item = &'a Metric> {
    let family = metrics.iter().filter(move |family| family.name == name);
    family.flat_map(|family| &family.metric)
}

fn label<'a>(metric: &'a Metric, key: &str) -> &'a str {
    let label = metric.label.iter().find(|label| label.name == key);
    label.map(|label| label.value.as_str()).unwrap_or_default()
}

fn number(metric: &Metric) -> f64 {
    let gauge = metric.gauge.as_ref().map(|gauge| gauge.value);
    let counter = metric.counter.as_ref().map(|counter| counter.value);
    gauge.or(counter).unwrap_or_default()
}

/// Returns an upper bound as `/metrics` writes it.
fn bound(bound: f64) -> String {
    match bound.is_finite() {
        true => format!("{bound:?}"),
        false => "+Inf".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::telemetry::model::{Bucket, Counter, Gauge, Histogram, LabelPair};

    fn family(name: &str, metric: Vec<Metric>) -> MetricFamily {
        MetricFamily {
            name: name.to_owned(),
            metric,
            ..MetricFamily::default()
        }
    }

    fn labelled(name: &str, value: &str) -> Metric {
        Metric {
            label: vec![LabelPair {
                name: name.to_owned(),
                value: value.to_owned(),
            }],
            ..Metric::default()
        }
    }

    fn gauge(name: &str, value: &str, gauge: f64) -> Metric {
        Metric {
            gauge: Some(Gauge { value: gauge }),
            ..labelled(name, value)
        }
    }

    fn histogram(of_type: &str, buckets: &[(f64, u64)]) -> Metric {
        let bucket = buckets.iter().map(|(upper_bound, cumulative_count)| Bucket {
            upper_bound: *upper_bound,
            cumulative_count: *cumulative_count,
            ..Bucket::default()
        });
        Metric {
            histogram: Some(Histogram {
                bucket: bucket.collect(),
                ..Histogram::default()
            }),
            ..labelled("type", of_type)
        }
    }

    #[test]
    fn metrics_are_added_up() {
        let acks = Metric {
            counter: Some(Counter {
                value: 7.0,
                ..Counter::default()
            }),
            ..labelled("type", "cds")
        };
        let metrics = [
            family(
                "distributary_streams",
                vec![gauge("dialect", "delta", 3.0), gauge("dialect", "sotw", 4.0)],
            ),
            family("distributary_streams_other", vec![gauge("x", "y", 9.0)]),
            family("distributary_acks_total", vec![acks]),
            family(
                "distributary_overload_pressure",
                vec![gauge("resource", "memory", 43.0)],
            ),
            family(
                "distributary_overload_active",
                vec![
                    gauge("action", "refuse_streams", 1.0),
                    gauge("action", "reject_connections", 0.0),
                ],
            ),
            family(
                "distributary_convergence_seconds",
                vec![
                    histogram("cds", &[(0.1, 1), (1.0, 1)]),
                    histogram("eds", &[(0.1, 2), (f64::INFINITY, 5)]),
                ],
            ),
        ];
        let sums = sums(&metrics);
        assert_eq!((sums.streams, sums.acks, sums.nacks), (7, 7, 0));
        let convergence = json!({"0.1": 3, "1.0": 1, "+Inf": 5});
        assert_eq!(json!(sums)["convergence_seconds"], convergence);
        let expected = json!({"percent": {"memory": 43.0}, "active": ["refuse_streams"]});
        assert_eq!(json!(pressure(&metrics)), expected);
    }
}
