// SPDX-License-Identifier: Apache-2.0
//! The page of the manual about control planes that do not authenticate: its configurations and its commands do what it says.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_RSA_SHA256, RsaKeySize, SanType,
};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::{Relay, address_in, file, has, output, prints, program};
use crate::get::Outcome;

const PAGE: &str = include_str!("../../config/unauthenticated.md");
const CLUSTERS: &str = r#"
resources:
- { "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a/web }
- { "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: b/web }
"#;
const SECRETS: &str = r#"
- { "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: a/key, generic_secret: { secret: { inline_string: s } } }
- { "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: b/key, generic_secret: { secret: { inline_string: s } } }
"#;

/// The block of the page that begins with this comment.
fn block(name: &str) -> &'static str {
    let (_, after) = PAGE.split_once(&format!("```yaml\n# {name}\n")).unwrap();
    after.split_once("```").unwrap().0
}

/// The commands of the page, without the name of the program.
fn commands() -> Vec<Vec<&'static str>> {
    let lines = PAGE.lines().filter_map(|line| line.strip_prefix("$ distributary "));
    lines.map(|line| line.split_whitespace().collect()).collect()
}

/// Who signs certificates, and who signs tokens.
struct World {
    name: &'static str,
    authority: CertifiedIssuer<'static, KeyPair>,
    signer: EncodingKey,
    algorithm: Algorithm,
}

impl World {
    fn new(name: &'static str, algorithm: Algorithm) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let signer = if algorithm == Algorithm::RS256 {
            let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
            // Without what says that it is of RSA.
            EncodingKey::from_rsa_der(key.serialize_der().split_at(26).1)
        } else {
            EncodingKey::from_ec_der(&KeyPair::generate().unwrap().serialize_der())
        };
        Self {
            name,
            authority: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap(),
            signer,
            algorithm,
        }
    }

    fn file(&self, name: &str, text: &str) -> String {
        file(&format!("doors-{}-{name}", self.name), text).display().to_string()
    }

    fn certificate(&self, name: &str, uri: Option<&str>) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        let uri = uri.map(|uri| SanType::URI(uri.try_into().unwrap()));
        params.subject_alt_names.extend(uri);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.authority).unwrap(), key)
    }

    /// Writes a certificate and its key.
    fn pair(&self, name: &str, uri: Option<&str>) -> [String; 2] {
        let (certificate, key) = self.certificate("127.0.0.1", uri);
        [
            self.file(&format!("{name}.pem"), &certificate.pem()),
            self.file(&format!("{name}.key"), &key.serialize_pem()),
        ]
    }

    /// A token for an hour with these claims beside the usual ones, in which the audience is a list, as both issuers write it.
    fn token(&self, issuer: &str, claims: Value) -> String {
        let now = get_current_timestamp();
        let mut all = json!({"iss": issuer, "aud": ["distributary"], "iat": now, "exp": now + 3600});
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        let mut header = Header::new(self.algorithm);
        header.kid = Some("one".to_owned());
        encode(&header, &all, &self.signer).unwrap()
    }

    /// Publishes the keys over HTTPS, for whoever shows this token. Returns the address.
    fn publish(&self, token: Option<&'static str>) -> String {
        let (certificate, key) = self.certificate("127.0.0.1", None);
        let config = ServerConfig::builder_with_provider(distributary::tls::provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.serialize_der().try_into().unwrap())
            .unwrap();
        let mut public = Jwk::from_encoding_key(&self.signer, self.algorithm).unwrap();
        public.common.key_id = Some("one".to_owned());
        let body = json!({ "keys": [public] }).to_string();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let config = Arc::new(config);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), socket);
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                    head.extend(byte);
                }
                let head = String::from_utf8_lossy(&head).to_lowercase();
                let known = token.is_none_or(|token| head.contains(&format!("authorization: bearer {token}\r\n")));
                let status = if known { "200 OK" } else { "401 Unauthorized" };
                let length = body.len();
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}");
                drop(write!(stream, "{head}\r\n\r\n{body}"));
                stream.conn.send_close_notify();
                drop(stream.flush());
            }
        });
        address
    }

    /// Starts a relay as the page configures it, with the places of this machine. Returns it with its port.
    fn serve(&self, page: &str, places: &[(&str, String)]) -> (Relay, String) {
        let [certificate, key] = self.pair("relay", None);
        let secrets = if page.contains("types: sds") { SECRETS } else { "" };
        let resources = self.file("resources.yaml", &format!("{CLUSTERS}{secrets}"));
        let own = [
            ("0.0.0.0:15010", "127.0.0.1:0".to_owned()),
            ("/etc/distributary/relay.pem", certificate),
            ("/etc/distributary/relay.key", key),
            ("/etc/distributary/clients.pem", self.ca()),
            ("control-plane.xds.svc:18000", format!("file://{resources}")),
            ("unix:/run/control-plane/xds.sock", format!("file://{resources}")),
        ];
        let mut text = format!("admin: {{ address: 127.0.0.1:0 }}\n{page}");
        for (written, here) in places.iter().chain(&own) {
            text = text.replace(written, here);
        }
        let config = self.file("relay.yaml", &text);
        assert_eq!(prints(&["validate", &config]), "OK\n");
        let relay = Relay::start(program(&["serve", "--config", &config]));
        let address = address_in(&relay.line("listening for clients"));
        (relay, address)
    }

    fn ca(&self) -> String {
        self.file("ca.pem", &self.authority.pem())
    }

    /// Asks a relay for resources as a client of this cluster.
    fn get(&self, relay: &str, cluster: &str, more: &[&str]) -> Outcome {
        let (server, ca) = (format!("https://{relay}"), self.ca());
        let asked = ["get", "--server", &server, "--ca", &ca, "--node-cluster", cluster];
        output(&[&asked[..], &["-o", "name", "--timeout", "30s"], more].concat())
    }
}

/// Nothing was given, for this reason.
#[track_caller]
fn refused(said: &Outcome, words: &str) {
    assert_eq!((said.0, said.1.as_str()), (Some(1), ""), "{said:?}");
    has(&said.2, words);
}

/// The commands of the page, against the configuration of the page.
#[test]
fn service_accounts_of_kubernetes() {
    let world = World::new("kubernetes", Algorithm::RS256);
    let issuer = "https://kubernetes.default.svc.cluster.local";
    let keys = world.publish(Some("own-token"));
    let own_token = world.file("own-token", "own-token\n");
    // As Kubernetes 1.31 writes a bound token.
    let now = get_current_timestamp();
    let account = |name: &str| {
        json!({
            "jti": "8d3ae2a4-8c2f-4c1d-9a77-6f0f5b1f9c11",
            "kubernetes.io": {
                "namespace": "a",
                "node": {"name": "node-1", "uid": "5f0f7c9e-3c63-4a43-8e5c-3f8d52d7d0c5"},
                "pod": {"name": "web-7c5ddbdf54-x2x8l", "uid": "a3f0c1fe-98e6-4b1f-8ea1-2f1d5d4b61f2"},
                "serviceaccount": {"name": name, "uid": "2ad7e2b0-61b2-4f93-8e0d-7a1d1b4c8f40"},
                "warnafter": now + 3607,
            },
            "nbf": now,
            "sub": format!("system:serviceaccount:a:{name}"),
        })
    };
    let token = world.file("token", &world.token(issuer, account("web")));
    let suspended = world.file("suspended", &world.token(issuer, account("suspended")));
    let secrets = block("secrets");
    let page = block("kubernetes").replace("upstream:\n", &format!("{}upstream:\n", secrets));
    let places = [
        (
            "https://kubernetes.default.svc/openid",
            format!("https://{keys}/openid"),
        ),
        ("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", world.ca()),
        ("/var/run/secrets/kubernetes.io/serviceaccount/token", own_token),
    ];
    let (_relay, address) = world.serve(&page, &places);
    let ca = world.ca();
    let here = |word: &&'static str| match *word {
        "https://relay:15010" => format!("https://{address}"),
        "ca.pem" => ca.clone(),
        // Other tests may run beside this one.
        "5s" => "30s".to_owned(),
        "token" => token.clone(),
        other => other.to_owned(),
    };
    let run = |command: Vec<&'static str>| {
        let args: Vec<String> = command.iter().map(here).collect();
        output(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let ran: Vec<_> = commands().into_iter().map(run).collect();
    let [without, own, of_others, claimed] = &ran[..] else {
        panic!("{ran:?}")
    };
    refused(without, "require: identity");
    assert_eq!((own.0, own.1.as_str()), (Some(0), "a/web\n"), "{own:?}");
    refused(of_others, "");
    refused(claimed, "no rule of the relay admits");

    let with = |token: &str, more: &[&str]| world.get(&address, "a-edge", &[&["--token-file", token], more].concat());
    assert_eq!(with(&token, &["sds", "a/key"]).1, "a/key\n");
    refused(&with(&token, &["sds", "b/key"]), "");
    refused(&with(&suspended, &["cds"]), "rule `suspended`");
}

#[test]
fn tokens_of_spire() {
    let world = World::new("spire", Algorithm::ES256);
    let issuer = "https://oidc-discovery.example.org";
    let keys = world.publish(None);
    let id = |ns: &str| json!({ "sub": format!("spiffe://example.org/ns/{ns}/sa/web") });
    let [a, c] = ["a", "c"].map(|ns| world.file(ns, &world.token(issuer, id(ns))));
    let authority = format!("{keys}/keys\n    ca_certificate_file: {}", world.ca());
    let (_relay, address) = world.serve(block("spire"), &[("oidc-discovery.example.org/keys", authority)]);
    let get = |what: &[&str], token| world.get(&address, "a-edge", &[what, &["--token-file", token]].concat());
    assert_eq!(get(&["cds"], &a).1, "a/web\n");
    refused(&get(&["cds"], &c), "");
    refused(&get(&["sds", "a/key"], &a), "");
}

#[test]
fn clients_with_certificates() {
    let world = World::new("certificates", Algorithm::ES256);
    let [certificate, key] = world.pair("client", Some("spiffe://example.org/ns/a/sa/web"));
    let (_relay, address) = world.serve(block("certificates"), &[]);
    assert!(Path::new(&certificate).exists());
    let shown = ["cds", "--cert", &certificate, "--key", &key];
    assert_eq!(world.get(&address, "a-edge", &shown).1, "a/web\n");
    refused(&world.get(&address, "b-edge", &shown), "");
    refused(&world.get(&address, "a-edge", &["cds"]), "");
}
