// SPDX-License-Identifier: Apache-2.0
//! The metrics of the relay as OTLP says them.
//!
//! Owns the names there: those that gRPC defines are written with dots, as gRPC writes them; all others are the same everywhere.
//! Knows nothing of what they mean.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1 as otlp;
use opentelemetry_proto::tonic::metrics::v1::exemplar;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::described;
use crate::telemetry::model::{Bucket, LabelPair, Metric, MetricType};
use crate::telemetry::{MetricFamily, SPAN_ID, TRACE_ID};

/// What gRPC's names begin with in Prometheus, and in OpenTelemetry.
const GRPC: [(&str, &str); 2] = [
    ("grpc_xds_client_", "grpc.xds_client."),
    ("grpc_server_tls_", "grpc.server.tls."),
];
/// The labels that gRPC defines.
const GRPC_LABELS: [(&str, &str); 7] = [
    ("grpc_target", "grpc.target"),
    ("grpc_xds_server", "grpc.xds.server"),
    ("grpc_xds_authority", "grpc.xds.authority"),
    ("grpc_xds_cache_state", "grpc.xds.cache_state"),
    ("grpc_xds_resource_type", "grpc.xds.resource_type"),
    ("grpc_tls_handshake_result", "grpc.tls.handshake.result"),
    ("grpc_tls_handshake_resumed", "grpc.tls.handshake.resumed"),
];

/// Returns one export.
pub(super) fn request(resource: Resource, metrics: Vec<otlp::Metric>) -> ExportMetricsServiceRequest {
    let scope_metrics = otlp::ScopeMetrics {
        scope: Some((described::scope(), None).into()),
        metrics,
        ..otlp::ScopeMetrics::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![otlp::ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![scope_metrics],
            ..otlp::ResourceMetrics::default()
        }],
    }
}

/// Returns the metrics; all sums count from `start`. Both times are since 1970.
pub(super) fn metrics(families: Vec<MetricFamily>, start: Duration, now: Duration) -> Vec<otlp::Metric> {
    let span = [start, now].map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    families.into_iter().filter_map(|family| metric(family, span)).collect()
}

fn metric(family: MetricFamily, span: [u64; 2]) -> Option<otlp::Metric> {
    let cumulative = otlp::AggregationTemporality::Cumulative.into();
    let numbers = |value: fn(&Metric) -> Option<f64>| {
        let points = family.metric.iter();
        points
            .filter_map(|metric| number(metric, value(metric)?, span))
            .collect()
    };
    let data = match family.r#type() {
        MetricType::Counter => Data::Sum(otlp::Sum {
            data_points: numbers(|metric| metric.counter.as_ref().map(|counter| counter.value)),
            aggregation_temporality: cumulative,
            is_monotonic: true,
        }),
        MetricType::Gauge => Data::Gauge(otlp::Gauge {
            data_points: numbers(|metric| metric.gauge.as_ref().map(|gauge| gauge.value)),
        }),
        MetricType::Histogram => Data::Histogram(otlp::Histogram {
            data_points: family
                .metric
                .iter()
                .filter_map(|metric| histogram(metric, span))
                .collect(),
            aggregation_temporality: cumulative,
        }),
        MetricType::Summary | MetricType::Untyped | MetricType::GaugeHistogram => return None,
    };
    let seconds = family.name.trim_end_matches("_total").ends_with("_seconds");
    Some(otlp::Metric {
        name: name(&family.name),
        description: family.help,
        unit: if seconds { "s" } else { "" }.to_owned(),
        data: Some(data),
        ..otlp::Metric::default()
    })
}

/// Returns the name in OpenTelemetry. `_total` is a word of Prometheus.
fn name(prometheus: &str) -> String {
    let name = prometheus.strip_suffix("_total").unwrap_or(prometheus);
    let dotted = GRPC
        .iter()
        .find_map(|(from, to)| Some(format!("{to}{}", name.strip_prefix(from)?)));
    dotted.unwrap_or_else(|| name.to_owned())
}

fn number(metric: &Metric, value: f64, [start, now]: [u64; 2]) -> Option<otlp::NumberDataPoint> {
    Some(otlp::NumberDataPoint {
        attributes: attributes(&metric.label),
        start_time_unix_nano: start,
        time_unix_nano: now,
        value: Some(Value::AsDouble(value)),
        ..otlp::NumberDataPoint::default()
    })
}

/// Prometheus counts what is in a bucket and in all buckets below it, OTLP what is in it alone.
fn histogram(metric: &Metric, [start, now]: [u64; 2]) -> Option<otlp::HistogramDataPoint> {
    let histogram = metric.histogram.as_ref()?;
    let finite = histogram.bucket.iter().filter(|bucket| bucket.upper_bound.is_finite());
    let (explicit_bounds, mut sums): (Vec<f64>, Vec<u64>) = finite
        .map(|bucket| (bucket.upper_bound, bucket.cumulative_count))
        .unzip();
    sums.push(histogram.sample_count);
    let below = std::iter::once(0).chain(sums.iter().copied());
    let bucket_counts = sums
        .iter()
        .zip(below)
        .map(|(sum, below)| sum.saturating_sub(below))
        .collect();
    Some(otlp::HistogramDataPoint {
        attributes: attributes(&metric.label),
        start_time_unix_nano: start,
        time_unix_nano: now,
        count: histogram.sample_count,
        sum: Some(histogram.sample_sum),
        bucket_counts,
        explicit_bounds,
        exemplars: histogram.bucket.iter().filter_map(exemplar).collect(),
        ..otlp::HistogramDataPoint::default()
    })
}

/// Returns the example of a bucket, if it has one: a traced observation.
fn exemplar(bucket: &Bucket) -> Option<otlp::Exemplar> {
    let exemplar = bucket.exemplar.as_ref()?;
    let number = |name: &str| {
        let label = exemplar.label.iter().find(|label| label.name == name)?;
        u128::from_str_radix(&label.value, 16).ok().map(u128::to_be_bytes)
    };
    let (trace, span) = (number(TRACE_ID)?, number(SPAN_ID)?);
    let at = exemplar.timestamp.as_ref()?;
    let at = Duration::new(u64::try_from(at.seconds).ok()?, u32::try_from(at.nanos).ok()?);
    Some(otlp::Exemplar {
        time_unix_nano: u64::try_from(at.as_nanos()).unwrap_or(u64::MAX),
        value: Some(exemplar::Value::AsDouble(exemplar.value)),
        trace_id: trace.to_vec(),
        // A span has half as many digits.
        span_id: span.last_chunk::<8>()?.to_vec(),
        ..otlp::Exemplar::default()
    })
}

fn attributes(labels: &[LabelPair]) -> Vec<KeyValue> {
    let dotted = |name: &str| {
        let found = GRPC_LABELS.iter().find(|(prometheus, _)| *prometheus == name);
        found.map_or_else(|| name.to_owned(), |(_, dotted)| (*dotted).to_owned())
    };
    described::attributes(labels.iter().map(|label| (dotted(&label.name), label.value.as_str())))
}
