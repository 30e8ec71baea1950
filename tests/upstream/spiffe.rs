// SPDX-License-Identifier: Apache-2.0
//! The relay's certificate towards a control plane, and whom it trusts, from a SPIFFE Workload API.

use std::time::Duration;

use distributary::config::{Supply, Tls, Workload};
use distributary::proto::spiffe::workload::X509svid;
use distributary::tls;
use rcgen::{CertificateParams, CertifiedKey, KeyPair, SanType, generate_simple_self_signed};

use crate::agent::{Agent, Answer};
use crate::certificates::shown_in_turn;
use crate::folder::Folder;
use crate::plane::{PATIENCE, Plane};
use crate::secured::tls_plane_for;
use crate::{EDS, Relay};

const SERVER: &str = "spiffe://mesh/control-plane";

fn named(uri: &str) -> CertifiedKey<KeyPair> {
    let mut params = CertificateParams::new([]).unwrap();
    params.subject_alt_names.push(SanType::URI(uri.try_into().unwrap()));
    let signing_key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    CertifiedKey { cert, signing_key }
}

/// What an agent says of a relay with this certificate, which trusts that server.
fn svid(own: &CertifiedKey<KeyPair>, server: &CertifiedKey<KeyPair>) -> Answer {
    Answer::of(vec![X509svid {
        spiffe_id: "spiffe://mesh/relay".to_owned(),
        x509_svid: own.cert.der().to_vec().into(),
        x509_svid_key: own.signing_key.serialize_der().into(),
        bundle: server.cert.der().to_vec().into(),
        hint: String::new(),
    }])
}

/// A relay whose control plane has the id, by the bundle of this agent.
fn relay(plane: &Plane, port: u16, api: &Workload) -> Relay {
    Relay::with(plane.address, &[(EDS, "a")], |plan| {
        let tls = Tls {
            authorities: Some(Supply::Workload(api.clone())),
            identity: Some(Supply::Workload(api.clone())),
            spiffe_id: Some(SERVER.to_owned()),
            ..Tls::default()
        };
        plan.over_tls(port, tls);
    })
}

/// A new SVID is shown from the next connection on, also while the agent is away; the stream that is open goes on. A server that
/// the bundle does not vouch for is refused.
#[tokio::test]
async fn an_svid_is_replaced() {
    let folder = Folder::new();
    let [api, other] = ["agent.sock", "other.sock"].map(|name| Workload {
        socket: folder.put("any", "").with_file_name(name),
        hint: None,
    });
    let server = named(SERVER);
    let [first, second] = [(); 2].map(|()| generate_simple_self_signed(["relay".to_owned()]).unwrap());
    let agent = Agent::start(&api.socket, svid(&first, &server));
    let (mut plane, port, shown) = tls_plane_for(&server, &[&first, &second]).await;
    let relay_of_mesh = relay(&plane, port, &api);
    let known = || tls::identity(&Supply::Workload(api.clone())).unwrap().0;
    let replace = async || {
        agent.send(svid(&second, &server));
        let told = async {
            while known() != [second.cert.der().clone()] {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, told).await.unwrap();
        drop(agent);
    };
    let presented = shown_in_turn(&mut plane, &relay_of_mesh, &shown, replace).await;
    assert_eq!(presented, [first.cert.der().clone(), second.cert.der().clone()]);

    let _agent = Agent::start(&other.socket, svid(&second, &named(SERVER)));
    let stranger = relay(&plane, port, &other);
    let refused = |error: &String| error.contains("is signed by no authority that the relay trusts");
    stranger
        .status("a refusal", |status| status.error.as_ref().is_some_and(refused))
        .await;
}
