// SPDX-License-Identifier: Apache-2.0
//! Tokens (JWT) in the metadata of calls: which are good, what they say, and what a bad one costs: the call, and no other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use distributary::config::{Issuer, KeySource};
use distributary::identity::Named;
use distributary::proto::envoy::service::discovery::v3::DiscoveryResponse;
use distributary::telemetry::Metrics;
use distributary::token::{KeyRenewal, Tokens};
use distributary::wire::message;
use distributary::xds::{Access, Dialect};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use prost::Message as _;
use rcgen::KeyPair;
use serde_json::{Value, json};
use tonic::Code;

use crate::identity::Log;
use crate::support::certificates::Folder;
use crate::support::client::{Call, Client, Half};
use crate::support::messages::Subscriber;
use crate::support::{CDS, Relay, config, of_node, path, says, until, wants, wants_sotw};

pub(crate) const ISSUER: &str = "https://issuer.example.com";
const ADS: &str = path(Dialect::Delta);
const GRPC: (&str, &str) = ("content-type", "application/grpc");
pub(crate) const SKEW: u64 = 10;

/// Somebody who issues tokens, with one key.
pub(crate) struct Signer {
    key: EncodingKey,
    id: &'static str,
}

impl Signer {
    pub(crate) fn new(id: &'static str) -> Self {
        let key = KeyPair::generate().unwrap();
        Self {
            key: EncodingKey::from_ec_der(&key.serialize_der()),
            id,
        }
    }

    /// The public key, as in a JWKS file.
    pub(crate) fn public(&self) -> Value {
        let mut key = Jwk::from_encoding_key(&self.key, Algorithm::ES256).unwrap();
        key.common.key_id = Some(self.id.to_owned());
        serde_json::to_value(key).unwrap()
    }

    /// A token with the usual claims and these; null takes a claim away.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_as(claims, |_| ())
    }

    fn sign_as(&self, claims: &Value, change: impl FnOnce(&mut Header)) -> String {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(self.id.to_owned());
        change(&mut header);
        encode(&header, &with(claims), &self.key).unwrap()
    }
}

/// The usual claims, with these in their places.
fn with(claims: &Value) -> Value {
    let mut all = json!({"iss": ISSUER, "aud": "relay", "sub": "edge-1", "exp": get_current_timestamp() + 60});
    for (name, value) in claims.as_object().unwrap() {
        all[name] = value.clone();
        if value.is_null() {
            drop(all.as_object_mut().unwrap().remove(name));
        }
    }
    all
}

/// The keys of an issuer in a file.
pub(crate) struct Published {
    folder: Folder,
    pub(crate) file: PathBuf,
}

impl Published {
    pub(crate) fn new(keys: &[Value]) -> Self {
        let folder = Folder::new();
        let file = folder.put("jwks.json", &json!({ "keys": keys }).to_string());
        Self { folder, file }
    }

    fn put(&self, text: &str) {
        // As a rotation does it, so that nobody reads half a file.
        let new = self.folder.put("new", text);
        std::fs::rename(new, &self.file).unwrap();
    }

    fn issuer(&self) -> Issuer {
        Issuer {
            name: ISSUER.to_owned(),
            audiences: vec!["relay".to_owned(), "other".to_owned()],
            keys: KeySource::File(self.file.clone()),
            skew: Duration::from_secs(SKEW),
        }
    }

    pub(crate) fn tokens(&self) -> Tokens {
        Tokens::read(&[self.issuer()]).unwrap()
    }

    fn relay(&self) -> Relay {
        let relay = Relay::with(|plan| plan.tokens = self.tokens());
        relay.put(CDS, &["a"], "body");
        relay
    }
}

async fn call(client: &Client, token: &str) -> Call {
    client
        .call_with(ADS, &[("authorization", &format!("Bearer {token}"))])
        .await
}

/// A stream that is not served.
async fn denied(client: &Client, token: &str) {
    let mut subscriber = Subscriber::new(call(client, token).await, Dialect::Delta, CDS);
    subscriber.subscribe(&["a"]);
    says(&subscriber.call.end().await, Code::PermissionDenied, "");
}

/// How many tokens had these results.
fn counted(relay: &Relay, results: &[(&str, u32)]) {
    for (result, count) in results {
        relay.shows(&format!("tokens_total{{result=\"{result}\"}} {count}"));
    }
}

async fn served(call: Call) -> Subscriber {
    let mut subscriber = Subscriber::new(call, Dialect::Delta, CDS);
    subscriber.subscribe(&["a"]);
    assert_eq!(subscriber.take().await.bodies, ["body"]);
    subscriber
}

/// Returns why a call with this token ends.
async fn refused(client: &Client, token: &str) -> String {
    let mut call = call(client, token).await;
    let ended = call.end().await;
    assert_eq!(ended.code, Code::Unauthenticated as i32, "{ended:?}");
    let message = ended.message.strip_prefix("the token of the call is refused: ");
    message.unwrap_or_else(|| panic!("{ended:?}")).to_owned()
}

#[tokio::test]
async fn good_tokens() {
    let (log, _guard) = Log::begin();
    let signer = Signer::new("one");
    let relay = Published::new(&[signer.public()]).relay();
    relay
        .shared
        .tokens
        .name(Named::from_iter(["claim:https://issuer.example.com#"]));
    let client = relay.connect().await;
    let edge = format!("ip:127.0.0.1, jwt:{ISSUER}#edge-1");
    let late = get_current_timestamp() - SKEW / 2;
    let early = get_current_timestamp() + SKEW / 2;
    let claims = json!({"team": "blue", "groups": ["a", "b", 3], "admin": true, "a=b": "c", "jti": "x"});
    for (token, identity) in [
        (signer.sign(&json!({})), edge.clone()),
        (signer.sign(&json!({"aud": ["x", "other"]})), edge.clone()),
        (signer.sign(&json!({"exp": late})), edge.clone()),
        (signer.sign(&json!({"nbf": early})), edge.clone()),
        (signer.sign_as(&json!({}), |header| header.kid = None), edge.clone()),
        (
            signer.sign(&claims),
            format!(
                "{edge}, claim:{ISSUER}#admin=true, claim:{ISSUER}#groups=a, claim:{ISSUER}#groups=b, claim:{ISSUER}#groups=3, \
                 claim:{ISSUER}#team=blue"
            ),
        ),
    ] {
        served(call(&client, &token).await).await;
        assert_eq!(log.identities(), [identity]);
    }
    for headers in [&[][..], &[("authorization", "Basic eDp5")]] {
        served(client.call_with(ADS, headers).await).await;
        assert_eq!(log.identities(), ["ip:127.0.0.1"]);
    }
}

/// Rules that deny whoever is suspended, and allow all others.
fn unless_suspended() -> Arc<Access> {
    let no = format!("{{name: no, identities: 'claim:{ISSUER}#suspended=yes', action: deny}}");
    config(&format!("rules: [{no}, {{name: others}}]\nsecrets: allow\n")).access
}

/// S-11: a rule sees the claim that it names, however many others there are; what it could not see, the client is refused for.
#[tokio::test]
async fn a_rule_sees_what_it_names() {
    let signer = Signer::new("one");
    let tokens = Published::new(&[signer.public()]).tokens();
    tokens.name(Named::from_iter([
        "claim:https://issuer.example.com#suspended=",
        "claim:https://issuer.example.com#o/m=",
    ]));
    let relay = Relay::with(|plan| {
        plan.tokens = tokens;
        plan.protocol.access = unless_suspended();
    });
    relay.put(CDS, &["a"], "body");
    let client = relay.connect().await;
    let mut many: Value = (0..40).map(|n| (format!("a{n}"), "x")).collect();
    // As many as fit into a head of 16 KiB.
    many["groups"] = (0..1_400).map(|n| n.to_string()).collect();
    served(call(&client, &signer.sign(&many)).await).await;
    many["suspended"] = "yes".into();
    denied(&client, &signer.sign(&many)).await;
    #[rustfmt::skip]
    let rows = [
        (json!({"suspended": {"since": 1}}), "its claim `suspended` cannot be read whole: it has an object"),
        (json!({"suspended": "yes\n"}), "its claim `suspended` cannot be read whole: it has a control character"),
        (json!({"o": {"m": 1}, "o/m": 2}), "its claim `o/m` is there more than once: as one name, and as a path"),
        (json!({"sub": "a\nuid:0"}), "its claim `sub` cannot be read whole: it has a control character"),
        (json!({"sub": "x".repeat(3_000)}), "its claim `sub` cannot be read whole: it is too long"),
    ];
    for (claims, why) in rows {
        let said = refused(&client, &signer.sign(&claims)).await;
        assert!(said.starts_with(why), "{said}");
    }
    counted(&relay, &[("unreadable", 4), ("ambiguous", 1)]);
}

/// S-11, S-07: a rule that is new, and names a claim that was not read from the token of an open stream, ends that stream; other streams
/// go on.
#[tokio::test]
async fn a_new_rule_names_more_than_was_read() {
    let signer = Signer::new("one");
    let relay = Published::new(&[signer.public()]).relay();
    let client = relay.connect().await;
    let suspended = signer.sign(&json!({"suspended": "yes"}));
    let mut with = served(call(&client, &suspended).await).await;
    let mut without = served(client.call_with(ADS, &[]).await).await;
    let named = Named::from_iter(["claim:https://issuer.example.com#suspended="]);
    relay.shared.tokens.name(named);
    relay.allow(unless_suspended());
    says(&with.call.end().await, Code::Unavailable, "come again");
    denied(&client, &suspended).await;
    relay.put(CDS, &["a"], "new");
    assert_eq!(without.take().await.bodies, ["new"]);
}

const KEY: &str = "the relay knows no key of its issuer with its `kid` and algorithm";
const FORM: &str = "it is not a signed JWT with an algorithm that the relay knows";
const SIGNATURE: &str = "its signature is wrong";

/// A token ends its own call if its issuer did not sign it; other calls of the connection go on.
#[tokio::test]
async fn tokens_of_others() {
    let (signer, stranger) = (Signer::new("one"), Signer::new("one"));
    let relay = Published::new(&[signer.public()]).relay();
    let client = relay.connect().await;
    let first = served(call(&client, &signer.sign(&json!({}))).await).await;
    let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = part(with(&json!({})));
    let unsigned = |alg: &str| format!("{}.{claims}.", part(json!({"alg": alg, "kid": "one"})));
    // The public key is known to all, so it must not be taken for a secret.
    let secret = EncodingKey::from_secret(signer.public()["x"].as_str().unwrap().as_bytes()).unwrap();
    let mut symmetric = Header::new(Algorithm::HS256);
    symmetric.kid = Some("one".to_owned());
    let other_key = |header: &mut Header| header.kid = Some("two".to_owned());
    let critical = |header: &mut Header| header.crit = Some(vec!["b64".to_owned()]);
    for (token, why) in [
        (String::new(), FORM),
        ("a.b.c".to_owned(), FORM),
        ("é".to_owned(), FORM),
        (unsigned("none"), FORM),
        (unsigned("None"), FORM),
        (unsigned("ES256"), SIGNATURE),
        (encode(&symmetric, &with(&json!({})), &secret).unwrap(), KEY),
        (stranger.sign(&json!({})), SIGNATURE),
        (signer.sign_as(&json!({}), other_key), KEY),
        (signer.sign_as(&json!({}), critical), FORM),
    ] {
        assert_eq!(refused(&client, &token).await, why, "{token}");
    }
    let one = format!("Bearer {}", signer.sign(&json!({})));
    let twice = [("authorization", &*one), ("authorization", &*one)];
    let mut two = client.call_with(ADS, &twice).await;
    assert_eq!(two.end().await.code, Code::Unauthenticated as i32);
    counted(&relay, &[("good", 1), ("signature", 2), ("key", 2), ("several", 1)]);
    assert_eq!(relay.open().0, 1, "the good stream goes on");
    drop(first);
}

/// A token of a known issuer is refused if it is for others, for another time, or says too little.
#[tokio::test]
async fn unfit_tokens() {
    let signer = Signer::new("one");
    let relay = Published::new(&[signer.public()]).relay();
    let client = relay.connect().await;
    let now = get_current_timestamp();
    for (claims, why) in [
        (
            json!({"iss": "https://x"}),
            "the relay does not know its issuer `https://x`",
        ),
        (json!({"iss": [ISSUER, "x"]}), "its claim `iss` is missing or malformed"),
        (json!({"aud": "they"}), "it is not for this relay's audience"),
        (json!({"aud": null}), "its claim `aud` is missing or malformed"),
        (json!({"sub": null}), "its claim `sub` is missing or malformed"),
        (json!({"sub": ""}), "its claim `sub` is missing or malformed"),
        (json!({"exp": null}), "its claim `exp` is missing or malformed"),
        (json!({"exp": "soon"}), "its claim `exp` is missing or malformed"),
        (json!({"exp": now - 2 * SKEW}), "it has expired"),
        (json!({"exp": -1}), "its claim `exp` is missing or malformed"),
        (json!({"nbf": "soon"}), "its claim `nbf` is missing or malformed"),
        (json!({"nbf": now + 2 * SKEW}), "it is not valid yet"),
    ] {
        let said = refused(&client, &signer.sign(&claims)).await;
        assert_eq!(said, why, "{claims}");
    }
}

/// Polls and unary calls with a bad token are refused too.
#[tokio::test]
async fn other_calls_with_tokens() {
    let signer = Signer::new("one");
    let relay = Published::new(&[signer.public()]).relay();
    crate::rest::put(&relay, CDS, &["a"], 1);
    let client = relay.connect().await;
    for (token, status, code) in [
        (signer.sign(&json!({})), 200, Code::Ok),
        ("bad".to_owned(), 401, Code::Unauthenticated),
    ] {
        let token = format!("Bearer {token}");
        let poll = crate::rest::poll(&client, &[("authorization", &*token)]).await;
        assert_eq!(poll.head.status(), status);
        let challenge = poll.head.headers().get("www-authenticate");
        let challenge = challenge.map(|value| value.as_bytes());
        assert_eq!(challenge, (status == 401).then_some(&b"Bearer"[..]));
        let path = "/envoy.service.cluster.v3.ClusterDiscoveryService/FetchClusters";
        let asked = message(&wants_sotw("", &["a"]).encode_to_vec());
        let headers = [GRPC, ("te", "trailers"), ("authorization", &*token)];
        let unary = client.request("POST", path, &headers, Half::Unary(asked));
        let mut unary = unary.await.unwrap();
        let answered = unary.next::<DiscoveryResponse>().await;
        assert_eq!(answered.map_or_else(|ended| ended.code, |_| 0), code as i32);
    }
}

/// The line about a refused token says who the client says it is: in the first request of a stream, or in the only one. A client
/// that says nothing is refused all the same. Later ones have no line and are not waited for.
#[tokio::test]
async fn the_line_about_a_refused_token() {
    let (log, _guard) = Log::begin();
    let signer = Signer::new("one");
    let relay = Published::new(&[signer.public()]).relay();
    let client = relay.connect().await;
    let [expired, early, others] = [
        json!({"exp": get_current_timestamp() - 2 * SKEW}),
        json!({"nbf": get_current_timestamp() + 2 * SKEW}),
        json!({"aud": "they"}),
    ];
    let token = format!("Bearer {}", signer.sign(&expired));
    let headers = [GRPC, ("te", "trailers"), ("authorization", &*token)];
    let asked = of_node("edge-7", "", wants(CDS, &[]));
    let half = Half::Unary(message(&asked.encode_to_vec()));
    let mut stream = client.request("POST", ADS, &headers, half).await.unwrap();
    assert_eq!(stream.end().await.code, Code::Unauthenticated as i32);
    assert_eq!(log.nodes(), ["\"edge-7\""]);

    let token = format!("Bearer {}", signer.sign(&early));
    let headers = [("content-type", "application/json"), ("authorization", &*token)];
    let body = json!({"node": {"id": "edge-8"}, "resource_names": ["a"]}).to_string();
    let poll = client.request("POST", crate::rest::CLUSTERS, &headers, Half::Unary(body.into()));
    assert_eq!(poll.await.unwrap().head.status(), 401);
    assert_eq!(log.nodes(), ["\"edge-8\""]);

    refused(&client, &signer.sign(&others)).await;
    assert_eq!(log.nodes(), ["\"\""]);
    refused(&client, &signer.sign(&others)).await;
    assert_eq!(log.nodes(), [""; 0]);
}

/// K-31: a token that expires in mid-stream ends nothing; the next stream needs a new one.
#[tokio::test]
async fn a_token_expires_in_mid_stream() {
    let signer = Signer::new("one");
    let relay = Published::new(&[signer.public()]).relay();
    let client = relay.connect().await;
    let token = signer.sign(&json!({"exp": get_current_timestamp() - SKEW + 4}));
    let mut stream = served(call(&client, &token).await).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(refused(&client, &token).await, "it has expired");
    relay.put(CDS, &["a"], "new");
    assert_eq!(stream.take().await.bodies, ["new"]);
}

/// The file is read again when it changes. A bad one changes nothing; an empty set refuses every token.
#[tokio::test]
async fn keys_are_read_again() {
    let (one, two) = (Signer::new("one"), Signer::new("two"));
    let published = Published::new(&[one.public()]);
    let (tokens, metrics) = (published.tokens(), Metrics::new([]));
    let good = |signer: &Signer| tokens.check(&signer.sign(&json!({}))).is_ok();
    let (log, _guard) = Log::begin();
    let told = async {
        assert!(good(&one) && !good(&two));
        published.put(&json!({"keys": [two.public()]}).to_string());
        until(|| good(&two), || "the new key is not known").await;
        assert!(!good(&one), "the old key is still known");
        published.put("{\"keys\": [");
        until(|| !log.errors().is_empty(), || "no word of a bad file").await;
        assert!(good(&two), "a bad file takes nothing away");
        let shown = || metrics.faults.all().join("\n");
        let words = format!("issuer {ISSUER}: the keys for tokens cannot be used; keeping those from before: ");
        until(|| shown().starts_with(&words), shown).await;
        let mut unfit = two.public();
        unfit["use"] = "enc".into();
        let odd = json!({"kty": "EC", "crv": "secp256k1", "kid": "two"});
        let secret = json!({"kty": "oct", "k": "c2VjcmV0", "kid": "two", "alg": "HS256"});
        published.put(&json!({"keys": [odd, secret, unfit, 7, one.public()]}).to_string());
        until(|| good(&one), || "the first key is not known again").await;
        assert!(!good(&two));
        until(|| shown().is_empty(), shown).await;
        published.put("{\"keys\": []}");
        until(|| !good(&one), || "the key is still known").await;
        until(|| !log.warnings().is_empty(), || "no warning").await;
    };
    tokio::select! {
        () = told => {}
        () = KeyRenewal::new(&tokens, &metrics).run(std::future::pending) => {}
    }
}

/// Other issuers count for new calls, and their files are followed. One whose file is bad has no keys until it is good.
#[tokio::test]
async fn other_issuers() {
    let (one, two) = (Signer::new("one"), Signer::new("two"));
    let (of_one, of_two) = (Published::new(&[one.public()]), Published::new(&[two.public()]));
    let relay = of_one.relay();
    let tokens = &relay.shared.tokens;
    let client = relay.connect().await;
    let good = |signer: &Signer| tokens.check(&signer.sign(&json!({}))).is_ok();
    let metrics = Metrics::new([]);
    let told = async {
        let mut stream = served(call(&client, &one.sign(&json!({}))).await).await;
        tokens.set(&[of_two.issuer()]);
        drop(served(call(&client, &two.sign(&json!({}))).await).await);
        assert_eq!(refused(&client, &one.sign(&json!({}))).await, KEY);
        relay.put(CDS, &["a"], "new");
        assert_eq!(stream.take().await.bodies, ["new"], "an open stream goes on");

        of_two.put(&json!({"keys": [one.public()]}).to_string());
        until(|| good(&one) && !good(&two), || "the file is not followed").await;
        of_one.put("{");
        tokens.set(&[of_one.issuer()]);
        assert!(!good(&one) && !good(&two));
        of_one.put(&json!({"keys": [two.public()]}).to_string());
        until(|| good(&two), || "the file is not followed").await;
        relay.put(CDS, &["a"], "body");
        tokens.set(&[]);
        let none = vec![("authorization", "Bearer x")];
        drop(served(client.call_with(ADS, &none).await).await);
    };
    tokio::select! {
        () = told => {}
        () = KeyRenewal::new(tokens, &metrics).run(std::future::pending) => {}
    }
}

#[test]
fn files_without_a_set_of_keys() {
    let published = Published::new(&[]);
    let large = " ".repeat((1 << 20) + 1);
    let issuer = |jwks_file: &str| Issuer {
        name: ISSUER.to_owned(),
        audiences: Vec::new(),
        keys: KeySource::File(jwks_file.into()),
        skew: Duration::ZERO,
    };
    let fault = |path: &str| Tokens::read(&[issuer(path)]).unwrap_err().to_string();
    for (text, why) in [
        ("", "it is not JSON: EOF while parsing a value at line 1 column 0"),
        ("{}", "it is not a JWK set: `keys` is missing, or no list"),
        ("[]", "it is not a JWK set: `keys` is missing, or no list"),
        ("{\"keys\": {}}", "it is not a JWK set: `keys` is missing, or no list"),
        (&large, "cannot be read: it has more than 1048576 bytes"),
    ] {
        published.put(text);
        let file = published.file.to_str().unwrap();
        assert_eq!(fault(file), format!("{file}: {why}"));
    }
    assert!(fault("/no/such/file").starts_with("/no/such/file: cannot be read"));
}
