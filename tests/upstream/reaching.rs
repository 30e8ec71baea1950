// SPDX-License-Identifier: Apache-2.0
//! How the relay connects to a control plane.

use std::path::{Path, PathBuf};

use distributary::config::{Credentials, Endpoint, Tls};
use distributary::upstream::StreamPhase;
use rcgen::generate_simple_self_signed;
use tokio::net::TcpListener;

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
    let status = relay
        .status("an error", |status| status.phase == StreamPhase::Waiting)
        .await;
    assert!(status.error.unwrap().contains(&format!("cannot connect to {port}")));
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
fn trusting(authorities: &Path, plane: &Plane, port: u16) -> Relay {
    Relay::with(plane.address, &[(EDS, "a")], |plan| {
        plan.server.endpoint = Endpoint::Tcp {
            host: "localhost".to_owned(),
            port,
        };
        plan.server.credentials = Credentials::Tls(Tls {
            authorities: Some(authorities.to_owned().into()),
            ..Tls::default()
        });
    })
}

/// TLS with a given authority: trusted, or not.
#[tokio::test]
async fn tls_with_a_given_authority() {
    let authority = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for (trusted, right) in [(&authority, true), (&other, false)] {
        let path = std::env::temp_dir().join(format!("distributary-upstream-{}-{right}.pem", std::process::id()));
        std::fs::write(&path, trusted.cert.pem()).unwrap();
        let (mut plane, port) = tls_plane(&authority).await;
        let relay = trusting(&path, &plane, port);
        if right {
            let mut call = plane.call().await;
            relay.takes(&mut call, "a=1").await;
        } else {
            let status = relay
                .status("an error", |status| status.phase == StreamPhase::Waiting)
                .await;
            let error = status.error.unwrap();
            let said = "the TLS handshake with localhost failed: the server's certificate is signed by no authority that the relay trusts; is it";
            assert!(error.starts_with(said), "{error}");
            assert!(plane.has_call().is_none());
        }
        std::fs::remove_file(&path).unwrap();
    }
}

/// The error for a missing authority file names it.
#[tokio::test]
async fn no_authority_file() {
    let (plane, _) = tls_plane(&generate_simple_self_signed(["localhost".to_owned()]).unwrap()).await;
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        plan.server.credentials = Credentials::Tls(Tls {
            authorities: Some(PathBuf::from("/nowhere/ca.pem").into()),
            ..Tls::default()
        });
    });
    let status = relay
        .status("an error", |status| status.phase == StreamPhase::Waiting)
        .await;
    assert!(
        status
            .error
            .unwrap()
            .contains("cannot read the authorities in /nowhere/ca.pem")
    );
}

/// Plaintext to a TLS port, and TLS to a plaintext port: both errors say what may be wrong.
#[tokio::test]
async fn tls_on_one_side_only() {
    let (plane, _) = tls_plane(&generate_simple_self_signed(["localhost".to_owned()]).unwrap()).await;
    let relay = Relay::of(&plane, &[(EDS, "a")]);
    let status = relay
        .status("an error", |status| status.phase == StreamPhase::Waiting)
        .await;
    let error = status.error.unwrap();
    assert!(
        error.contains("TLS needed or not") || error.contains("without an error"),
        "{error}"
    );

    let plane = Plane::start().await;
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        plan.server.credentials = Credentials::Tls(Tls::default());
    });
    let status = relay
        .status("an error", |status| status.phase == StreamPhase::Waiting)
        .await;
    let error = status.error.unwrap();
    assert!(
        error.contains("failed: what the server sent is not TLS; is it a TLS port"),
        "{error}"
    );
}

/// What is wrong with a server's certificate is said in plain words.
#[tokio::test]
async fn certificates_that_do_not_serve() {
    let made = |names: &[&str], until| {
        let signing_key = rcgen::KeyPair::generate().unwrap();
        let mut params =
            rcgen::CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let cert = params.self_signed(&signing_key).unwrap();
        rcgen::CertifiedKey { cert, signing_key }
    };
    #[rustfmt::skip]
    let rows = [
        ("old", made(&["localhost"], 2001), "the server's certificate has expired;"),
        ("other", made(&["example.org"], 4000), "the server's certificate is for "),
    ];
    for (name, identity, said) in rows {
        let path = std::env::temp_dir().join(format!("distributary-upstream-{}-{name}.pem", std::process::id()));
        std::fs::write(&path, identity.cert.pem()).unwrap();
        let (plane, port) = tls_plane(&identity).await;
        let relay = trusting(&path, &plane, port);
        let status = relay
            .status("an error", |status| status.phase == StreamPhase::Waiting)
            .await;
        let error = status.error.unwrap();
        assert!(error.contains(said) && !error.contains("UNIX"), "{error}");
        std::fs::remove_file(&path).unwrap();
    }
}
