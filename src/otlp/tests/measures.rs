// SPDX-License-Identifier: Apache-2.0
//! The export of metrics.

use std::future::pending;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest as Request;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1 as otlp;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;

use super::*;
use crate::otlp::collector::Collector;

const PATH: &str = "/v1/metrics";
/// So that no traces come.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";

fn metric<'a>(request: &'a Request, name: &str) -> &'a otlp::Metric {
    let mut metrics = request.resource_metrics[0].scope_metrics[0].metrics.iter();
    metrics.find(|metric| metric.name == name).unwrap()
}

fn text(attribute: &KeyValue) -> (&str, &str) {
    let Some(any_value::Value::StringValue(value)) = &attribute.value.as_ref().unwrap().value else {
        panic!("{attribute:?}");
    };
    (&attribute.key, value)
}

/// Checks an export of one relay that counted three failures of a server.
fn judge((headers, request): &Got<Request>) {
    assert_eq!(headers["authorization"], "Bearer x");
    let resource = request.resource_metrics[0].resource.as_ref().unwrap();
    for pair in [
        ("service.name", "distributary"),
        ("telemetry.sdk.name", "opentelemetry"),
        ("telemetry.sdk.language", "rust"),
    ] {
        assert!(resource.attributes.iter().any(|of| text(of) == pair), "{pair:?}");
    }
    let Some(Data::Sum(sum)) = &metric(request, "grpc.xds_client.server_failure").data else {
        panic!("a counter is a sum");
    };
    assert!(sum.is_monotonic && sum.aggregation_temporality == otlp::AggregationTemporality::Cumulative as i32);
    let point = &sum.data_points[0];
    assert_eq!(point.value, Some(Value::AsDouble(3.0)));
    assert!(point.start_time_unix_nano > 0 && point.start_time_unix_nano <= point.time_unix_nano);
    assert!(
        point
            .attributes
            .iter()
            .any(|of| text(of) == ("grpc.xds.server", "cp:1"))
    );
    let convergence = metric(request, "distributary_convergence_seconds");
    let Some(Data::Histogram(histogram)) = &convergence.data else {
        panic!("a histogram stays one");
    };
    let mut points = histogram.data_points.iter();
    let point = points.find(|point| point.attributes.iter().any(|of| text(of) == ("type", "other")));
    let point = point.unwrap();
    assert_eq!(
        (convergence.unit.as_str(), point.count, point.sum),
        ("s", 2, Some(1000.5))
    );
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    assert_eq!(point.bucket_counts.iter().sum::<u64>(), 2);
    assert_eq!(point.bucket_counts.last(), Some(&1), "what is above every bound");
}

fn measured() -> Arc<Metrics> {
    let metrics = Metrics::new([]);
    metrics.upstreams.of("cp:1").lost.inc_by(3);
    let of_type = metrics.of(&xds::TypeUrl::new("type.googleapis.com/x.Y"));
    of_type.convergence.observe(0.5, None);
    of_type.convergence.observe(1000.0, None);
    metrics
}

#[tokio::test]
async fn both_protocols_plain_and_compressed() {
    let metrics = measured();
    for compression in ["none", "gzip"] {
        for protocol in ["grpc", "http/protobuf"] {
            let (listener, address) = listen().await;
            let variables = vec![
                (ENDPOINT, format!("http://{address}/v1/metrics")),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol.to_owned()),
                ("OTEL_EXPORTER_OTLP_COMPRESSION", compression.to_owned()),
                ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x".to_owned()),
            ];
            let export = start(&metrics, variables);
            let taken = async {
                match protocol {
                    "grpc" => over_grpc::<Request>(&listener).await,
                    _ => over_http::<Request>(&listener, PATH, 200).await,
                }
            };
            judge(&tokio::time::timeout(SOON, taken).await.unwrap());
            drop(listener);
            drop(export);
        }
    }
}

/// A collector that was away or refused misses no count: every export has the sums since the start.
#[tokio::test]
async fn a_collector_that_was_away_misses_nothing() {
    let metrics = measured();
    let (listener, address) = listen().await;
    drop(listener);
    let variables = vec![
        (ENDPOINT, format!("http://{address}/v1/metrics")),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x".to_owned()),
    ];
    let _export = start(&metrics, variables);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let listener = TcpListener::bind(address).await.unwrap();
    let taken = async {
        drop(over_http::<Request>(&listener, PATH, 503).await);
        over_http::<Request>(&listener, PATH, 200).await
    };
    judge(&tokio::time::timeout(SOON, taken).await.unwrap());
}

/// The end of the program sends the last counts, and waits for nobody who says nothing.
#[tokio::test]
async fn the_last_export_has_a_limit() {
    let metrics = measured();
    let (listener, address) = listen().await;
    let export = start(&metrics, vec![(ENDPOINT, format!("http://{address}/v1/metrics"))]);
    let silent = async {
        let accepted = listener.accept().await;
        pending::<()>().await;
        drop(accepted);
    };
    let ended = tokio::task::spawn_blocking(move || drop(export));
    tokio::select! {
        () = silent => {}
        ended = tokio::time::timeout(SOON, ended) => ended.unwrap().unwrap(),
    }
}

/// A collector that takes a connection and says nothing costs one connection at a time.
#[tokio::test]
async fn a_silent_collector_is_left() {
    for protocol in ["grpc", "http/protobuf"] {
        let (listener, address) = listen().await;
        let variables = vec![
            (ENDPOINT, format!("http://{address}/v1/metrics")),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol.to_owned()),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "50".to_owned()),
        ];
        let export = start(&measured(), variables);
        let left = async {
            // On a busy machine the time may be over before anything was sent.
            let mut asked = 0;
            while asked < 3 {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut read = Vec::new();
                // Whether it ends or is reset, it is closed.
                let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut read).await;
                asked += usize::from(!read.is_empty());
            }
        };
        tokio::time::timeout(SOON, left).await.expect(protocol);
        drop(listener);
        drop(export);
    }
}

/// What a collector says is shown without what a terminal would take for an order.
#[tokio::test]
async fn a_refusal_says_why() {
    let (listener, address) = listen().await;
    let endpoint = format!("http://{address}");
    let target = |protocol: &'static str| {
        let endpoint = endpoint.clone();
        let environment = Environment::read(move |name| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(endpoint.clone()),
            "OTEL_EXPORTER_OTLP_PROTOCOL" => Some(protocol.to_owned()),
            _ => None,
        });
        Collector::new(environment.metrics.unwrap())
    };
    let send = async |protocol| {
        let answer = target(protocol).send(Request::default()).await;
        let refused: Result<ExportMetricsServiceResponse, _> = answer;
        refused.unwrap_err().to_string()
    };
    let (_, why) = tokio::join!(over_http::<Request>(&listener, PATH, 400), send("http/protobuf"));
    assert_eq!(why, "HTTP status 400 Bad Request: no\u{1b}[2J");
    // A collector's port for HTTP does not speak gRPC.
    let foreign = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        stream
    };
    let (_stream, why) = tokio::join!(foreign, send("grpc"));
    assert!(why.starts_with("HTTP/2 "), "{why}");
    let doubt = target("grpc").target().doubt();
    assert_eq!(doubt, "is it the port for OTLP over gRPC?");
}
