// SPDX-License-Identifier: Apache-2.0
//! Certificates towards a control plane: SPIFFE ids, and files that are replaced.

use std::net::SocketAddr;
use std::path::PathBuf;

use distributary::config::{CertificateFiles, Tls};
use rcgen::{CertificateParams, CertifiedKey, KeyPair, SanType, generate_simple_self_signed};
use rustls_pki_types::CertificateDer;

use crate::folder::Folder;
use crate::plane::Plane;
use crate::secured::{Shown, tls_plane_for};
use crate::{EDS, Relay};

const ID: &str = "spiffe://mesh.example.com/control-plane";

fn with_uris(uris: &[&str]) -> CertifiedKey<KeyPair> {
    let mut params = CertificateParams::new(["cp.example.com".to_owned()]).unwrap();
    let uris = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap()));
    params.subject_alt_names.extend(uris);
    let signing_key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    CertifiedKey { cert, signing_key }
}

/// The certificate must have exactly the id that is configured; its names, and the host, do not count. The host is still the
/// name in requests and in SNI.
#[tokio::test]
async fn a_server_with_a_spiffe_id() {
    let other = "spiffe://mesh.example.com/gateway";
    for (uris, said) in [
        (&[ID][..], None),
        (&[], Some("no SPIFFE id at all")),
        (
            &[other],
            Some("is for spiffe://mesh.example.com/gateway, not for spiffe://mesh.example.com/control-plane"),
        ),
        (&[ID, other], Some("several URIs")),
    ] {
        let folder = Folder::new();
        let server = with_uris(uris);
        let ca = folder.put("ca.pem", &server.cert.pem());
        let (mut plane, port, shown) = tls_plane_for(&server, &[]).await;
        let relay = of_spiffe(plane.address, port, ca);
        let Some(said) = said else {
            let mut call = plane.call().await;
            assert_eq!(call.authority, format!("localhost:{port}"));
            relay.takes(&mut call, "a=1").await;
            let asked = shown.lock().unwrap().first().unwrap().1.clone();
            assert_eq!(asked.as_deref(), Some("localhost"));
            continue;
        };
        let error = relay.fails().await;
        assert!(error.contains(said), "{error}");
        assert!(plane.has_call().is_none());
    }
}

/// A relay whose control plane has this id, by a certificate of this authority.
fn of_spiffe(address: SocketAddr, port: u16, ca: PathBuf) -> Relay {
    Relay::with(address, &[(EDS, "a")], |plan| {
        let tls = Tls {
            authorities: Some(ca.into()),
            spiffe_id: Some(ID.to_owned()),
            ..Tls::default()
        };
        plan.over_tls(port, tls);
    })
}

/// The id does not replace trust: a certificate with the id, of another authority, is refused.
#[tokio::test]
async fn a_spiffe_id_of_another_authority() {
    let folder = Folder::new();
    let (server, trusted) = (with_uris(&[ID]), with_uris(&[ID]));
    let ca = folder.put("ca.pem", &trusted.cert.pem());
    let (mut plane, port, _) = tls_plane_for(&server, &[]).await;
    let relay = of_spiffe(plane.address, port, ca);
    let error = relay.fails().await;
    assert!(
        error.contains("is signed by no authority that the relay trusts"),
        "{error}"
    );
    assert!(plane.has_call().is_none());
}

/// The relay's certificate is replaced by `replace`, in the middle of a stream. Returns the certificates that the plane was shown: one
/// for this stream, and one for the next, which the plane asks for.
pub(crate) async fn shown_in_turn(
    plane: &mut Plane,
    relay: &Relay,
    shown: &Shown,
    replace: impl AsyncFnOnce(),
) -> Vec<CertificateDer<'static>> {
    let mut call = plane.call().await;
    relay.takes(&mut call, "a=1").await;
    replace().await;
    relay.takes(&mut call, "a=2").await;
    call.drain().await;
    drop(call);
    let mut call = plane.call().await;
    relay.takes(&mut call, "a=3").await;
    let shown = shown.lock().unwrap();
    shown.iter().map(|shown| shown.0.clone().unwrap()).collect()
}

/// A certificate that is replaced is shown from the next connection on; the stream that is open goes on.
#[tokio::test]
async fn a_certificate_is_replaced() {
    let folder = Folder::new();
    let [server, first, second] = [(); 3].map(|()| generate_simple_self_signed(["localhost".to_owned()]).unwrap());
    let ca = folder.put("ca.pem", &server.cert.pem());
    let files = |of: &CertifiedKey<KeyPair>| CertificateFiles {
        certificate_file: folder.put("relay.pem", &of.cert.pem()),
        private_key_file: folder.put("relay.key", &of.signing_key.serialize_pem()),
    };
    let identity = files(&first);
    let (mut plane, port, shown) = tls_plane_for(&server, &[&first, &second]).await;
    let relay = Relay::with(plane.address, &[(EDS, "a")], |plan| {
        let tls = Tls {
            authorities: Some(ca.into()),
            identity: Some(identity.into()),
            ..Tls::default()
        };
        plan.over_tls(port, tls);
    });
    let presented = shown_in_turn(&mut plane, &relay, &shown, async || drop(files(&second))).await;
    assert_eq!(presented, [first.cert.der().clone(), second.cert.der().clone()]);
}
