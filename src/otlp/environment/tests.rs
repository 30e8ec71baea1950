// SPDX-License-Identifier: Apache-2.0
//! What the variables of OpenTelemetry mean, and what is said of bad ones.

use super::*;
use crate::config::{Credentials, Endpoint};

fn read(variables: &[(&str, &str)]) -> Environment {
    Environment::read(|name| {
        let found = variables.iter().find(|(of, _)| *of == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn nothing_is_exported_unless_an_endpoint_is_set() {
    for variables in [
        &[("OTEL_SERVICE_NAME", "relay")][..],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1"),
            ("OTEL_SDK_DISABLED", "true"),
        ],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1"),
            ("OTEL_METRICS_EXPORTER", "none"),
        ],
    ] {
        let environment = read(variables);
        assert!(
            environment.metrics.is_none() && environment.warnings.is_empty(),
            "{variables:?}"
        );
    }
}

#[test]
fn where_metrics_go() {
    let uri = |variables: &[(&str, &str)]| read(variables).metrics.unwrap().uri.to_string();
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/otlp/");
    assert_eq!(uri(&[base]), "http://collector:4318/otlp/v1/metrics");
    let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://[::1]:4318/here");
    assert_eq!(uri(&[base, own]), "https://[::1]:4318/here");
    let secret = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:secret@collector:4318");
    assert_eq!(uri(&[secret]), "http://collector:4318/v1/metrics");
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    assert_eq!(
        uri(&[base, grpc]),
        "http://collector:4318/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
    );
    let target = read(&[own]).metrics.unwrap();
    let host = "::1".to_owned();
    assert_eq!(target.endpoint, Endpoint::Tcp { host, port: 4318 });
    assert!(matches!(target.credentials, Credentials::Tls(_)));
}

#[test]
fn what_is_wrong_is_said() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1");
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_METRICS_EXPORTER", "prometheus"),
    ] {
        let environment = read(&[(name, value), endpoint]);
        assert!(environment.metrics.is_none(), "{name}");
        let warning = environment.warnings.concat();
        assert!(warning.starts_with(&format!("{name} is `{value}`; ")), "{warning}");
    }
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a b=c"),
    ] {
        let environment = read(&[endpoint, (name, value)]);
        assert!(environment.metrics.is_some(), "{name}");
        assert!(
            environment.warnings.concat().starts_with(name),
            "{:?}",
            environment.warnings
        );
    }
}

#[test]
fn where_traces_go() {
    let uri = |variables: &[(&str, &str)]| read(variables).traces.map(|target| target.uri.to_string());
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
    assert_eq!(uri(&[base]).unwrap(), "http://collector:4318/v1/traces");
    let grpc = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc");
    let method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    assert_eq!(uri(&[base, grpc]).unwrap(), format!("http://collector:4318{method}"));
    let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://other:1/here");
    assert_eq!(uri(&[own]).unwrap(), "http://other:1/here");
    assert!(read(&[own]).metrics.is_none());
    let none = read(&[base, ("OTEL_TRACES_EXPORTER", "none")]);
    assert!(none.traces.is_none() && none.metrics.is_some());
}

#[test]
fn spans_have_bounds() {
    assert_eq!(read(&[]).batches, BATCHES);
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1");
    let environment = read(&[
        endpoint,
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "20"),
        ("OTEL_BSP_EXPORT_TIMEOUT", "700"),
    ]);
    let batches = Batches {
        delay: Duration::from_millis(100),
        queue: 20,
        size: 20,
    };
    assert_eq!(environment.batches, batches);
    assert_eq!(environment.traces.unwrap().timeout, Duration::from_millis(700));
    assert_eq!(environment.metrics.unwrap().timeout, Duration::from_secs(10));
    for (name, value) in [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "many"),
        ("OTEL_BSP_SCHEDULE_DELAY", "5s"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ("OTEL_TRACES_SAMPLER_ARG", "2"),
    ] {
        let sampler = ("OTEL_TRACES_SAMPLER", "traceidratio");
        let warnings = read(&[(name, value), sampler, endpoint]).warnings;
        assert!(
            warnings.concat().starts_with(&format!("{name} is `{value}`; ")),
            "{warnings:?}"
        );
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }
    let shared = ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd");
    assert_eq!(read(&[endpoint, shared]).warnings.len(), 1, "it is said once");
}

#[test]
fn headers_and_attributes_are_pairs() {
    let environment = read(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1"),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "authorization=Bearer%20x%3D, other = 100%",
        ),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=no,region=eu%2Fwest"),
        ("OTEL_SERVICE_NAME", "edge"),
    ]);
    let headers = environment.metrics.unwrap().headers;
    let headers: Vec<_> = headers
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_bytes()))
        .collect();
    assert_eq!(headers, [("authorization", &b"Bearer x="[..]), ("other", b"100%")]);
    let attributes = environment
        .attributes
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let attributes: Vec<_> = attributes.collect();
    let version = ("service.version", VERSION);
    assert_eq!(attributes, [("service.name", "edge"), version, ("region", "eu/west")]);
}

/// A certificate and its key are shown together or not at all.
#[test]
fn half_an_identity_is_said() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://a:1");
    let certificate = ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/relay.pem");
    let key = ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/relay.key");
    for (given, missing) in [(certificate, key), (key, certificate)] {
        let warnings = read(&[endpoint, given]).warnings;
        let expected = format!(
            "{} is set and {} is not; collectors are shown no certificate",
            given.0, missing.0
        );
        assert_eq!(warnings, [expected]);
    }
    assert!(read(&[endpoint, certificate, key]).warnings.is_empty());
}
