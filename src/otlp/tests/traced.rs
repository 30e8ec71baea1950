// SPDX-License-Identifier: Apache-2.0
//! The export of traces.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest as Request;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;

use super::*;
use crate::telemetry::{Delivery, TracedArrival, TracedChange, TracedNews, traceparent};
use crate::xds::{Name, TypeUrl};

const PATH: &str = "/v1/traces";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

pub(super) fn variables(address: SocketAddr, more: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let endpoint = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", format!("http://{address}{PATH}"));
    let sampler = ("OTEL_TRACES_SAMPLER", "always_on".to_owned());
    let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
    more.chain([endpoint, sampler]).collect()
}

/// A change of three clusters that arrived `ago`, with a parent and a link.
pub(super) fn change(metrics: &Metrics, ago: Duration) -> Arc<TracedChange> {
    let received = clock::now().checked_sub(ago).unwrap();
    let arrival = TracedArrival {
        server: Arc::from("cp:1"),
        type_url: TypeUrl::called("cds").unwrap(),
        bytes: 300,
        received,
        decoded: received + Duration::from_millis(1),
        parent: traceparent::read(PARENT),
        stream: traceparent::read(&PARENT.replace("-b7", "-c7")),
    };
    let mut news = TracedNews::default();
    for name in ["a", "b", "c"] {
        news.note(&Name::from(name), None);
    }
    let change = metrics.traces.begin(&arrival, || Some(news)).unwrap();
    change.apply(received + Duration::from_millis(2));
    change
}

/// Sends a change to this many clients; each delivery awaits its answer.
fn sent(change: &Arc<TracedChange>, clients: usize) -> Vec<Delivery> {
    let at = change.arrival.received + Duration::from_millis(3);
    change.encode(at, at + Duration::from_millis(1));
    (0..clients)
        .map(|_| change.send(at + Duration::from_millis(1)))
        .collect()
}

fn spans(request: &Request) -> &[Span] {
    &request.resource_spans[0].scope_spans[0].spans
}

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    spans.iter().find(|span| span.name == name).unwrap()
}

fn value(span: &Span, key: &str) -> Value {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    found.unwrap().value.clone().unwrap().value.unwrap()
}

fn ends(span: &Span) -> u64 {
    span.end_time_unix_nano - span.start_time_unix_nano
}

fn counted(metrics: &Metrics, result: &str) -> String {
    let text = metrics.encode().unwrap();
    let series = format!("distributary_traces_total{{result=\"{result}\"}} ");
    let count = text.lines().find_map(|line| line.strip_prefix(&series));
    count.unwrap().to_owned()
}

/// Waits until a count is reached.
pub(super) async fn reaches(metrics: &Metrics, result: &str, count: &str) {
    let reached = async {
        while counted(metrics, result) != count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, reached).await.unwrap();
}

/// One change is a span with a span for each step; its counts and times are those of the change.
#[tokio::test]
async fn a_change_and_its_steps() {
    let metrics = Metrics::new([]);
    let (listener, address) = listen().await;
    let export = start(&metrics, variables(address, &[]));
    let change = change(&metrics, Duration::ZERO);
    let mut owed = sent(&change, 3).into_iter();
    let answered = change.arrival.received + Duration::from_millis(14);
    owed.next().unwrap().accept(answered);
    owed.next().unwrap().reject(answered);
    drop(owed);
    let taken = over_http::<Request>(&listener, PATH, 200);
    let (_, request) = tokio::time::timeout(SOON, taken).await.unwrap();
    let spans = spans(&request);
    let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["change", "decode", "apply", "encode", "send", "acknowledge"]);
    let whole = named(spans, "change");
    assert_eq!(&whole.trace_id[..2], [0x0a, 0xf7]);
    assert_eq!(whole.parent_span_id[..], 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
    assert_eq!(whole.links[0].span_id[..], 0xc7ad_6b71_6920_3331_u64.to_be_bytes());
    // The flags say that all are sampled, and which ones come from another process.
    assert_eq!((whole.flags, whole.links[0].flags), (0x301, 0x301));
    assert_eq!(named(spans, "decode").flags, 0x101);
    assert_eq!(value(whole, "grpc.xds.server"), Value::StringValue("cp:1".to_owned()));
    assert_eq!(value(whole, "distributary.resources"), Value::IntValue(3));
    let status = whole.status.as_ref().unwrap();
    assert_eq!(
        (status.code, status.message.as_str()),
        (2, "1 of 3 responses were rejected")
    );
    for step in &spans[1..] {
        assert_eq!(step.parent_span_id, whole.span_id, "{}", step.name);
        assert_eq!(step.trace_id, whole.trace_id, "{}", step.name);
    }
    let send = named(spans, "send");
    assert_eq!(send.span_id[..], change.context().span_id().to_bytes());
    assert_eq!(value(send, "distributary.responses"), Value::IntValue(3));
    let acknowledge = named(spans, "acknowledge");
    for (key, count) in [("accepted", 1), ("rejected", 1), ("gone", 1), ("unanswered", 0)] {
        let key = format!("distributary.{key}");
        assert_eq!(value(acknowledge, &key), Value::IntValue(count), "{key}");
    }
    let milliseconds = |name| ends(named(spans, name)) / 1_000_000;
    assert_eq!([milliseconds("decode"), milliseconds("apply")], [1, 1]);
    assert_eq!([milliseconds("encode"), milliseconds("acknowledge")], [1, 10]);
    assert_eq!(milliseconds("change"), 14);
    reaches(&metrics, "exported", "1").await;
    drop(listener);
    drop(export);
}

/// What waits for a collector that is away has a bound; the latest are kept, and come when it is back.
#[tokio::test]
async fn a_collector_that_is_away_gets_the_latest() {
    let metrics = Metrics::new([]);
    let (listener, address) = listen().await;
    drop(listener);
    let more = [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "12"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    ];
    let export = start(&metrics, variables(address, &more));
    let all: Vec<_> = (0..5)
        .map(|at| change(&metrics, Duration::from_secs(60 - at)))
        .collect();
    reaches(&metrics, "dropped", "3").await;
    let listener = TcpListener::bind(address).await.unwrap();
    let taken = async {
        drop(over_http::<Request>(&listener, PATH, 503).await);
        over_http::<Request>(&listener, PATH, 200).await.1
    };
    let request = tokio::time::timeout(SOON, taken).await.unwrap();
    let whole = spans(&request).iter().filter(|span| span.name == "change");
    let came: Vec<_> = whole.map(|span| span.span_id.clone()).collect();
    let latest = all[3..].iter().map(|change| change.own.span_id().to_bytes());
    assert_eq!(came, latest.collect::<Vec<_>>());
    reaches(&metrics, "exported", "2").await;
    drop(listener);
    drop(export);
}

/// The end of the program exports the changes that are not over, over gRPC as well.
#[tokio::test]
async fn the_last_export_has_what_is_open() {
    let metrics = Metrics::new([]);
    let (listener, address) = listen().await;
    let more = [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    let export = start(&metrics, variables(address, &more));
    let change = change(&metrics, Duration::ZERO);
    let owed = sent(&change, 2);
    let ended = tokio::task::spawn_blocking(move || drop(export));
    let taken = over_grpc::<Request>(&listener);
    let (_, request) = tokio::time::timeout(SOON, taken).await.unwrap();
    let status = spans(&request)[0].status.clone().unwrap();
    assert_eq!(status.message, "2 of 2 responses were not answered");
    ended.await.unwrap();
    drop(owed);
}

/// A histogram has traced changes as examples of its buckets.
#[tokio::test]
async fn metrics_have_traces_as_examples() {
    let metrics = Metrics::new([]);
    let of_type = metrics.of(&TypeUrl::called("cds").unwrap());
    of_type.convergence.observe(0.2, None);
    of_type.convergence.observe(0.3, traceparent::read(PARENT).as_ref());
    let (listener, address) = listen().await;
    let endpoint = (
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        format!("http://{address}/v1/metrics"),
    );
    let export = start(&metrics, vec![endpoint]);
    let taken = over_http::<ExportMetricsServiceRequest>(&listener, "/v1/metrics", 200);
    let (_, request) = tokio::time::timeout(SOON, taken).await.unwrap();
    let mut all = request.resource_metrics[0].scope_metrics[0].metrics.iter();
    let convergence = all.find(|metric| metric.name == "distributary_convergence_seconds");
    let Some(Data::Histogram(histogram)) = &convergence.unwrap().data else {
        panic!("it is a histogram");
    };
    let examples: Vec<_> = histogram
        .data_points
        .iter()
        .flat_map(|point| &point.exemplars)
        .collect();
    let [example] = *examples else { panic!("{examples:?}") };
    let context = traceparent::read(PARENT).unwrap();
    assert_eq!(example.trace_id[..], context.trace_id().to_bytes());
    assert_eq!(example.span_id[..], context.span_id().to_bytes());
    assert!(example.time_unix_nano > 0);
    drop(listener);
    drop(export);
}
