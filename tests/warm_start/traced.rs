// SPDX-License-Identifier: Apache-2.0
//! Changes that are traced, through two relays into a collector of the suite's own.

use std::convert::Infallible;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use distributary::proto::envoy::config::core::v3::ControlPlane;
use distributary::telemetry::traceparent;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry::trace::SpanContext;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;

use crate::fresh;
use crate::plane::{Call, Plane};
use crate::stage::{CDS, Client, Delta, Relay, asking, clusters, directory, eventually, until};

/// A collector: the spans that came, each with the name of the service that sent it.
struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<(String, Span)>>>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let spans = Arc::<Mutex<Vec<_>>>::default();
        let take = spans.clone();
        #[expect(clippy::disallowed_methods, reason = "a server runs beside its clients")]
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let take = take.clone();
                let service = service_fn(move |request| accept(request, take.clone()));
                // The client closes the connection.
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            }
        });
        Self { address, spans }
    }

    /// The span with this name that fits; waits until it has come.
    async fn span(&self, service: &str, name: &str, fits: impl Fn(&Span) -> bool) -> Span {
        let look = || {
            let spans = self.spans.lock().unwrap();
            let found = spans
                .iter()
                .find(|(of, span)| of == service && span.name == name && fits(span));
            found.map(|(_, span)| span.clone())
        };
        eventually(&format!("{name} of {service}"), look).await
    }
}

async fn accept(
    request: Request<Incoming>,
    spans: Arc<Mutex<Vec<(String, Span)>>>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    if request.uri().path() == "/v1/traces" {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        for of_resource in ExportTraceServiceRequest::decode(body).unwrap().resource_spans {
            let service = text(&of_resource.resource.unwrap().attributes, "service.name");
            let all = of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            spans.lock().unwrap().extend(all.map(|span| (service.clone(), span)));
        }
    }
    Ok(Response::new(Empty::new()))
}

fn value(attributes: &[KeyValue], key: &str) -> Value {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    found.unwrap().value.clone().unwrap().value.unwrap()
}

fn text(attributes: &[KeyValue], key: &str) -> String {
    let Value::StringValue(text) = value(attributes, key) else {
        panic!("{key} is no text");
    };
    text
}

fn number(span: &Span, key: &str) -> i64 {
    let Value::IntValue(number) = value(&span.attributes, key) else {
        panic!("{key} is no number");
    };
    number
}

/// Whether it is the span of a change of this cluster.
fn of(span: &Span, cluster: &str) -> bool {
    let Value::ArrayValue(names) = value(&span.attributes, "distributary.names") else {
        panic!("{span:?}");
    };
    let name = Value::StringValue(cluster.to_owned());
    names.values.contains(&AnyValue { value: Some(name) })
}

fn relay(name: &str, upstream: impl Display, collector: &Collector) -> Relay {
    let text = asking(upstream, "node: {id: relay}\n");
    let command = [
        "env".to_owned(),
        format!("OTEL_EXPORTER_OTLP_ENDPOINT=http://{}", collector.address),
        format!("OTEL_SERVICE_NAME={name}"),
        "OTEL_BSP_SCHEDULE_DELAY=100".to_owned(),
        "OTEL_TRACES_SAMPLER=parentbased_always_on".to_owned(),
    ];
    Relay::execute(&command, name, &text, "json")
}

/// Sends a change of a control plane that traces it, in this span.
fn send(call: &mut Call, nonce: &str, cluster: &str, span: Option<&SpanContext>) {
    let mut response = clusters(nonce, &[(cluster, "1")], &[]);
    let identifier = span.map(|span| traceparent::after("plane", span)).unwrap_or_default();
    response.control_plane = Some(ControlPlane { identifier });
    call.send(&response);
}

/// a change is one trace, from the control plane's span to the acknowledgement of the last relay's client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_one_trace_through_two_relays() {
    let collector = Collector::start().await;
    let mut plane = Plane::start().await;
    let upper = relay("upper", plane.address, &collector);
    let lower = relay("lower", upper.address, &collector);
    let mut client: Delta = Client::connect(lower.address).await.open(&fresh()).await;
    let mut call = plane.call().await;
    call.delta().await;
    let stream = "00-11111111111111111111111111111111-2222222222222222-01";
    call.begin_with(Response::builder().header("traceparent", stream));
    let stream = traceparent::read(stream).unwrap();
    send(&mut call, "n1", "first", None);
    assert!(client.next().await.versions.contains_key("first"));
    let own = traceparent::read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
    send(&mut call, "n2", "second", Some(&own));
    let response = client.whole().await;
    assert!(response.resources.iter().any(|resource| resource.name == "second"));
    let identifier = response.control_plane.unwrap().identifier;
    // Only relays are told.
    assert!(!identifier.contains("traceparent"), "{identifier}");

    for (cluster, parent) in [("first", None), ("second", Some(&own))] {
        let above = collector.span("upper", "change", |span| of(span, cluster)).await;
        let parent_span = parent
            .map(|parent| parent.span_id().to_bytes().to_vec())
            .unwrap_or_default();
        assert_eq!(above.parent_span_id, parent_span, "{cluster}");
        assert!(parent.is_none_or(|parent| above.trace_id[..] == parent.trace_id().to_bytes()));
        assert_eq!(above.links[0].span_id[..], stream.span_id().to_bytes());
        let in_trace = |span: &Span| span.trace_id == above.trace_id;
        let sent = collector.span("upper", "send", in_trace).await;
        assert_eq!(number(&sent, "distributary.responses"), 1);
        let acknowledged = collector.span("upper", "acknowledge", in_trace).await;
        assert_eq!(number(&acknowledged, "distributary.accepted"), 1);
        let below = collector.span("lower", "change", in_trace).await;
        assert!(of(&below, cluster));
        assert_eq!(below.parent_span_id, sent.span_id);
        let kind = text(&below.attributes, "grpc.xds.resource_type");
        assert!(CDS.ends_with(&format!("/{kind}")), "{kind}");
        for name in ["decode", "apply", "encode", "send"] {
            let step = collector.span("lower", name, in_trace).await;
            assert_eq!(step.parent_span_id, below.span_id, "{name}");
            assert!(step.start_time_unix_nano >= below.start_time_unix_nano, "{name}");
            assert!(step.end_time_unix_nano <= below.end_time_unix_nano, "{name}");
        }
        let acknowledged = collector.span("lower", "acknowledge", in_trace).await;
        assert_eq!(number(&acknowledged, "distributary.accepted"), 1);
        assert!([&below, &above].map(|span| span.status.as_ref().unwrap().code) == [0, 0]);
    }
    let exported = "distributary_traces_total{result=\"exported\"} 2";
    until("the end of the exports", || lower.admin("/metrics").contains(exported)).await;
    examples(&lower, &own);
}

/// Content of files, and content that is polled, is traced as well, each by the relay that reads it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_polls_are_traced() {
    let collector = Collector::start().await;
    let dir = directory("traced");
    let file = dir.join("clusters.yaml");
    let write = |cluster: &str| {
        let new = dir.join("new");
        std::fs::write(&new, format!("- {{'@type': '{CDS}', name: '{cluster}'}}\n")).unwrap();
        std::fs::rename(&new, &file).unwrap();
    };
    write("first");
    let reads = relay("reads", format!("file://{}", file.display()), &collector);
    let polls = relay("polls", format!("rest+http://{}", reads.address), &collector);
    let mut own: Delta = Client::connect(reads.address).await.open(&fresh()).await;
    let mut client: Delta = Client::connect(polls.address).await.open(&fresh()).await;
    for stream in [&mut own, &mut client] {
        while !stream.next().await.versions.contains_key("first") {}
    }
    write("second");
    for (stream, service) in [(&mut own, "reads"), (&mut client, "polls")] {
        while !stream.next().await.versions.contains_key("second") {}
        let change = collector.span(service, "change", |span| of(span, "second")).await;
        let in_trace = |span: &Span| span.trace_id == change.trace_id;
        let acknowledged = collector.span(service, "acknowledge", in_trace).await;
        assert_eq!(number(&acknowledged, "distributary.accepted"), 1, "{service}");
    }
}

/// The trace is an example of the histogram in OpenMetrics; Prometheus's own form has none.
fn examples(relay: &Relay, traced: &SpanContext) {
    let bucket = "distributary_convergence_seconds_bucket{le=";
    let buckets = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with(bucket));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let trace = format!(" # {{trace_id=\"{}\",span_id=\"", traced.trace_id());
    let open = buckets(&relay.openmetrics());
    assert!(open.iter().any(|line| line.contains(&trace)), "{open:#?}");
    let own = buckets(&relay.admin("/metrics"));
    assert!(own.iter().all(|line| !line.contains('#')), "{own:#?}");
}
