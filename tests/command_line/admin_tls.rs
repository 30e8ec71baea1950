// SPDX-License-Identifier: Apache-2.0
//! The admin address with TLS.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};

use super::{fails, file, output, serve};

/// Writes a certificate and its key, and returns their paths.
fn signed(name: &str, authority: &CertifiedIssuer<'_, KeyPair>, purpose: ExtendedKeyUsagePurpose) -> [String; 2] {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned(), "relay.example.com".to_owned()]).unwrap();
    params.extended_key_usages = vec![purpose];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap().pem();
    let path = |ending: &str, text: &str| file(&format!("{name}.{ending}"), text).display().to_string();
    [path("pem", &certificate), path("key", &key.serialize_pem())]
}

/// `health` and `drain` reach the address with the certificates that it asks for, and nobody reaches it without.
#[test]
fn only_who_shows_a_certificate() {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let ca = file("admin-ca.pem", &authority.pem()).display().to_string();
    let [certificate, key] = signed("admin", &authority, ExtendedKeyUsagePurpose::ServerAuth);
    let [shown, shown_key] = signed("operator", &authority, ExtendedKeyUsagePurpose::ClientAuth);
    let resources = file("admin-resources.yaml", "resources: []\n");
    let text = format!(
        "upstream: {{xds_servers: [{{server_uri: 'file://{}'}}]}}\n\
         admin: {{address: '127.0.0.1:0', tls: {{certificate: '{certificate}', private_key: '{key}', client_ca: '{ca}'}}}}\n\
         listeners: [{{address: '127.0.0.1:0'}}]\n",
        resources.display()
    );
    let config = file("admin-tls.yaml", &text);
    let (mut relay, admin, _) = serve(&["--config", config.to_str().unwrap()]);
    let with = |command: &str, more: &[&str]| output(&[&[command, "--admin", &admin], more].concat());
    let complete = ["--ca", &ca, "--cert", &shown, "--key", &shown_key];
    assert!((0..1000).any(|_| with("health", &complete).0 == Some(0)), "not ready");
    let named = [&complete[..], &["--server-name", "relay.example.com"]].concat();
    assert_eq!(with("health", &named), (Some(0), "READY\n".to_owned(), String::new()));
    let other = [&complete[..], &["--server-name", "other.example.com"]].concat();
    let itself = ["--ca", &shown, "--cert", &shown, "--key", &shown_key];
    for wrong in [&[][..], &["--ca", &ca], &itself, &other] {
        fails(1, &[&["health", "--admin", &admin], wrong].concat(), &admin);
    }
    assert_eq!(with("drain", &complete), (Some(0), "OK\n".to_owned(), String::new()));
    relay.line("draining");
    relay.signal("-TERM");
    assert_eq!(relay.child.wait().unwrap().code(), Some(0));
}
