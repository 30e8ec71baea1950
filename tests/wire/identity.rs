// SPDX-License-Identifier: Apache-2.0
//! Who a client is: what the relay takes from its address, socket, certificate and balancer.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use distributary::identity::Named;
use distributary::xds::Dialect;
use rcgen::{CertificateParams, DistinguishedName, DnType, SanType};
use tokio::io::AsyncWriteExt as _;
use tonic::Code;

use crate::lifetimes::subscriber;
use crate::support::certificates::{Authority, VERSIONS, agree};
use crate::support::client::Client;
use crate::support::{CDS, Plan, Relay, closed_after, is_closed, raw, says, until};

/// A header of the second version.
const VERSION_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\0\0\x08\x0a\0\0\x01\0\x50\0\x50";

/// The identities in the log, the warnings and the errors, of this thread.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    identities: Vec<String>,
    warnings: Vec<String>,
    errors: Vec<String>,
    /// The nodes of the warnings that have one.
    nodes: Vec<String>,
}

/// The fields of a log line.
#[derive(Default)]
struct Line {
    message: String,
    identity: String,
    node: Option<String>,
}

impl tracing::field::Visit for Line {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "identity" => self.identity = format!("{value:?}"),
            "node" => self.node = Some(format!("{value:?}")),
            _ => {}
        }
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let mut lines = self.0.lock().unwrap();
        if *event.metadata().level() == tracing::Level::ERROR {
            lines.errors.push(line.message);
        } else if *event.metadata().level() == tracing::Level::WARN {
            lines.warnings.push(line.message);
            lines.nodes.extend(line.node);
        } else if line.message == "a stream begins" {
            lines.identities.push(line.identity);
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

impl Log {
    /// The log of this thread, as long as the guard lives.
    pub(crate) fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        // While there is one log alone, the library asks any thread that comes to a line first whether anybody wants it, and most
        // threads have none.
        static OTHER: LazyLock<tracing::Dispatch> = LazyLock::new(|| tracing::Dispatch::new(Log::default()));
        LazyLock::force(&OTHER);
        let log = Self::default();
        let guard = tracing::subscriber::set_default(log.clone());
        (log, guard)
    }

    pub(crate) fn identities(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().identities)
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().warnings)
    }

    pub(crate) fn nodes(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().nodes)
    }

    pub(crate) fn errors(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().errors)
    }
}

/// A stream on which something was received.
async fn served(client: &Client) {
    let mut subscriber = subscriber(client, Dialect::Delta, CDS, "a").await;
    assert_eq!(subscriber.take().await.bodies, ["body"]);
}

fn relay(plan: impl FnOnce(&mut Plan)) -> Relay {
    let relay = Relay::with(plan);
    relay.put(CDS, &["a"], "body");
    relay
}

fn headers(relay: &Relay, result: &str) {
    relay.shows(&format!("proxy_headers_total{{result=\"{result}\"}} 1"));
}

#[tokio::test]
async fn addresses_and_credentials() {
    let (log, _guard) = Log::begin();
    let tcp = relay(|_| ());
    served(&tcp.connect().await).await;
    assert_eq!(log.identities(), ["ip:127.0.0.1"]);

    let own = std::fs::metadata("/proc/self").unwrap();
    let path = PathBuf::from(format!("@distributary-identity/{}", std::process::id()));
    let unix = relay(|plan| plan.unix = Some(path));
    served(&unix.connect().await).await;
    assert_eq!(log.identities(), [format!("uid:{}, gid:{}", own.uid(), own.gid())]);
}

/// The same certificate says the same on a resumed session; one with two SPIFFE names is warned of once.
#[tokio::test]
async fn names_in_certificates() {
    let (log, _guard) = Log::begin();
    let (authority, clients) = (Authority::new(), Authority::new());
    let relay = relay(|plan| authority.secure(plan, Some(&clients), 256));
    for version in VERSIONS {
        for (uris, expected) in [
            (&["spiffe://td/ns/a/sa/b"][..], "spiffe://td/ns/a/sa/b, "),
            (&["spiffe://td/one", "spiffe://td/two"], ""),
        ] {
            let signed = clients.sign_as(|params: &mut CertificateParams| {
                let uris = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap()));
                params.subject_alt_names = uris.collect();
                params.distinguished_name = DistinguishedName::new();
                params.distinguished_name.push(DnType::CommonName, "edge-1");
            });
            let config = Arc::new(authority.client(Some(&signed), &[version]));
            for _ in 0..2 {
                served(&crate::tls::client(&relay, &config).await).await;
                let expected = format!("ip:127.0.0.1, {expected}subject:CN=edge-1");
                assert_eq!(log.identities(), [expected]);
            }
        }
    }
    assert_eq!(relay.shared.metrics.handshakes.count("resumed"), 4);
    let warnings = log.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("a SPIFFE name and 1 other URIs"), "{warnings:?}");
}

/// S-11: a client is refused if its certificate has a name that cannot be kept, and a rule names that kind; also once a rule comes to
/// name it.
#[tokio::test]
async fn names_that_cannot_be_kept() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let relay = relay(|plan| authority.secure(plan, Some(&clients), 256));
    let signed = clients.sign_as(|params: &mut CertificateParams| {
        let uris = ["spiffe://td/one", "spiffe://td/two"].map(|uri| SanType::URI(uri.try_into().unwrap()));
        params.subject_alt_names = uris.into();
    });
    let config = Arc::new(authority.client(Some(&signed), &VERSIONS));
    let client = crate::tls::client(&relay, &config).await;
    let mut open = subscriber(&client, Dialect::Delta, CDS, "a").await;
    open.take().await;
    let named = |fixed: &str| relay.shared.tokens.name(Named::from_iter([fixed]));
    named("dns:a");
    served(&client).await;
    named("spiffe://td/");
    let mut refused = subscriber(&client, Dialect::Delta, CDS, "a").await;
    let words = "identities that begin with `spiffe:`";
    says(&refused.call.end().await, Code::Unauthenticated, words);
    relay.allow(Arc::default());
    says(&open.call.end().await, Code::Unauthenticated, words);
    relay.shows("refused_identities_total{reason=\"spiffe\"} 2");
}

/// A listener with `require: identity` serves nobody who is only an address; whether it has it counts for calls that begin.
#[tokio::test]
async fn an_identity_is_required() {
    let relay = relay(|_| ());
    let client = relay.connect().await;
    let mut before = subscriber(&client, Dialect::Delta, CDS, "a").await;
    before.take().await;
    relay.entrance.require_identity(true);
    let missing = "the listener requires an identity (`require: identity`)";
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let mut refused = subscriber(&client, dialect, CDS, "a").await;
        says(&refused.call.end().await, Code::Unauthenticated, missing);
    }
    assert_eq!(crate::rest::poll(&client, &[]).await.head.status(), 401);
    let check = tonic_health::pb::HealthCheckRequest { service: String::new() };
    let mut health = client.unary("/grpc.health.v1.Health/Check", &check).await;
    let healthy = health.next::<tonic_health::pb::HealthCheckResponse>().await;
    assert!(healthy.is_ok(), "health needs no identity");
    relay.put(CDS, &["a"], "new");
    assert_eq!(before.take().await.bodies, ["new"], "an open stream goes on");
    relay.shows("refused_identities_total{reason=\"missing\"} 3");

    let path = PathBuf::from(format!("@distributary-required/{}", std::process::id()));
    let unix = self::relay(|plan| plan.unix = Some(path));
    unix.entrance.require_identity(true);
    served(&unix.connect().await).await;
    let (authority, clients) = (Authority::new(), Authority::new());
    let secure = self::relay(|plan| authority.secure(plan, Some(&clients), 256));
    secure.entrance.require_identity(true);
    let config = Arc::new(authority.client(Some(&clients.sign("edge")), &VERSIONS));
    served(&crate::tls::client(&secure, &config).await).await;
}

/// K-30: the address in the header is the client's, before TLS, in both versions; limits count it.
#[tokio::test]
async fn addresses_behind_a_balancer() {
    let (log, _guard) = Log::begin();
    let authority = Authority::new();
    for tls in [false, true] {
        let relay = relay(|plan| {
            plan.proxies = vec!["127.0.0.0/8".parse().unwrap()];
            plan.admission.connections_per_identity = 1;
            if tls {
                authority.secure(plan, None, 256);
            }
        });
        let config = Arc::new(authority.client(None, &VERSIONS));
        let connect = async |header: &[u8]| {
            let mut socket = raw::socket(relay.port()).await;
            socket.write_all(header).await.unwrap();
            socket
        };
        let begin = async |socket| match tls {
            true => crate::tls::speak(agree(&config, socket).await.unwrap()).await,
            false => Client::over(socket, &h2::client::Builder::new()).await.0,
        };
        let mut open = Vec::new();
        for (header, address) in [
            (&b"PROXY TCP4 10.0.0.7 10.0.0.1 80 80\r\n"[..], "10.0.0.7"),
            (VERSION_2, "10.0.0.8"),
            (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
        ] {
            let client = begin(connect(header).await).await;
            served(&client).await;
            assert_eq!(log.identities(), [format!("ip:{address}")]);
            open.push(client);
        }
        // The first address already has as many connections as it may have.
        is_closed(connect(b"PROXY TCP4 10.0.0.7 10.0.0.1 81 80\r\n").await).await;
        relay.shows("refused_total{limit=\"connections_per_identity\"} 1");
        drop(open);
    }
}

#[tokio::test]
async fn faulty_headers_close_the_connection() {
    let (log, _guard) = Log::begin();
    let send = async |relay: &Relay, bytes: &[u8]| {
        let mut socket = raw::socket(relay.port()).await;
        // The relay may close before it has read everything.
        let _ = socket.write_all(bytes).await;
        is_closed(socket).await;
    };
    let header = b"PROXY TCP4 10.0.0.7 10.0.0.1 80 80\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let long = [b"PROXY TCP4 ".as_slice(), &[b'1'; 65_536]].concat();
    let longer = [b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff".as_slice(), &[0; 65_535]].concat();
    for (bytes, result) in [
        (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], "missing"),
        (b"PROXY TCP4 10.0.0.7 x 80 80\r\n", "malformed"),
        (&long, "too_long"),
        (&longer, "too_long"),
    ] {
        let relay = relay(|plan| plan.proxies = vec!["127.0.0.1/32".parse().unwrap()]);
        send(&relay, bytes).await;
        headers(&relay, result);
        assert_eq!(log.warnings().len(), 1, "{result}");
    }
    let authority = Authority::new();
    let relays = [
        relay(|_| ()),
        relay(|plan| plan.proxies = vec!["10.0.0.0/8".parse().unwrap()]),
        authority.relay(),
    ];
    for relay in relays {
        send(&relay, header).await;
        headers(&relay, "stranger");
        assert!(log.warnings()[0].contains("not in `proxy_protocol.from`"));
        send(&relay, VERSION_2).await;
    }
    assert!(log.identities().is_empty());
}

/// A header that is cut off ends the connection when its time is over, and counts as part of the handshake.
#[tokio::test]
async fn a_header_has_the_time_of_a_handshake() {
    let (log, _guard) = Log::begin();
    let relay = relay(|plan| plan.proxies = vec!["127.0.0.1/32".parse().unwrap()]);
    let mut socket = raw::socket(relay.port()).await;
    socket.write_all(b"PROXY TCP4 10.0.0.7 10.").await.unwrap();
    until(|| relay.open().1 == 1, || "not accepted").await;
    assert!(closed_after(socket).await < Duration::from_secs(20));
    headers(&relay, "timeout");
    assert_eq!(log.warnings().len(), 1);
}
