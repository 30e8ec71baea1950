// SPDX-License-Identifier: Apache-2.0
//! The keys of an issuer that are fetched: from a server that rotates them, hangs, and answers what it should not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use distributary::config::{Credentials, Endpoint, Issuer, JwksUri, KeySource, Supply, Tls};
use distributary::telemetry::Metrics;
use distributary::token::{FetchRhythm, KeyRenewal, TokenFault, Tokens};
use parking_lot::Mutex;
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::identity::Log;
use crate::support::certificates::{Authority, Folder};
use crate::support::{now, spawn, until};
use crate::tokens::{ISSUER, Signer};

/// What the server does with a request.
#[derive(Clone, Debug)]
enum Manner {
    /// It answers with this status, headers and body.
    Answers(u16, &'static str, Vec<u8>),
    /// It takes the request and says nothing.
    Hangs,
    /// It promises more than it sends.
    BreaksOff,
}

/// A server of keys, over HTTPS.
struct Publisher {
    port: u16,
    authority: Authority,
    folder: Folder,
    manner: Arc<Mutex<Manner>>,
    asked: Arc<AtomicUsize>,
    /// The head of the last request.
    head: Arc<Mutex<String>>,
}

/// Fast enough for a test: at most two fetches in 400 ms.
const FAST: FetchRhythm = FetchRhythm {
    every: Duration::from_secs(600),
    pair: Duration::from_millis(400),
};

fn keys(keys: &[Value]) -> Manner {
    Manner::Answers(200, "", json!({ "keys": keys }).to_string().into_bytes())
}

impl Publisher {
    async fn start(manner: Manner) -> Self {
        let (authority, folder) = (Authority::new(), Folder::new());
        let (chain, key) = authority.sign("localhost").der();
        let config = ServerConfig::builder_with_provider(distributary::tls::provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let publisher = Self {
            port: listener.local_addr().unwrap().port(),
            authority,
            folder,
            manner: Arc::new(Mutex::new(manner)),
            asked: Arc::default(),
            head: Arc::default(),
        };
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (manner, asked, head) = (
            publisher.manner.clone(),
            publisher.asked.clone(),
            publisher.head.clone(),
        );
        spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (acceptor, manner, asked, head) = (acceptor.clone(), manner.clone(), asked.clone(), head.clone());
                spawn(async move {
                    let manner = || manner.lock().clone();
                    drop(answer(socket, &acceptor, manner, &asked, &head).await);
                });
            }
        });
        publisher
    }

    fn set(&self, manner: Manner) {
        *self.manner.lock() = manner;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn issuer(&self, token: Option<&str>) -> Issuer {
        let ca = self.folder.put("ca.pem", &self.authority.pem());
        Issuer {
            name: ISSUER.to_owned(),
            audiences: vec!["relay".to_owned()],
            keys: KeySource::Uri(Box::new(JwksUri {
                uri: format!("https://localhost:{}/keys", self.port),
                endpoint: Endpoint::Tcp {
                    host: "localhost".to_owned(),
                    port: self.port,
                },
                path: "/keys".parse().unwrap(),
                credentials: Credentials::Tls(Tls {
                    authorities: Some(Supply::Files(ca)),
                    ..Tls::default()
                }),
                token_file: token.map(|token| self.folder.put("token", token)),
            })),
            skew: Duration::ZERO,
        }
    }
}

async fn answer(
    socket: TcpStream,
    acceptor: &TlsAcceptor,
    manner: impl Fn() -> Manner,
    asked: &AtomicUsize,
    head: &Mutex<String>,
) -> std::io::Result<()> {
    let mut stream = acceptor.accept(socket).await?;
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(stream.read_u8().await?);
    }
    *head.lock() = String::from_utf8_lossy(&read).into_owned();
    let manner = manner();
    asked.fetch_add(1, Ordering::SeqCst);
    match manner {
        Manner::Answers(status, headers, body) => {
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&body).await?;
            stream.shutdown().await
        }
        Manner::BreaksOff => {
            let part = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"keys\"";
            stream.write_all(part).await?;
            stream.shutdown().await
        }
        Manner::Hangs => {
            std::future::pending::<()>().await;
            Ok(())
        }
    }
}

/// Runs `story` while the keys are looked after.
async fn play(tokens: &Tokens, metrics: &Metrics, rhythm: FetchRhythm, story: impl Future<Output = ()>) {
    let mut renewal = KeyRenewal::new(tokens, metrics).with(rhythm);
    renewal.begin().await;
    tokio::select! {
        () = story => {}
        () = renewal.run(std::future::pending) => {}
    }
}

/// An unknown key is fetched at once, by the token that the relay has for it; strangers make no more than two fetches in the time of a
/// pair.
#[tokio::test]
async fn keys_rotate() {
    let (one, two) = (Signer::new("one"), Signer::new("two"));
    let publisher = Publisher::start(keys(&[one.public()])).await;
    let tokens = Tokens::read(&[publisher.issuer(Some("own-token\n"))]).unwrap();
    let metrics = Metrics::new([]);
    let fault = |signer: &Signer| tokens.check(&signer.sign(&json!({}))).err();
    assert_eq!(fault(&one), Some(TokenFault::NoKeys));
    let story = async {
        assert_eq!(fault(&one), None, "the first keys come before clients");
        let head = publisher.head.lock().to_lowercase();
        assert!(head.starts_with("get /keys http/1.1\r\n"), "{head}");
        assert!(head.contains("authorization: bearer own-token\r\n"), "{head}");
        publisher.set(keys(&[one.public(), two.public()]));
        until(|| fault(&two).is_none(), || "the new key is not known").await;
        publisher.set(keys(&[two.public()]));
        assert_eq!(fault(&one), None, "nobody has asked for another key");
        let strangers = ["x", "y"].map(Signer::new);
        let (begun, before) = (now(), publisher.asked());
        let fetched = || {
            let unknown = |stranger| fault(stranger) == Some(TokenFault::Key);
            assert!(strangers.iter().all(unknown));
            publisher.asked() >= before + 4
        };
        until(fetched, || "the keys are not fetched").await;
        assert!(begun.elapsed() >= FAST.pair, "four fetches in {:?}", begun.elapsed());
        until(|| fault(&one) == Some(TokenFault::Key), || "it is known").await;
        let shown = metrics.encode().unwrap();
        let never = format!("jwks_fetched_timestamp_seconds{{issuer=\"{ISSUER}\"}} 0\n");
        assert!(!shown.contains(&never), "{shown}");
        assert!(shown.contains("tokens_total{result=\"no_keys\"} 0"), "{shown}");
    };
    play(&tokens, &metrics, FAST, story).await;
}

/// Whatever the server does, the last good keys stay, there is one line for each kind of fault, and `faults` has it until it is good.
#[tokio::test]
async fn the_last_good_keys_stay() {
    let (one, two) = (Signer::new("one"), Signer::new("two"));
    let publisher = Publisher::start(keys(&[one.public()])).await;
    let tokens = Tokens::read(&[publisher.issuer(None)]).unwrap();
    let metrics = Metrics::new([]);
    let (log, _guard) = Log::begin();
    let good = |signer: &Signer| tokens.check(&signer.sign(&json!({}))).is_ok();
    let place = format!("https://localhost:{}/keys: ", publisher.port);
    let mut private = one.public();
    private["d"] = "c2VjcmV0".into();
    let mut twin = two.public();
    twin["kid"] = "one".into();
    let set = |keys: Value| json!({ "keys": keys }).to_string().into_bytes();
    let answers = |status, headers, body: &[u8]| Manner::Answers(status, headers, body.to_vec());
    let story = async {
        #[rustfmt::skip]
        let rows = [
            (answers(500, "", b"oh"), "it answers 500"),
            (answers(200, "", b"<html>"), "it is not JSON: expected value at line 1 column 1"),
            (answers(200, "", b"{}"), "it is not a JWK set: `keys` is missing, or no list"),
            (Manner::BreaksOff, "its answer breaks off: "),
            (answers(200, "", &vec![b' '; 2 << 20]), "its answer has more than 1048576 bytes"),
            (answers(302, "location: https://localhost:1/keys\r\n", b""),
                "it leads elsewhere (302 to `https://localhost:1/keys`), and that is not followed"),
            (answers(200, "content-encoding: gzip\r\n", b"x"), "its answer has a content encoding"),
            (Manner::Answers(200, "", set(json!([two.public(), private]))),
                "keys[1] has its private part (`d`): replace this key, and publish public keys alone"),
            (Manner::Answers(200, "", set(json!([one.public(), twin]))), "two of its keys have the `kid` `one`"),
        ];
        for (manner, why) in rows {
            publisher.set(manner);
            let shown = || metrics.faults.all().join("\n");
            let expected =
                format!("issuer {ISSUER}: the keys for tokens cannot be used; keeping those from before: {place}{why}");
            let told = || {
                assert!(!good(&two) && good(&one));
                shown().starts_with(&expected)
            };
            until(told, || format!("{expected}\n{}", shown())).await;
            assert_eq!(log.errors().len(), 1, "{why}");
        }
        publisher.set(keys(&[two.public()]));
        until(|| good(&two), || "the keys are not fetched again").await;
        assert!(metrics.faults.all().is_empty());
    };
    play(&tokens, &metrics, FAST, story).await;
}

/// A start without keys refuses tokens, and says why; a server that hangs holds up neither the start nor another issuer.
#[tokio::test]
async fn a_server_that_hangs() {
    let (one, other) = (Signer::new("one"), Signer::new("other"));
    let hanging = Publisher::start(Manner::Hangs).await;
    let quick = Publisher::start(keys(&[other.public()])).await;
    let quick_issuer = Issuer {
        name: "https://other.example.com".to_owned(),
        ..quick.issuer(None)
    };
    let tokens = Tokens::read(&[hanging.issuer(None), quick_issuer]).unwrap();
    let metrics = Metrics::new([]);
    let story = async {
        let fault = || tokens.check(&one.sign(&json!({}))).unwrap_err();
        assert_eq!(fault(), TokenFault::NoKeys);
        let words = "the relay could not fetch the keys of its issuer yet";
        assert_eq!(fault().to_string(), words);
        let of_other = other.sign(&json!({"iss": "https://other.example.com"}));
        assert!(tokens.check(&of_other).is_ok());
        let shown = || metrics.faults.all().join("\n");
        until(|| shown().contains("it has not answered within 10s"), shown).await;
        hanging.set(keys(&[one.public()]));
        until(|| tokens.check(&one.sign(&json!({}))).is_ok(), shown).await;
    };
    play(&tokens, &metrics, FAST, story).await;
}

/// A certificate that nobody vouches for is not believed.
#[tokio::test]
async fn a_server_that_is_somebody_else() {
    let one = Signer::new("one");
    let publisher = Publisher::start(keys(&[one.public()])).await;
    let issuer = publisher.issuer(None);
    publisher.folder.put("ca.pem", &Authority::new().pem());
    let tokens = Tokens::read(&[issuer]).unwrap();
    let metrics = Metrics::new([]);
    let story = async {
        assert_eq!(publisher.asked(), 0);
        assert_eq!(tokens.check(&one.sign(&json!({}))), Err(TokenFault::NoKeys));
        let faults = metrics.faults.all();
        assert!(faults[0].contains("localhost"), "{faults:?}");
    };
    play(&tokens, &metrics, FAST, story).await;
}
