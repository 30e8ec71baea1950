// SPDX-License-Identifier: Apache-2.0
//! Who may look at the admin address, and who may give orders there: by address, Unix credentials, certificate and token.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use distributary::admin::{Admin, DrainOrder, Guard, Shown};
use distributary::config::{Address, AdminRules};
use distributary::identity::Named;
use distributary::proto::envoy::service::status::v3::{ClientStatusRequest, ClientStatusResponse};
use distributary::telemetry::{Health, RelayStatus};
use distributary::tls::{self, ServerTls};
use distributary::token::Tokens;
use rustls::ClientConfig;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tonic::Code;

use crate::support::certificates::{Authority, Folder, VERSIONS, agree};
use crate::support::client::Client;
use crate::support::{PATIENCE, Relay, config};
use crate::tokens::{ISSUER, Published, SKEW, Signer};
use crate::window::shown;

/// An admin address with rules.
pub(crate) struct Stage {
    pub(crate) admin: Admin,
    rules: Arc<ArcSwap<AdminRules>>,
    orders: mpsc::Receiver<DrainOrder>,
    health: Arc<Health>,
}

const LOOK: &str = "GET /clusters";
const ORDER: &str = "POST /drain_listeners";

fn rules(written: &str) -> AdminRules {
    config(&format!("admin: {{rules: [{written}]}}\n")).admin_rules
}

impl Stage {
    fn start(written: &str) -> Self {
        Self::start_at("127.0.0.1:0", None, Tokens::default(), written)
    }

    fn start_at(address: &str, tls: Option<Arc<ServerTls>>, tokens: Tokens, written: &str) -> Self {
        Self::over(&Relay::start(), address, tls, tokens, written)
    }

    /// That of a relay.
    pub(crate) fn over(
        relay: &Relay,
        address: &str,
        tls: Option<Arc<ServerTls>>,
        tokens: Tokens,
        written: &str,
    ) -> Self {
        let (order, orders) = mpsc::channel(1);
        let guard = Guard {
            rules: Arc::new(ArcSwap::from_pointee(rules(written))),
            hosts: Arc::default(),
            tokens,
        };
        let (rules, health) = (guard.rules.clone(), Arc::new(Health::new()));
        let shown = Shown {
            health: health.clone(),
            ..shown(relay, order, guard)
        };
        let admin = Admin::start(&Address::parse(address).unwrap(), tls, None, shown).unwrap();
        Self {
            admin,
            rules,
            orders,
            health,
        }
    }

    /// Asks without TLS. Returns the status and the body.
    pub(crate) async fn ask(&self, request: &str, more: &str) -> (u16, String) {
        let address = self.admin.socket().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        ask(stream, request, &format!("host: {address}\r\n{more}")).await
    }

    async fn status(&self, request: &str) -> u16 {
        self.ask(request, "").await.0
    }

    async fn ask_over_tls(&self, config: ClientConfig, request: &str) -> u16 {
        let socket = TcpStream::connect(self.admin.socket().unwrap()).await.unwrap();
        let mut config = config;
        config.alpn_protocols = vec![tls::HTTP1.to_vec()];
        let stream = agree(&Arc::new(config), socket).await.unwrap();
        ask(stream, request, "host: localhost\r\n").await.0
    }

    /// These are the rules from now on.
    fn govern(&self, written: &str) {
        self.rules.store(Arc::new(rules(written)));
    }

    fn ordered(&mut self) -> bool {
        self.orders.try_recv().is_ok()
    }
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str, fields: &str) -> (u16, String) {
    let head = format!("{request} HTTP/1.1\r\n{fields}content-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // A server need not say goodbye at the end of TLS.
    drop(stream.read_to_string(&mut answer).await);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// S-09: the first rule that matches decides; probes need none; who is refused is told who it is and what to do.
#[tokio::test]
async fn by_address() {
    let mut stage = Stage::start("{identities: 'ip:127.0.0.1', allow: read}, {allow: [read, change]}");
    for read in [LOOK, "GET /metrics", "GET /help", "HEAD /certs"] {
        assert_eq!(stage.status(read).await, 200, "{read}");
    }
    let refused = "ip:127.0.0.1 may not change anything here: admin.rules[0] is the first rule that matches, and does not allow it; \
                   add `change` to the `allow` of a rule with one of these in `identities`\n";
    assert_eq!(stage.ask(ORDER, "").await, (403, refused.to_owned()));
    assert!(!stage.ordered());
    for order in [
        "POST /reload",
        "POST /validate",
        "POST /healthcheck/fail",
        "PUT /clusters",
        "DELETE /ready",
    ] {
        assert_eq!(stage.status(order).await, 403, "{order}");
    }

    stage.govern("{identities: 'ip:10.*', allow: [read, change]}");
    for probe in ["GET /live", "GET /healthz", "HEAD /live"] {
        assert_eq!(stage.status(probe).await, 200, "{probe}");
    }
    assert_eq!(stage.status("GET /ready").await, 503, "not ready, and told so");
    for other in [LOOK, "GET /no/such/path", "GET /", "GET /ready/", "GET //live"] {
        assert_eq!(stage.status(other).await, 403, "{other}");
    }
    let refused = "ip:127.0.0.1 may not read anything here: no rule in `admin.rules` matches, and what no rule allows is denied; \
                   add `read` to the `allow` of a rule with one of these in `identities`\n";
    assert_eq!(stage.ask(LOOK, "").await, (403, refused.to_owned()));

    stage.govern("{identities: 'ip:127.*', allow: change}");
    assert_eq!((stage.status(LOOK).await, stage.status(ORDER).await), (403, 200));
    assert!(stage.ordered());
    // A right does not make up for a web page.
    let foreign = stage.ask(ORDER, "origin: http://evil.example\r\n").await;
    assert_eq!((foreign.0, stage.ordered()), (403, false));
}

#[tokio::test]
async fn by_unix_credentials() {
    let folder = Folder::new();
    let path = folder.path("admin.sock");
    let user = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(folder.path("")).unwrap());
    let written = format!("{{identities: 'uid:{user}', allow: [read, change]}}");
    let mut stage = Stage::start_at(&format!("unix:{}", path.display()), None, Tokens::default(), &written);
    let asked = async |request| ask(UnixStream::connect(&path).await.unwrap(), request, "host: x\r\n").await;
    assert_eq!((asked(LOOK).await.0, asked(ORDER).await.0), (200, 200));
    assert!(stage.ordered());
    stage.govern("{identities: 'ip:*', allow: [read, change]}");
    let (status, why) = asked(LOOK).await;
    assert_eq!(status, 403);
    assert!(why.starts_with(&format!("uid:{user}, gid:")), "{why}");
}

#[tokio::test]
async fn by_certificate() {
    let (authority, folder) = (Authority::new(), Folder::new());
    let tls = ServerTls::read(&authority.listener(&folder, Some(&authority)), &[tls::HTTP1]).unwrap();
    let written =
        "{identities: 'dns:operator.example', allow: [read, change]}, {identities: 'dns:*.example', allow: read}";
    let stage = Stage::start_at("127.0.0.1:0", Some(Arc::new(tls)), Tokens::default(), written);
    for (name, look, order) in [
        ("operator.example", 200, 200),
        ("scraper.example", 200, 403),
        ("edge-1", 403, 403),
    ] {
        let shown = authority.sign(name);
        let client = || authority.client(Some(&shown), &VERSIONS);
        assert_eq!(stage.ask_over_tls(client(), LOOK).await, look, "{name}");
        assert_eq!(stage.ask_over_tls(client(), ORDER).await, order, "{name}");
    }
}

/// Another relay takes what it may read. Keys and certificates need TLS, and a rule that says so.
#[tokio::test]
async fn who_takes_snapshots() {
    let (plain, secrets) = ("GET /snapshots", "GET /snapshots?secrets=true");
    let stage = Stage::start("{identities: 'ip:127.0.0.1', allow: [read, secrets]}");
    stage.health.advance(RelayStatus::Ready);
    assert_eq!(stage.status(plain).await, 200);
    let (status, why) = stage.ask(secrets, "").await;
    assert_eq!(status, 403);
    assert!(
        why.starts_with("keys and certificates are given over TLS only"),
        "{why}"
    );
    assert_eq!(stage.status("GET /snapshots?all").await, 400);
    let stage = Stage::start("{identities: 'ip:10.*', allow: read}");
    assert_eq!(stage.status(plain).await, 403);

    let (authority, folder) = (Authority::new(), Folder::new());
    let tls = || Arc::new(ServerTls::read(&authority.listener(&folder, Some(&authority)), &[tls::HTTP1]).unwrap());
    let shown = authority.sign("relay.example");
    let client = || authority.client(Some(&shown), &VERSIONS);
    for (written, given) in [
        ("{allow: [read, change]}", 403),
        ("{identities: 'dns:relay.example', allow: [read, secrets]}", 200),
        (
            "{identities: 'dns:other.example', allow: [read, secrets]}, {allow: read}",
            403,
        ),
    ] {
        let stage = Stage::start_at("127.0.0.1:0", Some(tls()), Tokens::default(), written);
        stage.health.advance(RelayStatus::Ready);
        assert_eq!(stage.ask_over_tls(client(), plain).await, 200, "{written}");
        assert_eq!(stage.ask_over_tls(client(), secrets).await, given, "{written}");
    }
    // Whoever reaches an address without rules may do everything there, except this.
    let stage = Stage::start_at("127.0.0.1:0", Some(tls()), Tokens::default(), "{allow: read}");
    stage.rules.store(Arc::default());
    assert_eq!(stage.ask_over_tls(client(), plain).await, 503, "it starts itself");
    stage.health.advance(RelayStatus::Ready);
    assert_eq!(stage.ask_over_tls(client(), plain).await, 200);
    assert_eq!(stage.ask_over_tls(client(), secrets).await, 403);
}

#[tokio::test]
async fn by_token() {
    let signer = Signer::new("one");
    let published = Published::new(&[signer.public()]);
    let written = format!(
        "{{identities: 'claim:{ISSUER}#team=operators', allow: [read, change]}}, {{identities: 'jwt:{ISSUER}#*', allow: read}}"
    );
    let tokens = published.tokens();
    tokens.name(Named::from_iter([format!("claim:{ISSUER}#team=")]));
    let stage = Stage::start_at("127.0.0.1:0", None, tokens, &written);
    let bearer = |token: &str| format!("authorization: Bearer {token}\r\n");
    for (claims, look, order) in [
        (json!({"team": "operators"}), 200, 200),
        (json!({"team": "others"}), 200, 403),
        (json!({"exp": 1}), 401, 401),
        (json!({"team": {"name": "operators"}}), 401, 401),
    ] {
        let shown = bearer(&signer.sign(&claims));
        assert_eq!(stage.ask(LOOK, &shown).await.0, look, "{claims}");
        assert_eq!(stage.ask(ORDER, &shown).await.0, order, "{claims}");
    }
    assert_eq!(stage.status(LOOK).await, 403);
    let (status, why) = stage.ask(LOOK, &bearer("x")).await;
    assert_eq!(status, 401);
    assert!(why.starts_with("the token of the request is refused: "), "{why}");
    // Probes show nothing, and need nothing.
    assert_eq!(stage.ask("GET /live", &bearer("x")).await.0, 200);
}

/// K-31: what is open ends when its visitor has lost the right to it: its token has expired, or the rules are others.
#[tokio::test]
async fn rights_end_when_they_end() {
    const CSDS: &str = "/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus";
    let signer = Signer::new("one");
    let published = Published::new(&[signer.public()]);
    let written = format!("{{identities: 'jwt:{ISSUER}#*', allow: read}}");
    let stage = Stage::start_at("127.0.0.1:0", None, published.tokens(), &written);
    let lasting = |seconds: u64| {
        let until = jsonwebtoken::get_current_timestamp() + seconds - SKEW;
        format!("Bearer {}", signer.sign(&json!({"exp": until})))
    };
    let ends = async |token: String| {
        let events = async {
            let (status, text) = stage.ask("GET /events", &format!("authorization: {token}\r\n")).await;
            assert_eq!(status, 200, "{text}");
            assert!(text.contains("event: counts"), "{text}");
        };
        let csds = async {
            let client = Client::connect(stage.admin.socket().unwrap()).await;
            let mut call = client.call_with(CSDS, &[("authorization", &token)]).await;
            call.send(&ClientStatusRequest::default());
            assert!(call.next::<ClientStatusResponse>().await.is_ok());
            call.end().await.assert(Code::PermissionDenied, false);
        };
        let both = async { tokio::join!(events, csds) };
        timeout(PATIENCE, both).await.expect("both end");
    };
    ends(lasting(8)).await;
    let other = async {
        sleep(Duration::from_secs(4)).await;
        stage.govern("{identities: 'ip:10.*', allow: read}");
    };
    tokio::join!(ends(lasting(60)), other);
    // Whoever still has the right goes on, by whichever rules.
    stage.govern("{identities: 'ip:*', allow: read}");
    let goes_on = timeout(Duration::from_secs(3), stage.ask("GET /events", "")).await;
    assert!(goes_on.is_err(), "{goes_on:?}");
}
