//! Who the relay says it is to a control plane: certificates and tokens.

use std::path::PathBuf;
use std::time::SystemTime;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use distributary::config::{Credentials, Endpoint, Grpc, Identity, Tls};
use distributary::upstream::Phase;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};

use crate::folder::Folder;
use crate::reaching::{tls_plane, tls_plane_for};
use crate::{EDS, Relay, delta};

fn certified() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

fn at(port: u16, server: &mut Grpc, ca: PathBuf, identity: Option<Identity>) {
    server.endpoint = Endpoint::Tcp {
        host: "localhost".to_owned(),
        port,
    };
    server.credentials = Credentials::Tls(Tls {
        ca_certificate_file: Some(ca),
        identity,
    });
}

/// A server that asks who we are is shown the certificate; a file that is not there is named.
#[tokio::test]
async fn a_certificate_of_our_own() {
    let folder = Folder::new("identity");
    let (server, client) = (certified(), certified());
    let ca = folder.put("ca.pem", &server.cert.pem());
    let identity = Identity {
        certificate_file: folder.put("relay.pem", &client.cert.pem()),
        private_key_file: folder.put("relay.key", &client.signing_key.serialize_pem()),
    };
    let (mut plane, port) = tls_plane_for(&server, Some(&client)).await;
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        at(port, &mut plan.server, ca.clone(), Some(identity.clone()));
    });
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&delta(EDS, "n1", &["a=1"], &[]));
    relay.knows(EDS, "a=1").await;

    let stranger = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        at(port, &mut plan.server, ca.clone(), None)
    });
    stranger.status("a refusal", |status| status.error.is_some()).await;
    assert!(plane.has_call().is_none());

    let gone = Identity {
        private_key_file: "/nowhere/relay.key".into(),
        ..identity
    };
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        at(port, &mut plan.server, ca, Some(gone))
    });
    let error = relay
        .status("an error", |status| status.error.is_some())
        .await
        .error
        .unwrap();
    assert!(
        error.contains("cannot read the certificate or its key in /nowhere/relay.key"),
        "{error}"
    );
}

/// A97: the token goes with every call; without one that lasts no call is made, the failure says why and does not say the
/// token; a new one is used as soon as it is there.
#[tokio::test]
async fn a_token_with_every_call() {
    let folder = Folder::new("token");
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
        at(port, &mut plan.server, ca, None);
        plan.server.token = Some(path.clone());
    });
    let status = relay.status("an error", |status| status.phase == Phase::Waiting).await;
    let error = status.error.unwrap();
    assert!(
        error.contains(&format!("the token in {} expired ", path.display())),
        "{error}"
    );
    assert!(!error.contains("e30"), "{error}");
    assert!(plane.has_call().is_none());

    folder.put("token", &token(now + 3600));
    let mut call = plane.call().await;
    assert_eq!(call.headers["authorization"], format!("Bearer {}", token(now + 3600)));
    call.delta().await;
    call.send(&delta(EDS, "n1", &["a=1"], &[]));
    relay.knows(EDS, "a=1").await;
    drop(relay);

    std::fs::remove_file(&path).unwrap();
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        at(port, &mut plan.server, path.with_file_name("ca.pem"), None);
        plan.server.token = Some(path.clone());
    });
    let status = relay.status("an error", |status| status.phase == Phase::Waiting).await;
    let error = status.error.unwrap();
    assert!(error.contains("cannot be read: No such file"), "{error}");
    assert!(plane.has_call().is_none());
}

/// A97: a token is for the server alone: without TLS it stays at home, whoever configured it so.
#[tokio::test]
async fn no_token_in_the_clear() {
    let folder = Folder::new("clear");
    let mut plane = crate::plane::Plane::start().await;
    let _relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        plan.server.token = Some(folder.put("token", "e30.eyJleHAiOjk5OTk5OTk5OTl9.c2ln"));
    });
    let call = plane.call().await;
    assert!(!call.headers.contains_key("authorization"));
}
