// SPDX-License-Identifier: Apache-2.0
//! What `/events` tells of the metrics: some of them, added up over their labels.
//!
//! Owns which metrics, and what they are called there. Counts nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::telemetry::MetricFamily;
use crate::telemetry::model::Metric;

/// The metrics that are added up, and what they are called.
const COUNTS: [(&str, &str); 15] = [
    ("distributary_connections", "connections"),
    ("distributary_streams", "streams"),
    ("distributary_views", "views"),
    ("distributary_subscriptions", "subscriptions"),
    ("distributary_cache_resources", "resources"),
    ("distributary_cache_bytes", "bytes"),
    ("distributary_requests_total", "requests"),
    ("distributary_responses_total", "responses"),
    ("distributary_response_bytes_total", "response_bytes"),
    ("distributary_acks_total", "acks"),
    ("distributary_nacks_total", "nacks"),
    ("grpc_xds_client_resource_updates_valid_total", "updates"),
    ("process_resident_memory_bytes", "memory"),
    ("process_start_time_seconds", "started"),
    ("distributary_process_stalls_total", "stalls"),
];

/// Returns how much of each limited resource is in use, in percent, and what the relay does about it.
pub(super) fn pressure(metrics: &[MetricFamily]) -> Value {
    let percent = of(metrics, "distributary_overload_pressure")
        .map(|metric| (label(metric, "resource").to_owned(), number(metric).into()));
    let active = of(metrics, "distributary_overload_active").filter(|metric| number(metric) > 0.0);
    json!({
        "percent": percent.collect::<Map<_, _>>(),
        "active": active.map(|metric| label(metric, "action")).collect::<Vec<_>>(),
    })
}

/// Returns the sums of the metrics over their labels. That of the time until changes are acknowledged is by upper bound.
pub(super) fn sums(metrics: &[MetricFamily]) -> Value {
    let sum = |metric| of(metrics, metric).map(number).sum::<f64>();
    let mut sums: Map<String, Value> = COUNTS
        .iter()
        // Whole numbers, as far as they are any.
        .map(|(metric, name)| ((*name).to_owned(), (sum(metric) as u64).into()))
        .collect();
    let mut convergence: BTreeMap<String, u64> = BTreeMap::new();
    let histograms = of(metrics, "distributary_convergence_seconds").filter_map(|metric| metric.histogram.as_ref());
    for bucket in histograms.flat_map(|histogram| &histogram.bucket) {
        *convergence.entry(bound(bucket.upper_bound)).or_default() += bucket.cumulative_count;
    }
    sums.insert("convergence_seconds".to_owned(), json!(convergence));
    let processor = sum("process_cpu_seconds_total") * 1000.0;
    sums.insert("processor_millis".to_owned(), (processor as u64).into());
    // Pauses are counted from one second on: whole ones would be wrong by up to half.
    let stalled = sum("distributary_process_stalled_seconds_total");
    sums.insert("stalled_seconds".to_owned(), ((stalled * 10.0).round() / 10.0).into());
    sums.into()
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
        assert_eq!(
            (&sums["streams"], &sums["acks"], &sums["nacks"]),
            (&7.into(), &7.into(), &0.into())
        );
        assert_eq!(sums["convergence_seconds"], json!({"0.1": 3, "1.0": 1, "+Inf": 5}));
        let expected = json!({"percent": {"memory": 43.0}, "active": ["refuse_streams"]});
        assert_eq!(pressure(&metrics), expected);
    }
}
