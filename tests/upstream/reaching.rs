// SPDX-License-Identifier: Apache-2.0
//! How the relay connects to a control plane.

use std::path::PathBuf;

use distributary::config::{Credentials, Endpoint, Tls};
use distributary::upstream::StreamPhase;
use rcgen::generate_simple_self_signed;
use tokio::net::TcpListener;

use crate::folder::Folder;
use crate::plane::{Plane, soon};
use crate::secured::tls_plane;
use crate::{EDS, Relay, ms, now};

/// The relay tries all addresses of a name: this plane listens on only one of them.
#[tokio::test]
async fn a_name_with_several_addresses() {
    let mut plane = Plane::start().await;
    let port = plane.address.port();
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        plan.server.endpoint = Endpoint::Tcp {
            host: "localhost".to_owned(),
            port,
        };
    });
    let mut call = plane.call().await;
    relay.takes(&mut call, "a=1").await;
}

/// A Unix socket.
#[tokio::test]
async fn a_unix_socket() {
    let path = std::env::temp_dir().join(format!("distributary-upstream-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut plane = Plane::unix(&path);
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        plan.server.endpoint = Endpoint::Unix(path.clone())
    });
    let mut call = plane.call().await;
    relay.takes(&mut call, "a=1").await;
    std::fs::remove_file(&path).unwrap();
}

/// If nothing listens, the error says so, and a later attempt finds the plane.
#[tokio::test]
async fn a_plane_that_comes_later() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let relay = Relay::with(port, &[(EDS, "a")], |_| ());
    assert!(relay.fails().await.contains(&format!("cannot connect to {port}")));
    let mut plane = Plane::again(port).await;
    let mut call = plane.call().await;
    relay.takes(&mut call, "a=1").await;
    let status = relay
        .status("an answer", |status| status.phase == StreamPhase::Answering)
        .await;
    assert_eq!(status.error, None);
}

/// L-22b, E-08: the server accepts the connection but begins HTTP/2 much later: until then no resource counts as missing.
#[tokio::test]
async fn a_late_handshake() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let relay = Relay::with(address, &[(EDS, "a")], |plan| plan.does_not_exist = ms(400));
    let (socket, _) = soon("a connection", listener.accept()).await.unwrap();
    // Three times the time limit of a server that can read the request.
    tokio::time::sleep(ms(1200)).await;
    assert_eq!(relay.known(EDS), "");
    let mut socket = Some(socket);
    let start = now();
    let mut plane = Plane::on(address, h2::server::Builder::new(), move || {
        let socket = socket.take();
        async move {
            match socket {
                Some(socket) => socket,
                None => std::future::pending().await,
            }
        }
    });
    let mut call = plane.call().await;
    call.delta().await;
    relay.knows(EDS, "a:TimedOut").await;
    assert!(start.elapsed() >= ms(400));
}

/// A relay that connects to the control plane by the name `localhost`, and trusts the authorities in a file.
fn trusting(authorities: PathBuf, plane: &Plane, port: u16) -> Relay {
    Relay::with(plane.address, &[(EDS, "a")], |plan| {
        plan.over_tls(
            port,
            Tls {
                authorities: Some(authorities.into()),
                ..Tls::default()
            },
        );
    })
}

/// TLS with a given authority; what is wrong with a server's certificate is said in plain words.
#[tokio::test]
async fn certificates_of_servers() {
    let made = |name: &str, until| {
        let signing_key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let cert = params.self_signed(&signing_key).unwrap();
        rcgen::CertifiedKey { cert, signing_key }
    };
    let (good, unknown) = (made("localhost", 4000), made("localhost", 4000));
    let (old, other) = (made("localhost", 2001), made("example.org", 4000));
    let unknown_authority = "the TLS handshake with localhost failed: the server's certificate is signed by no authority that the relay trusts; is it";
    for (shown, trusted, said) in [
        (&good, &good, None),
        (&good, &unknown, Some(unknown_authority)),
        (&old, &old, Some("the server's certificate has expired;")),
        (&other, &other, Some("the server's certificate is for ")),
    ] {
        let folder = Folder::new();
        let (mut plane, port) = tls_plane(shown).await;
        let relay = trusting(folder.put("ca.pem", &trusted.cert.pem()), &plane, port);
        let Some(said) = said else {
            let mut call = plane.call().await;
            relay.takes(&mut call, "a=1").await;
            continue;
        };
        let error = relay.fails().await;
        assert!(error.contains(said) && !error.contains("UNIX"), "{error}");
        assert!(plane.has_call().is_none());
    }
}

/// The error for a missing authority file names it.
#[tokio::test]
async fn no_authority_file() {
    let (plane, port) = tls_plane(&generate_simple_self_signed(["localhost".to_owned()]).unwrap()).await;
    let error = trusting("/nowhere/ca.pem".into(), &plane, port).fails().await;
    assert!(
        error.contains("cannot read the authorities in /nowhere/ca.pem"),
        "{error}"
    );
}

/// Plaintext to a TLS port, and TLS to a plaintext port: both errors say what may be wrong.
#[tokio::test]
async fn tls_on_one_side_only() {
    let (plane, _) = tls_plane(&generate_simple_self_signed(["localhost".to_owned()]).unwrap()).await;
    let error = Relay::of(&plane, &[(EDS, "a")]).fails().await;
    assert!(
        error.contains("TLS needed or not") || error.contains("without an error"),
        "{error}"
    );

    let plane = Plane::start().await;
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        plan.server.credentials = Credentials::Tls(Tls::default());
    });
    let error = relay.fails().await;
    assert!(
        error.contains("failed: what the server sent is not TLS; is it a TLS port"),
        "{error}"
    );
}
