// SPDX-License-Identifier: Apache-2.0
//! Collectors that refuse, ask for time, hang, or check who speaks to them.

use std::path::PathBuf;
use std::time::Instant;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest as Request;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tonic::{Code, Status};

use super::traced::{change, reaches, variables};
use super::*;
use crate::otlp::collector::Collector;
use crate::otlp::refusal::{Answer, CollectorRefusal};
use crate::telemetry::TracedChange;

const PATH: &str = "/v1/traces";
const PROTOCOLS: [&str; 2] = ["grpc", "http/protobuf"];

/// A change that is over.
fn over(metrics: &Metrics) -> Arc<TracedChange> {
    change(metrics, Duration::from_secs(60))
}

fn speaking(address: SocketAddr, protocol: &str) -> Vec<(&'static str, String)> {
    variables(address, &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)])
}

/// Takes one export and answers with this status of the protocol, and a pause of so many seconds.
async fn answer(listener: &TcpListener, protocol: &str, status: u16, pause: Option<&'static str>) -> Request {
    let (stream, _) = listener.accept().await.unwrap();
    on(stream, protocol, status, pause).await
}

async fn on(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    protocol: &str,
    status: u16,
    pause: Option<&'static str>,
) -> Request {
    let taken = async {
        if protocol == "grpc" {
            let pause = pause.map(|pause| Duration::from_secs(pause.parse().unwrap()));
            grpc_on(stream, u8::try_from(status).unwrap(), pause).await.1
        } else {
            http_on(stream, PATH, status, pause).await.1
        }
    };
    tokio::time::timeout(SOON, taken).await.unwrap()
}

/// The changes in an export.
fn changes(request: &Request) -> Vec<[u8; 8]> {
    let spans = &request.resource_spans[0].scope_spans[0].spans;
    let whole = spans.iter().filter(|span| span.name == "change");
    whole.map(|span| span.span_id.as_slice().try_into().unwrap()).collect()
}

fn id(change: &TracedChange) -> [u8; 8] {
    change.own.span_id().to_bytes()
}

#[test]
fn what_is_tried_again() {
    let http = |status: u16| {
        let status = http::StatusCode::from_u16(status).unwrap();
        CollectorRefusal::http(status, &HeaderMap::new(), b"").verdict()
    };
    let again = (300..600).filter(|status| http(*status) != Answer::Never);
    assert_eq!(again.collect::<Vec<_>>(), [429, 502, 503, 504]);
    let grpc = |code: i32, pause: Option<Duration>| {
        let code = Code::from_i32(code);
        let details = pause.map(|pause| STANDARD_NO_PAD.decode(details(code as u8, pause)).unwrap());
        CollectorRefusal::from(Status::with_details(code, "", details.unwrap_or_default().into())).verdict()
    };
    let again = (1..17).filter(|code| grpc(*code, None) != Answer::Never);
    assert_eq!(again.collect::<Vec<_>>(), [1, 4, 10, 11, 14, 15]);
    let pause = Duration::from_millis(1500);
    let again = (1..17).filter(|code| grpc(*code, Some(pause)) == Answer::Later(Some(pause)));
    assert_eq!(again.collect::<Vec<_>>(), [1, 4, 8, 10, 11, 14, 15]);
    let hours = Duration::from_secs(100_000);
    assert_eq!(grpc(14, Some(hours)), Answer::Later(Some(Duration::from_secs(600))));
    let mut headers = HeaderMap::new();
    for (pause, said) in [("7", Some(7)), ("-1", None), ("soon", None), ("99999999999", Some(600))] {
        headers.insert("retry-after", pause.parse().unwrap());
        let verdict = CollectorRefusal::http(http::StatusCode::TOO_MANY_REQUESTS, &headers, b"").verdict();
        assert_eq!(verdict, Answer::Later(said.map(Duration::from_secs)), "{pause}");
    }
}

/// A batch that the collector will never take is dropped and counted, and blocks nothing that follows.
#[tokio::test]
async fn what_is_refused_is_dropped() {
    for (protocol, statuses) in [
        ("grpc", &[3, 8, 16, 12, 13][..]),
        ("http/protobuf", &[400, 401, 413, 404, 500]),
    ] {
        let metrics = Metrics::new([]);
        let (listener, address) = listen().await;
        let export = start(&metrics, speaking(address, protocol));
        for (before, status) in statuses.iter().enumerate() {
            let change = over(&metrics);
            let request = answer(&listener, protocol, *status, None).await;
            assert_eq!(changes(&request), [id(&change)], "{protocol} {status}");
            reaches(&metrics, "dropped", &(before + 1).to_string()).await;
        }
        let change = over(&metrics);
        let taken = if protocol == "grpc" { 0 } else { 200 };
        assert_eq!(changes(&answer(&listener, protocol, taken, None).await), [id(&change)]);
        reaches(&metrics, "exported", "1").await;
        drop(listener);
        drop(export);
    }
}

/// What a collector cannot take now is sent again, when it has said so; until then it is left alone.
#[tokio::test]
async fn a_collector_that_asks_for_time_gets_it() {
    for (protocol, busy, taken) in [("grpc", 8, 0), ("http/protobuf", 429, 200)] {
        let metrics = Metrics::new([]);
        let (listener, address) = listen().await;
        let export = start(&metrics, speaking(address, protocol));
        let first = over(&metrics);
        answer(&listener, protocol, busy, Some("1")).await;
        #[expect(clippy::disallowed_methods, reason = "the pause is at least this long")]
        let asked = Instant::now();
        let second = over(&metrics);
        let request = answer(&listener, protocol, taken, None).await;
        // It began when the relay read the answer, at the latest when its connection was closed.
        assert!(asked.elapsed() > Duration::from_millis(900), "{protocol}");
        assert_eq!(changes(&request), [id(&first), id(&second)], "{protocol}");
        reaches(&metrics, "exported", "2").await;
        reaches(&metrics, "dropped", "0").await;
        drop(listener);
        drop(export);
    }
}

#[tokio::test]
async fn nothing_is_lost_while_a_collector_is_away() {
    away(Duration::from_millis(10)).await;
}

/// The same in the time that a collector takes to start anew.
#[tokio::test]
#[ignore = "it takes a minute; `.ci/run` plays it"]
async fn nothing_is_lost_in_half_a_minute() {
    away(Duration::from_secs(1)).await;
}

/// The relay pauses longer and longer while a collector is away, and loses no change for which there is room. There are thirty
/// changes, this far apart.
async fn away(apart: Duration) {
    let metrics = Metrics::new([]);
    let (listener, address) = listen().await;
    drop(listener);
    let export = start(&metrics, speaking(address, "http/protobuf"));
    let mut all = Vec::new();
    for _ in 0..30 {
        all.push(id(&over(&metrics)));
        tokio::time::sleep(apart).await;
    }
    let listener = TcpListener::bind(address).await.unwrap();
    let mut came = changes(&answer(&listener, "http/protobuf", 503, None).await);
    assert!(!came.is_empty());
    came = changes(&answer(&listener, "http/protobuf", 200, None).await);
    assert_eq!(came, all);
    reaches(&metrics, "exported", "30").await;
    reaches(&metrics, "dropped", "0").await;
    drop(listener);
    drop(export);
}

/// Reads a request, sends the head of an answer, and then nothing. Returns when the relay has closed the connection. On a busy machine the
/// relay's time may be over before its request is here; then nothing was begun.
async fn begin_an_answer(stream: TcpStream, protocol: &str) -> bool {
    if protocol == "grpc" {
        let Ok(mut connection) = h2::server::handshake(stream).await else {
            return false;
        };
        let Some(Ok((_, mut respond))) = connection.accept().await else {
            return false;
        };
        let Ok(_body) = respond.send_response(Response::new(()), false) else {
            return false;
        };
        while connection.accept().await.is_some_and(|request| request.is_ok()) {}
    } else {
        let mut stream = stream;
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n";
        if !stream.read(&mut [0; 1024]).await.is_ok_and(|bytes| bytes > 0) || stream.write_all(head).await.is_err() {
            return false;
        }
        // Whether it ends or is reset, it is closed.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    true
}

/// An export ends at its time-out although its answer has begun, and is tried again.
#[tokio::test]
async fn an_answer_that_does_not_end() {
    for protocol in PROTOCOLS {
        let metrics = Metrics::new([]);
        let (listener, address) = listen().await;
        let mut variables = speaking(address, protocol);
        variables.push(("OTEL_EXPORTER_OTLP_TIMEOUT", "100".to_owned()));
        let export = start(&metrics, variables);
        over(&metrics);
        let mut begun = 0;
        while begun < 3 {
            let (stream, _) = tokio::time::timeout(SOON, listener.accept()).await.unwrap().unwrap();
            let end = tokio::time::timeout(SOON, begin_an_answer(stream, protocol));
            begun += usize::from(end.await.unwrap());
        }
        reaches(&metrics, "dropped", "0").await;
        drop(listener);
        drop(export);
    }
}

/// How long the program may take to end while its collector hangs.
const END: Duration = Duration::from_millis(2500);

/// The end of the program waits once for both signals together.
#[tokio::test]
async fn the_end_does_not_wait_for_a_collector_that_hangs() {
    for protocol in PROTOCOLS {
        // A busy machine may be late now and then; who waits for both signals is late each time.
        let mut took = Vec::new();
        while took.iter().all(|took| *took >= END) {
            assert!(took.len() < 3, "{protocol}: {took:?}");
            took.push(end_while_it_hangs(protocol).await);
        }
    }
}

/// Returns how long the end takes.
async fn end_while_it_hangs(protocol: &str) -> Duration {
    let metrics = Metrics::new([]);
    let (listener, address) = listen().await;
    let mut variables = speaking(address, protocol);
    variables.push((
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        format!("http://{address}/v1/metrics"),
    ));
    let export = start(&metrics, variables);
    over(&metrics);
    let hangs = async {
        let mut accepted = Vec::new();
        loop {
            accepted.push(listener.accept().await);
        }
    };
    let ended = tokio::task::spawn_blocking(move || {
        #[expect(clippy::disallowed_methods, reason = "how long the end takes")]
        let begun = Instant::now();
        drop(export);
        begun.elapsed()
    });
    tokio::select! {
        () = hangs => panic!("it hangs for ever"),
        took = ended => took.unwrap(),
    }
}

/// Without a collector there is no thread, and no change is looked at.
#[tokio::test]
async fn nothing_set_costs_nothing() {
    let metrics = Metrics::new([]);
    let read = async || panic!("nobody reads metrics");
    assert!(Export::start(|_| None, read, &metrics.traces).unwrap().is_none());
    assert!(!metrics.traces.is_on());
}

/// Certificates of a collector and of a relay, in files.
struct Certificates {
    folder: PathBuf,
    collector: CertifiedKey<KeyPair>,
    relay: CertifiedKey<KeyPair>,
}

impl Certificates {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("distributary-otlp-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let made = || generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (collector, relay) = (made(), made());
        for (file, text) in [
            ("ca", collector.cert.pem()),
            ("relay", relay.cert.pem()),
            ("key", relay.signing_key.serialize_pem()),
        ] {
            std::fs::write(folder.join(file), text).unwrap();
        }
        Self {
            folder,
            collector,
            relay,
        }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A collector that wants the relay's certificate.
    fn acceptor(&self, protocol: &str) -> TlsAcceptor {
        let mut roots = RootCertStore::empty();
        roots.add(self.relay.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let key = PrivatePkcs8KeyDer::from(self.collector.signing_key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(vec![self.collector.cert.der().clone()], PrivateKeyDer::from(key))
            .unwrap();
        let spoken = if protocol == "grpc" { "h2" } else { "http/1.1" };
        config.alpn_protocols = vec![spoken.into()];
        TlsAcceptor::from(Arc::new(config))
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A collector with a certificate of its own authority wants one of the relay; the error of a relay without one says so.
#[tokio::test]
async fn certificates_on_both_sides() {
    for (protocol, taken) in [("grpc", 0), ("http/protobuf", 200)] {
        let certificates = Certificates::new(&protocol.replace('/', "-"));
        let acceptor = certificates.acceptor(protocol);
        let metrics = Metrics::new([]);
        let (listener, address) = listen().await;
        let endpoint = format!("https://{address}{PATH}");
        let secured = |named: bool| {
            let mut variables = speaking(address, protocol);
            variables.retain(|(name, _)| *name != "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
            variables.push(("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint.clone()));
            variables.push(("OTEL_EXPORTER_OTLP_CERTIFICATE", certificates.file("ca")));
            if named {
                variables.push(("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", certificates.file("relay")));
                variables.push(("OTEL_EXPORTER_OTLP_CLIENT_KEY", certificates.file("key")));
            }
            variables
        };
        let export = start(&metrics, secured(true));
        let change = over(&metrics);
        let (stream, _) = tokio::time::timeout(SOON, listener.accept()).await.unwrap().unwrap();
        let request = on(acceptor.accept(stream).await.unwrap(), protocol, taken, None).await;
        assert_eq!(changes(&request), [id(&change)], "{protocol}");
        reaches(&metrics, "exported", "1").await;
        drop(export);

        let variables = secured(false);
        let environment = Environment::read(|name| {
            let found = variables.iter().find(|(of, _)| *of == name);
            found.map(|(_, value)| value.clone())
        });
        let nameless = Collector::new(environment.traces.unwrap());
        let refused = async {
            let (stream, _) = listener.accept().await.unwrap();
            assert!(acceptor.accept(stream).await.is_err());
        };
        let sent = nameless.send::<_, ExportMetricsServiceResponse>(Request::default());
        let ((), answer) = tokio::join!(refused, sent);
        assert!(matches!(answer, Err(CollectorRefusal::Broken(_))), "{answer:?}");
        let doubt = nameless.target().doubt();
        assert!(doubt.contains("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"), "{doubt}");
    }
}
