// SPDX-License-Identifier: Apache-2.0
//! Certificates, keys and authorities from a SPIFFE Workload API.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use distributary::config::{ListenerTls, Supply, TlsVersion, Workload};
use distributary::proto::spiffe::workload::X509svid;
use distributary::tls::{HTTP2, InUse, ServerTls};
use distributary::xds::Dialect;
use futures_util::future::join_all;
use rcgen::SanType;
use rustls::{ClientConfig, HandshakeKind};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::live_files::{following, reloaded, showing};
use super::resumption::arrives;
use super::{client, converses, refused};
use crate::support::agent::{Agent, Answer};
use crate::support::certificates::{Authority, Folder, Signed, VERSIONS};
use crate::support::{now, until};

const RELAY: &str = "spiffe://mesh/relay";
const LISTENER: &str = "listener";

/// A listener that takes all from an agent.
fn settings(socket: &Path, hint: Option<&str>) -> ListenerTls {
    let api = Workload {
        socket: socket.to_owned(),
        hint: hint.map(str::to_owned),
    };
    ListenerTls {
        identity: Supply::Workload(api.clone()),
        others: Vec::new(),
        oldest: TlsVersion::default(),
        client_ca: Some(Supply::Workload(api)),
        client_crl: None,
    }
}

fn signed(authority: &Authority, id: &str) -> Signed {
    authority.sign_with("localhost", |params| {
        params.subject_alt_names.push(SanType::URI(id.try_into().unwrap()));
    })
}

/// An SVID that one authority has signed; the agent says to trust others.
fn svid(own: &Authority, bundle: &[&Authority]) -> X509svid {
    let (chain, key) = signed(own, RELAY).der();
    let der = |authority: &&Authority| CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap();
    let bundle: Vec<u8> = bundle.iter().flat_map(|one| der(one).to_vec()).collect();
    X509svid {
        spiffe_id: RELAY.to_owned(),
        x509_svid: chain[0].to_vec().into(),
        x509_svid_key: key.secret_der().to_vec().into(),
        bundle: bundle.into(),
        hint: String::new(),
    }
}

/// A client that trusts one authority, with a certificate of another one.
fn edge(trusts: &Authority, signs: &Authority) -> Arc<ClientConfig> {
    Arc::new(trusts.client(Some(&signed(signs, "spiffe://mesh/edge")), &VERSIONS))
}

fn answer(own: &Authority, bundle: &[&Authority]) -> Answer {
    Answer::of(vec![svid(own, bundle)])
}

fn fault(in_use: &InUse) -> Option<String> {
    in_use.all()[LISTENER].fault.clone()
}

/// K-34: a new SVID and a new bundle count for the next handshake. Streams that are open do not notice.
#[tokio::test]
async fn rotation_under_an_open_stream() {
    let (old, new, folder) = (Authority::new(), Authority::new(), Folder::new());
    let socket = folder.path("agent.sock");
    let agent = Agent::start(&socket, answer(&old, &[&old]));
    let (relay, in_use) = showing(&settings(&socket, None));
    let [before, after] = [edge(&old, &old), edge(&new, &new)];
    let open = client(&relay, &before).await;
    converses(&relay, &open, Dialect::Delta).await;
    let said = refused(&relay, &Arc::new(old.client(None, &VERSIONS))).await;
    assert!(said.contains("CertificateRequired"), "{said}");

    let sent = now();
    agent.send(answer(&new, &[&Authority::new(), &new]));
    reloaded(&relay, (1, 0)).await;
    // Files are looked at every ten seconds.
    assert!(sent.elapsed() < Duration::from_secs(9));
    converses(&relay, &client(&relay, &after).await, Dialect::Sotw).await;
    converses(&relay, &open, Dialect::Delta).await;
    let said = refused(&relay, &before).await;
    assert!(said.contains("UnknownIssuer"), "{said}");
    let said = refused(&relay, &edge(&new, &old)).await;
    assert!(said.contains("UnknownCA") || said.contains("DecryptError"), "{said}");

    let shown = in_use.all().remove(LISTENER).unwrap();
    let origin = format!("unix:{}", socket.display());
    let own = &shown.chain[0];
    assert_eq!(own.path.to_str(), Some(&*origin));
    assert_eq!(own.uri_names, [RELAY]);
    assert_eq!((shown.authorities.len(), shown.fault), (2, None));
    assert!(in_use.ends().contains_key(Path::new(&origin)));
}

/// K-34: tickets stay good when only the SVID changes, and end with the bundle.
#[tokio::test]
async fn tickets_end_with_the_bundle() {
    let (authority, others, folder) = (Authority::new(), Authority::new(), Folder::new());
    let socket = folder.path("agent.sock");
    let agent = Agent::start(&socket, answer(&authority, &[&authority]));
    let relay = following(&settings(&socket, None));
    let edge = edge(&authority, &authority);
    arrives(&relay, &edge, HandshakeKind::Full).await;
    agent.send(answer(&authority, &[&authority]));
    reloaded(&relay, (1, 0)).await;
    arrives(&relay, &edge, HandshakeKind::Resumed).await;
    agent.send(answer(&authority, &[&others]));
    reloaded(&relay, (2, 0)).await;
    let said = refused(&relay, &edge).await;
    assert!(said.contains("UnknownCA") || said.contains("DecryptError"), "{said}");
}

/// K-35: while the agent is away, the relay keeps what it has; that is counted once. When it is back, the relay follows again.
#[tokio::test]
async fn the_agent_is_away_for_a_while() {
    let (old, new, folder) = (Authority::new(), Authority::new(), Folder::new());
    let socket = folder.path("agent.sock");
    let agent = Agent::start(&socket, answer(&old, &[&old]));
    let (relay, in_use) = showing(&settings(&socket, None));
    let before = edge(&old, &old);
    let open = client(&relay, &before).await;
    drop(agent);
    reloaded(&relay, (0, 1)).await;
    let said = fault(&in_use).unwrap();
    assert!(said.contains("agent.sock: cannot connect: No such file"), "{said}");
    converses(&relay, &client(&relay, &before).await, Dialect::Delta).await;

    let _agent = Agent::start(&socket, answer(&new, &[&new]));
    reloaded(&relay, (1, 1)).await;
    converses(&relay, &client(&relay, &edge(&new, &new)).await, Dialect::Delta).await;
    converses(&relay, &open, Dialect::Delta).await;
    until(|| fault(&in_use).is_none(), || format!("{:?}", fault(&in_use))).await;
}

/// Messages that cannot be used, and what is said of them.
fn unusable() -> Vec<(Answer, String)> {
    let good = || svid(&Authority::new(), &[&Authority::new()]);
    let whole = |why: &str| format!("what the agent sent cannot be used: {why}");
    let one = |why: &str, change: fn(&mut X509svid)| {
        let mut svid = good();
        change(&mut svid);
        (Answer::of(vec![svid]), whole(&format!("{RELAY}: {why}")))
    };
    let not_der = "its certificate is not DER";
    vec![
        (Answer::of(Vec::new()), whole("there is no SVID in it")),
        (
            Answer::of(vec![good(), X509svid::default()]),
            whole(&format!(": {not_der}")),
        ),
        one(not_der, |svid| svid.x509_svid.clear()),
        one(not_der, |svid| svid.x509_svid = "garbage".into()),
        one(not_der, |svid| svid.x509_svid.truncate(300)),
        one("the first certificate in it is bad", |svid| {
            svid.x509_svid = vec![0x30, 1, 0].into();
        }),
        one("it is not the key of the first certificate in unix:", |svid| {
            svid.x509_svid_key = self::svid(&Authority::new(), &[&Authority::new()]).x509_svid_key;
        }),
        one("its bundle is not DER", |svid| svid.bundle.clear()),
        one("certificate 1 in it is not a CA", |svid| {
            svid.bundle = vec![0x30, 1, 0].into()
        }),
        (
            Answer::Message(vec![0; 5_000_000]),
            "OutOfRange: Error, decoded message length too large: found 5000000 bytes".to_owned(),
        ),
        (
            Answer::Message(b"garbage".to_vec()),
            "Internal: failed to decode Protobuf message".to_owned(),
        ),
    ]
}

/// K-35: a message that cannot be used changes nothing; it is counted and shown with the reason. The next good one is used.
#[tokio::test]
async fn bad_messages() {
    let told = |(answer, said): (Answer, String)| async move {
        let (authority, folder) = (Authority::new(), Folder::new());
        let socket = folder.path("agent.sock");
        let agent = Agent::start(&socket, self::answer(&authority, &[&authority]));
        let (relay, in_use) = showing(&settings(&socket, None));
        agent.send(answer);
        reloaded(&relay, (0, 1)).await;
        let (fault, expected) = (fault(&in_use).unwrap(), format!("unix:{}: {said}", socket.display()));
        assert!(fault.starts_with(&expected), "{fault}: {expected}");
        client(&relay, &edge(&authority, &authority)).await;

        let next = Authority::new();
        agent.send(self::answer(&next, &[&authority]));
        reloaded(&relay, (1, 1)).await;
        client(&relay, &edge(&next, &authority)).await;
    };
    join_all(unusable().into_iter().map(told)).await;
}

/// Of several SVIDs the first counts, or the one with the hint.
#[tokio::test]
async fn several_svids() {
    let (first, second, folder) = (Authority::new(), Authority::new(), Folder::new());
    let socket = folder.path("agent.sock");
    let mut hinted = svid(&second, &[&second]);
    hinted.hint = "internal".to_owned();
    let _agent = Agent::start(&socket, Answer::of(vec![svid(&first, &[&first]), hinted]));
    for (hint, authority) in [(None, &first), (Some("internal"), &second)] {
        let relay = following(&settings(&socket, hint));
        client(&relay, &edge(authority, authority)).await;
    }
    let error = ServerTls::read(&settings(&socket, Some("external")), &[HTTP2]).unwrap_err();
    let said = "no SVID has the hint `external` of `spiffe`; there are `` (spiffe://mesh/relay), `internal` (spiffe://mesh/relay)";
    assert!(error.to_string().ends_with(said), "{error}");
}

/// At the start the relay waits for the agent, and for its own registration; but not for ever.
#[tokio::test]
async fn the_agent_is_late() {
    let (authority, folder) = (Authority::new(), Folder::new());
    let [late, never, nobody] = ["late", "never", "nobody"].map(|name| folder.path(name));
    let [waiting, in_vain, unknown] = [&late, &never, &nobody].map(|socket| {
        let settings = settings(socket, None);
        tokio::task::spawn_blocking(move || ServerTls::read(&settings, &[HTTP2]))
    });
    let _nobody = Agent::start(&nobody, Answer::Nobody);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let agent = Agent::start(&late, Answer::Nobody);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    agent.send(answer(&authority, &[&authority]));
    let read = waiting.await.unwrap().unwrap();
    assert_eq!(read.warnings(), [""; 0]);

    let advice = "is the agent running, and is the relay registered with it as a workload?";
    for (read, path, why) in [
        (in_vain, never, "cannot connect: No such file or directory (os error 2)"),
        (unknown, nobody, "PermissionDenied: no identity issued"),
    ] {
        let error = read.await.unwrap().unwrap_err().to_string();
        let expected = format!("unix:{}: no SVID for `spiffe`: {why}; {advice}", path.display());
        assert_eq!(error, expected);
    }
}
