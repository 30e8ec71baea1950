// SPDX-License-Identifier: Apache-2.0
//! How the relay authenticates to a control plane: certificates and tokens.

use std::path::PathBuf;
use std::time::SystemTime;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use distributary::config::{CertificateFiles, Tls};
use distributary::upstream::ClassFiles;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};

use crate::folder::Folder;
use crate::secured::{tls_plane, tls_plane_for};
use crate::{EDS, Plan, Relay};

fn certified() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

fn at(port: u16, plan: &mut Plan, ca: PathBuf, identity: Option<CertificateFiles>) {
    let tls = Tls {
        authorities: Some(ca.into()),
        identity: identity.map(Into::into),
        ..Tls::default()
    };
    plan.over_tls(port, tls);
}

/// A server that asks for a client certificate gets it; the error for a missing file names the file.
#[tokio::test]
async fn a_certificate_of_our_own() {
    let folder = Folder::new();
    let (server, client) = (certified(), certified());
    let ca = folder.put("ca.pem", &server.cert.pem());
    let identity = CertificateFiles {
        certificate_file: folder.put("relay.pem", &client.cert.pem()),
        private_key_file: folder.put("relay.key", &client.signing_key.serialize_pem()),
    };
    let (mut plane, port, _) = tls_plane_for(&server, &[&client]).await;
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        at(port, plan, ca.clone(), Some(identity.clone()));
    });
    let mut call = plane.call().await;
    relay.takes(&mut call, "a=1").await;

    let stranger = Relay::with(plane.address, &[(EDS, "a")], |plan| at(port, plan, ca.clone(), None));
    stranger.fails().await;
    assert!(plane.has_call().is_none());

    let gone = CertificateFiles {
        private_key_file: "/nowhere/relay.key".into(),
        ..identity
    };
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| at(port, plan, ca, Some(gone)));
    let error = relay.fails().await;
    assert!(
        error.contains("cannot read the certificate or its key in /nowhere/relay.key"),
        "{error}"
    );
}

/// A97: every call carries the token. Without a valid token the relay makes no call; the error says why and does not contain the
/// token. A new token is used as soon as it is there.
#[tokio::test]
async fn a_token_with_every_call() {
    let folder = Folder::new();
    let server = certified();
    let ca = folder.put("ca.pem", &server.cert.pem());
    let (mut plane, port) = tls_plane(&server).await;
    #[expect(clippy::disallowed_methods, reason = "a token ends at a time of day")]
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let token = |exp: u64| {
        let claims = BASE64_URL_SAFE_NO_PAD.encode(format!(r#"{{"exp":{exp}}}"#));
        format!("e30.{claims}.c2lnbmF0dXJl")
    };
    let expired = token(now - 5);
    let path = folder.put("token", &expired);
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        at(port, plan, ca, None);
        plan.server.token = Some(path.clone());
    });
    let error = relay.fails().await;
    assert!(
        error.contains(&format!("the token in {} expired ", path.display())),
        "{error}"
    );
    assert!(!error.contains("e30."), "{error}");
    assert!(plane.has_call().is_none());

    folder.put("token", &token(now + 3600));
    let mut call = plane.call().await;
    assert_eq!(call.headers["authorization"], format!("Bearer {}", token(now + 3600)));
    relay.takes(&mut call, "a=1").await;
    drop(relay);

    std::fs::remove_file(&path).unwrap();
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        at(port, plan, path.with_file_name("ca.pem"), None);
        plan.server.token = Some(path.clone());
    });
    let error = relay.fails().await;
    assert!(error.contains("cannot be read: No such file"), "{error}");
    assert!(plane.has_call().is_none());
}

/// A97: only the server may see the token: without TLS it is not sent, even if it is configured.
#[tokio::test]
async fn no_token_in_the_clear() {
    let folder = Folder::new();
    let mut plane = crate::plane::Plane::start().await;
    let _relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        plan.server.token = Some(folder.put("token", "e30.eyJleHAiOjk5OTk5OTk5OTl9.c2ln"));
    });
    let call = plane.call().await;
    assert!(!call.headers.contains_key("authorization"));
}

/// A server with a certificate for another name than its address: the relay uses that name for SNI, the check and the requests.
#[tokio::test]
async fn a_server_with_another_name() {
    let folder = Folder::new();
    let server = generate_simple_self_signed(["cp.example.com".to_owned()]).unwrap();
    let ca = folder.put("ca.pem", &server.cert.pem());
    let (mut plane, port, shown) = tls_plane_for(&server, &[]).await;
    let named = |plan: &mut Plan, name: Option<&str>| {
        let tls = Tls {
            authorities: Some(ca.clone().into()),
            server_name: name.map(ToOwned::to_owned),
            ..Tls::default()
        };
        plan.over_tls(port, tls);
    };
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| named(plan, Some("cp.example.com")));
    let mut call = plane.call().await;
    assert_eq!(call.authority, format!("cp.example.com:{port}"));
    relay.takes(&mut call, "a=1").await;
    let asked = shown.lock().unwrap().first().unwrap().1.clone();
    assert_eq!(asked.as_deref(), Some("cp.example.com"));

    for (name, host) in [(None, "localhost"), (Some("other.example.com"), "other.example.com")] {
        let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| named(plan, name));
        let error = relay.fails().await;
        assert!(error.contains(&format!("TLS handshake with {host} failed")), "{error}");
    }
}

/// K-29: a certificate or token of a class replaces that of the server's entry, each by itself; without TLS none is sent.
#[tokio::test]
async fn a_class_with_files_of_its_own() {
    let folder = Folder::new();
    let (server, common, own) = (certified(), certified(), certified());
    let ca = folder.put("ca.pem", &server.cert.pem());
    let identity = |name: &str, of: &CertifiedKey<KeyPair>| CertificateFiles {
        certificate_file: folder.put(&format!("{name}.pem"), &of.cert.pem()),
        private_key_file: folder.put(&format!("{name}.key"), &of.signing_key.serialize_pem()),
    };
    let (for_all, for_class) = (identity("common", &common), identity("own", &own));
    let [for_all_token, for_class_token] = ["common", "own"].map(|name| {
        let claims = BASE64_URL_SAFE_NO_PAD.encode(format!(r#"{{"exp":9999999999,"sub":"{name}"}}"#));
        let token = format!("e30.{claims}.c2ln");
        (folder.put(&format!("{name}.jwt"), &token), format!("Bearer {token}"))
    });
    let (mut plane, port, shown) = tls_plane_for(&server, &[&common, &own]).await;
    for (with_identity, with_token) in [(false, false), (true, false), (false, true), (true, true)] {
        let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
            at(port, plan, ca.clone(), Some(for_all.clone()));
            plan.server.token = Some(for_all_token.0.clone());
            plan.files = Some(ClassFiles {
                identity: with_identity.then(|| for_class.clone()),
                token: with_token.then(|| for_class_token.0.clone()),
            });
        });
        let mut call = plane.call().await;
        let token = if with_token {
            &for_class_token.1
        } else {
            &for_all_token.1
        };
        assert_eq!(call.headers["authorization"], **token);
        let certificate = shown.lock().unwrap().last().unwrap().0.clone().unwrap();
        let right = if with_identity { &own } else { &common };
        assert_eq!(certificate, *right.cert.der());
        relay.takes(&mut call, "a=1").await;
    }
    let mut plane = crate::plane::Plane::start().await;
    let _relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        plan.files = Some(ClassFiles {
            identity: Some(for_class),
            token: Some(for_class_token.0),
        });
    });
    let call = plane.call().await;
    assert!(!call.headers.contains_key("authorization"));
}
