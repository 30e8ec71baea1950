// SPDX-License-Identifier: Apache-2.0
//! The certificates of the relay and of its clients, and the authorities of both, change many times under clients that come and
//! go: nobody is refused who should be let in, nobody is let in who should not, and no open stream ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use distributary::cache::{Route, Routes};
use distributary::config::{Config, Flags};
use distributary::downstream::ConnectionSettings;
use distributary::protocol::StreamSettings;
use distributary::xds::Dialect;
use futures_util::future::join_all;
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, SerialNumber};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio::sync::RwLock;

use super::live_files::{following, reloaded};
use super::{client, converses, refused};
use crate::support::Relay;
use crate::support::certificates::{Authority, Folder, Signed, VERSIONS};
use crate::support::{path, spawn, until};

/// How often files change in each rotation.
const RELOADS: u64 = 4;

/// How large a run is.
struct Scale {
    clients: usize,
    rotations: u64,
    /// How long a client stays away.
    away: Duration,
    /// How long a rotation takes at least.
    pace: Duration,
}

/// Two generations of authorities; the relay and the clients trust both while one replaces the other.
struct Generation {
    relay: Authority,
    clients: Authority,
}

impl Generation {
    fn new() -> Self {
        Self {
            relay: Authority::new(),
            clients: Authority::new(),
        }
    }
}

/// What clients that are to be let in use now.
struct Badges {
    /// Held during a visit, so that it changes only between visits.
    good: RwLock<Arc<ClientConfig>>,
    over: AtomicBool,
    visits: AtomicUsize,
}

/// A client's configuration that trusts these authorities of the relay.
fn trusting(relays: &[&Authority], shown: &Signed) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for authority in relays {
        roots
            .add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap())
            .unwrap();
    }
    let (chain, key) = shown.der();
    let mut config = ClientConfig::builder_with_provider(distributary::tls::provider())
        .with_protocol_versions(&VERSIONS)
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

fn numbered(authority: &Authority, serial: u64) -> Signed {
    authority.sign_with("edge-1", |params| {
        params.serial_number = Some(SerialNumber::from(serial))
    })
}

/// Comes, is let in, and goes.
async fn visit(relay: &Relay, config: &Arc<ClientConfig>) {
    // The answer shows that the relay has accepted the certificate.
    client(relay, config).await.call(path(Dialect::Delta)).await;
}

/// Visits again and again, each time with what is good at that time; mostly with a ticket.
async fn comes_and_goes(relay: Arc<Relay>, badges: Arc<Badges>, away: Duration) {
    while !badges.over.load(Ordering::Relaxed) {
        visit(&relay, &*badges.good.read().await).await;
        badges.visits.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(away).await;
    }
}

/// The configuration is another one: other rules, which admit everybody who is let in; one more class, which nobody is in; one more
/// server. Or all of that is taken back.
fn reload(relay: &Relay, turn: u64) {
    let (rules, classes, servers): (_, _, &[usize]) = match turn % 2 {
        0 => ("[{name: everybody, identities: 'dns:*'}]", "", &[0]),
        _ => (
            "[{name: some, identities: 'dns:edge-1', nodes: {id: '*'}}, {name: others, identities: 'ip:*'}]",
            "classes: [{match: {id: 'nobody-*'}, key: [cluster]}]",
            &[0, 1],
        ),
    };
    let text = format!("upstream: {{xds_servers: [{{server_uri: cp:1}}]}}\nrules: {rules}\n{classes}\n");
    let config = Config::parse(&text, "relay.yaml", &Flags::default()).unwrap();
    let mut settings = ConnectionSettings::clone(&relay.shared.settings.load());
    settings.protocol = Arc::new(StreamSettings {
        access: config.access,
        classes: config.classes.clone(),
        ..StreamSettings::clone(&settings.protocol)
    });
    relay.shared.scopes.set_classes(config.classes);
    relay.shared.settings.store(Arc::new(settings));
    let route = Route {
        servers: servers.into(),
        reachability_only: false,
        shared: false,
    };
    relay.shared.scopes.reroute(Routes::new(route, BTreeMap::new()));
}

/// Replaces all authorities and certificates, while clients come and go: at any time both generations of what is being replaced
/// are trusted until nobody shows the old one.
async fn rotates(relay: &Relay, folder: &Folder, badges: &Badges, old: &Generation, reloads: u64) -> Generation {
    let new = Generation::new();
    let both = [&old.relay, &new.relay];
    let leaver = trusting(&both, &numbered(&old.clients, 3));
    visit(relay, &leaver).await;
    let lists = [&old.clients, &new.clients].map(|authority| authority.revocations(&[2]));
    folder.replace("clients.crl", &lists.concat());
    reloaded(relay, (reloads + 1, 0)).await;
    folder.replace("clients.pem", &(old.clients.pem() + &new.clients.pem()));
    reloaded(relay, (reloads + 2, 0)).await;
    let mine = numbered(&new.clients, 1);
    *badges.good.write().await = trusting(&both, &mine);
    let own = new.relay.sign("localhost");
    folder.replace("relay.pem", &own.certificate);
    folder.replace("relay.key", &own.key);
    reloaded(relay, (reloads + 3, 0)).await;
    folder.replace("clients.pem", &new.clients.pem());
    reloaded(relay, (reloads + RELOADS, 0)).await;
    *badges.good.write().await = trusting(&[&new.relay], &mine);

    let said = refused(relay, &trusting(&both, &numbered(&new.clients, 2))).await;
    assert!(said.contains("CertificateRevoked"), "{said}");
    // With a ticket, and without.
    for shown in [leaver, trusting(&both, &numbered(&old.clients, 1))] {
        let said = refused(relay, &shown).await;
        assert!(said.contains("alert"), "{said}");
    }
    new
}

/// K-34, S-07: certificates, rules, classes and servers.
#[tokio::test]
async fn everything_rotates() {
    play(Scale {
        clients: 8,
        rotations: 12,
        away: Duration::from_millis(5),
        pace: Duration::ZERO,
    })
    .await;
}

/// The same for a minute, with a thousand clients.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute"]
async fn everything_rotates_under_a_thousand_clients() {
    play(Scale {
        clients: 1000,
        rotations: 60,
        away: Duration::from_secs(2),
        pace: Duration::from_secs(1),
    })
    .await;
}

#[expect(clippy::print_stdout, reason = "figures for people")]
async fn play(scale: Scale) {
    let folder = Folder::new();
    let mut now = Generation::new();
    let mut settings = now.relay.listener(&folder, Some(&now.clients));
    settings.client_crl = Some(folder.put("clients.crl", &now.clients.revocations(&[])));
    let relay = Arc::new(following(&settings));
    let badges = Arc::new(Badges {
        good: RwLock::new(trusting(&[&now.relay], &numbered(&now.clients, 1))),
        over: AtomicBool::new(false),
        visits: AtomicUsize::new(0),
    });
    let visitor = |_| spawn(comes_and_goes(relay.clone(), badges.clone(), scale.away));
    let visitors: Vec<_> = (0..scale.clients).map(visitor).collect();
    let mut staying = Vec::new();
    for round in 0..scale.rotations {
        let paced = tokio::time::sleep(scale.pace);
        reload(&relay, 0);
        let stays = client(&relay, &*badges.good.read().await).await;
        converses(&relay, &stays, Dialect::Delta).await;
        staying.push(stays);
        now = rotates(&relay, &folder, &badges, &now, RELOADS * round).await;
        reload(&relay, 1);
        paced.await;
    }
    badges.over.store(true, Ordering::Relaxed);
    for visitor in visitors {
        visitor.await.unwrap();
    }
    let visits = badges.visits.load(Ordering::Relaxed);
    assert!(visits > 100, "only {visits} visits");
    for stays in &staying {
        converses(&relay, stays, Dialect::Sotw).await;
    }
    for refusal in [
        "timeout",
        "no_certificate",
        "refused_by_client",
        "incompatible",
        "closed",
        "invalid",
    ] {
        assert_eq!(relay.shared.metrics.handshakes.count(refusal), 0, "{refusal}");
    }
    assert_eq!(
        relay.shared.metrics.handshakes.count("bad_certificate"),
        3 * scale.rotations
    );
    println!("{visits} visits in {} rotations", scale.rotations);
}

/// Clients with certificates that are not valid, in all ways, are refused, and others are served beside them.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "certificates go by the wall clock")]
async fn certificates_that_are_no_good() {
    let (authority, clients, folder) = (Authority::new(), Authority::new(), Folder::new());
    let relay = following(&authority.listener(&folder, Some(&clients)));
    let now = std::time::SystemTime::now();
    let hour = Duration::from_secs(3600);
    let early = clients.sign_with("edge-1", |params| params.not_before = (now + hour).into());
    let late = clients.sign_with("edge-1", |params| params.not_after = (now - hour).into());
    let key = KeyPair::generate().unwrap();
    let alone = CertificateParams::new(["edge-1".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let alone = Signed {
        certificate: alone.pem(),
        key: key.serialize_pem(),
    };
    let server = clients.sign_with("edge-1", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let bad = [early, late, alone, server, Authority::new().sign("edge-1")];
    let refusals = bad.iter().map(|shown| async {
        let said = refused(&relay, &Arc::new(authority.client(Some(shown), &VERSIONS))).await;
        assert!(said.contains("alert"), "{said}");
    });
    join_all(refusals).await;
    let metrics = &relay.shared.metrics;
    until(
        || metrics.handshakes.count("bad_certificate") == 5,
        || "not counted".to_owned(),
    )
    .await;
    let text = metrics.encode().unwrap();
    let grpc = |result: &str, resumed: &str| {
        let labels = format!("grpc_tls_handshake_result=\"{result}\",grpc_tls_handshake_resumed=\"{resumed}\"");
        let series = format!("grpc_server_tls_handshakes_total{{{labels}}} ");
        let count = text.lines().find_map(|line| line.strip_prefix(series.as_str()));
        count.unwrap_or_else(|| panic!("no {series}")).parse::<u64>().unwrap()
    };
    let failed = |result| grpc(result, "FULL_HANDSHAKE");
    let words = [
        "CERTIFICATE_NOT_YET_VALID",
        "CERTIFICATE_EXPIRED",
        "CERTIFICATE_MALFORMED",
    ];
    assert_eq!(words.map(failed), [1, 1, 1]);
    // An authority that is not trusted may have the name of one that is.
    let foreign = ["CERTIFICATE_AUTHORITY_INVALID", "SIGNATURE_VERIFICATION_FAILED"].map(failed);
    assert_eq!(foreign.iter().sum::<u64>(), 2, "{foreign:?}");
    assert_eq!((failed("SUCCESS"), grpc("SUCCESS", "RESUMED_HANDSHAKE")), (0, 0));
    client(
        &relay,
        &Arc::new(authority.client(Some(&clients.sign("edge-1")), &VERSIONS)),
    )
    .await;
}
