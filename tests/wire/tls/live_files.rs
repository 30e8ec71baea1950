// SPDX-License-Identifier: Apache-2.0
//! Files of a listener that change while it runs: new handshakes use them, established connections do not notice.

use std::sync::Arc;
use std::time::Duration;

use distributary::config::{ListenerTls, TlsVersion};
use distributary::downstream::Handshakes;
use distributary::tls::{HTTP1, HTTP2, InUse, Renewal, ServerTls};
use distributary::xds::Dialect;
use futures_util::future::join_all;
use tokio::sync::watch;

use super::{client, converses, refused};
use crate::support::certificates::{Authority, Folder, Signed, VERSIONS};
use crate::support::{Relay, spawn, until};

/// A relay that reads its files again when they change.
pub(super) fn following(settings: &ListenerTls) -> Relay {
    showing(settings).0
}

/// The same, with what operators see of its certificates.
pub(super) fn showing(settings: &ListenerTls) -> (Relay, Arc<InUse>) {
    let tls = Arc::new(ServerTls::read(settings, &[HTTP2, HTTP1]).unwrap());
    let relay = Relay::with(|plan| plan.tls = Some(Handshakes::new(tls.clone(), 256)));
    let in_use = Arc::default();
    let renewal = Renewal::new(
        [("listener".to_owned(), tls)],
        watch::channel(Vec::new()).1,
        &in_use,
        &relay.shared.metrics,
    );
    spawn(renewal.run(async || std::future::pending().await));
    (relay, in_use)
}

/// How often changed files were used, and how often they were bad.
fn reloads(relay: &Relay) -> (u64, u64) {
    let metrics = relay.shared.metrics.certificates.clone();
    (metrics.read.get(), metrics.not_read.get())
}

/// Waits until the relay has done this with its files.
pub(super) async fn reloaded(relay: &Relay, wanted: (u64, u64)) {
    until(
        || reloads(relay) == wanted,
        || format!("{wanted:?}: {:?}", reloads(relay)),
    )
    .await;
}

/// Puts files where Kubernetes puts those of a ConfigMap: behind a symlink, which is replaced when any of them changes.
fn project(folder: &Folder, generation: &str, own: &Signed) {
    let place = folder.path(generation);
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("relay.pem"), &own.certificate).unwrap();
    std::fs::write(place.join("relay.key"), &own.key).unwrap();
    std::os::unix::fs::symlink(generation, folder.path("..data.new")).unwrap();
    std::fs::rename(folder.path("..data.new"), folder.path("..data")).unwrap();
}

/// Another authority signs the relay's new certificate: clients see it from the next handshake on, and streams go on.
async fn swap(relay: &Relay, old: &Authority, new: &Authority, replace: impl FnOnce(&Signed)) {
    let [before, after] = [old, new].map(|authority| Arc::new(authority.client(None, &VERSIONS)));
    let established = client(relay, &before).await;
    converses(relay, &established, Dialect::Delta).await;
    replace(&new.sign("localhost"));
    reloaded(relay, (1, 0)).await;
    let joined = client(relay, &after).await;
    converses(relay, &joined, Dialect::Sotw).await;
    converses(relay, &established, Dialect::Delta).await;
    let strict = Arc::new(old.client(None, &VERSIONS));
    let said = refused(relay, &strict).await;
    assert!(said.contains("UnknownIssuer"), "{said}");
}

#[tokio::test]
async fn files_that_are_moved_into_place() {
    let (old, new, folder) = (Authority::new(), Authority::new(), Folder::new());
    let relay = following(&old.listener(&folder, None));
    let replace = |own: &Signed| {
        folder.replace("relay.key", &own.key);
        folder.replace("relay.pem", &own.certificate);
    };
    swap(&relay, &old, &new, replace).await;
}

#[tokio::test]
async fn files_of_a_config_map() {
    let (old, new, folder) = (Authority::new(), Authority::new(), Folder::new());
    let settings = old.listener(&folder, None);
    project(&folder, "..1", &old.sign("localhost"));
    for name in ["relay.pem", "relay.key"] {
        std::fs::remove_file(folder.path(name)).unwrap();
        std::os::unix::fs::symlink(format!("..data/{name}"), folder.path(name)).unwrap();
    }
    let relay = following(&settings);
    swap(&relay, &old, &new, |own| project(&folder, "..2", own)).await;
}

/// Files that are written where they are, slowly: what is read of them meanwhile is not told as a fault.
#[tokio::test]
async fn files_that_are_written_in_place() {
    let (old, new, folder) = (Authority::new(), Authority::new(), Folder::new());
    let relay = following(&old.listener(&folder, None));
    let (own, strict) = (new.sign("localhost"), Arc::new(old.client(None, &VERSIONS)));
    let (first, _) = own.certificate.split_at(own.certificate.len() / 2);
    for (name, text) in [
        ("relay.pem", first),
        ("relay.pem", &own.certificate),
        ("relay.key", &own.key),
    ] {
        client(&relay, &strict).await;
        folder.put(name, text);
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    reloaded(&relay, (1, 0)).await;
    client(&relay, &Arc::new(new.client(None, &VERSIONS))).await;
}

/// K-34: other files, authorities and versions in the settings count for new handshakes; those with bad files change nothing.
#[tokio::test]
async fn other_settings() {
    let (old, new, clients) = (Authority::new(), Authority::new(), Authority::new());
    let [before, after, bad] = [Folder::new(), Folder::new(), Folder::new()];
    let tls = Arc::new(ServerTls::read(&old.listener(&before, None), &[HTTP2, HTTP1]).unwrap());
    let relay = Relay::with(|plan| plan.tls = Some(Handshakes::new(tls.clone(), 256)));
    let (changed, servers) = watch::channel(Vec::new());
    let renewal = Renewal::new(
        [("listener".to_owned(), tls.clone())],
        servers,
        &Arc::default(),
        &relay.shared.metrics,
    );
    spawn(renewal.run(async || std::future::pending().await));
    let established = client(&relay, &Arc::new(old.client(None, &VERSIONS))).await;

    let wanted = ListenerTls {
        oldest: TlsVersion::V1_3,
        ..new.listener(&after, Some(&clients))
    };
    tls.set(&wanted);
    changed.send_replace(Vec::new());
    reloaded(&relay, (1, 0)).await;
    let known = clients.sign("edge-1");
    let config = Arc::new(new.client(Some(&known), &VERSIONS));
    client(&relay, &config).await;
    let said = refused(&relay, &Arc::new(new.client(None, &VERSIONS))).await;
    assert!(said.contains("CertificateRequired"), "{said}");
    let said = refused(&relay, &Arc::new(new.client(Some(&known), &VERSIONS[..1]))).await;
    assert!(said.contains("ProtocolVersion"), "{said}");
    converses(&relay, &established, Dialect::Delta).await;

    let worse = old.listener(&bad, None);
    std::fs::remove_file(bad.path("relay.key")).unwrap();
    tls.set(&worse);
    changed.send_replace(Vec::new());
    reloaded(&relay, (1, 1)).await;
    client(&relay, &config).await;
    // The same files with another setting.
    tls.set(&ListenerTls {
        oldest: TlsVersion::V1_2,
        ..wanted
    });
    changed.send_replace(Vec::new());
    reloaded(&relay, (2, 1)).await;
    client(&relay, &Arc::new(new.client(Some(&known), &VERSIONS[..1]))).await;
}

/// K-34: a bad file changes nothing, and is counted once; a good one is used again.
#[tokio::test]
async fn bad_files() {
    let spoils: [fn(&Folder); 5] = [
        |folder| std::fs::remove_file(folder.path("relay.pem")).unwrap(),
        |folder| folder.replace("relay.key", &Authority::new().sign("localhost").key),
        |folder| folder.replace("clients.pem", "not PEM"),
        |folder| {
            folder.replace(
                "clients.crl",
                "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n",
            )
        },
        |folder| folder.replace("clients.crl", &Authority::new().revocations(&[])),
    ];
    let spoiled = |spoil: fn(&Folder)| async move {
        let (authority, clients, folder) = (Authority::new(), Authority::new(), Folder::new());
        let mut settings = authority.listener(&folder, Some(&clients));
        settings.client_crl = Some(folder.put("clients.crl", &clients.revocations(&[])));
        let relay = following(&settings);
        spoil(&folder);
        reloaded(&relay, (0, 1)).await;
        let config = Arc::new(authority.client(Some(&clients.sign("edge-1")), &VERSIONS));
        client(&relay, &config).await;
        let said = refused(&relay, &Arc::new(authority.client(None, &VERSIONS))).await;
        assert!(said.contains("CertificateRequired"), "{said}");

        let next = authority.listener(&folder, Some(&Authority::new()));
        folder.put("clients.crl", &clients.revocations(&[]));
        folder.replace("clients.pem", &clients.pem());
        assert_eq!(next.identity, settings.identity);
        reloaded(&relay, (1, 1)).await;
        client(&relay, &config).await;
    };
    join_all(spoils.map(spoiled)).await;
}
