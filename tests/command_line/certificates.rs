// SPDX-License-Identifier: Apache-2.0
//! What the admin address shows of certificates.

use std::cell::OnceCell;

use rcgen::{CertificateParams, CertifiedKey, KeyPair, SanType, SerialNumber, date_time_ymd};
use serde_json::{Value, json};

use super::{Relay, address_in, ask, file, has, output, program, replace, serve, until};

fn made(serial: u64, until: i32) -> CertifiedKey<KeyPair> {
    let mut params = CertificateParams::new(["relay.example.com".to_owned()]).unwrap();
    let uri = "spiffe://mesh/relay".try_into().unwrap();
    params.subject_alt_names.push(SanType::URI(uri));
    params.serial_number = Some(SerialNumber::from(serial));
    params.not_before = date_time_ymd(2020, 2, 29);
    params.not_after = date_time_ymd(until, 1, 1);
    let signing_key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    CertifiedKey { cert, signing_key }
}

/// Asks for `/certs` until the answer is as wanted.
pub(crate) fn certs(admin: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let look = || -> Value {
        let answer = ask(admin, "GET /certs");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let found = OnceCell::new();
    let is = || {
        let shown = look();
        wanted(&shown) && found.set(shown).is_ok()
    };
    until(is, look);
    found.into_inner().unwrap()
}

/// `/certs` has Envoy's form, for listeners and control planes, and says what is wrong with files that changed; metrics say
/// when the certificates end.
#[test]
fn certificates_in_use() {
    let (first, second) = (made(0xabc, 2222), made(7, 2333));
    let [certificate, key, ca] = ["shown.pem", "shown.key", "shown-ca.pem"].map(|name| file(name, ""));
    let put = |own: &CertifiedKey<KeyPair>| {
        std::fs::write(&certificate, own.cert.pem()).unwrap();
        std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    };
    put(&first);
    std::fs::write(&ca, second.cert.pem()).unwrap();
    let [certificate_path, key_path, ca_path] = [&certificate, &key, &ca].map(|path| path.display());
    let text = format!(
        "upstream: {{xds_servers: [{{server_uri: 'cp:1', channel_creds: [{{type: tls, config: {{ca_certificate_file: '{ca_path}'}}}}]}}]}}\n\
         admin: {{address: '127.0.0.1:0'}}\n\
         listeners: [{{address: '127.0.0.1:0', tls: {{certificate: '{certificate_path}', private_key: '{key_path}'}}}}]\n"
    );
    let config = file("certificates.yaml", &text);
    let (relay, admin, _) = serve(&["--config", config.to_str().unwrap()]);
    let shown = certs(&admin, |shown| shown["certificates"].as_array().unwrap().len() == 2);
    let one = |path: &std::path::Path, serial: &str, until: &str, days: &Value| {
        json!({
            "path": path, "serial_number": serial,
            "subject_alt_names": [{"dns": "relay.example.com"}, {"uri": "spiffe://mesh/relay"}],
            "days_until_expiration": days, "valid_from": "2020-02-29T00:00:00Z", "expiration_time": until,
        })
    };
    let own = &shown["certificates"][0];
    let days = &own["cert_chain"][0]["days_until_expiration"];
    let left: u64 = days.as_str().unwrap().parse().unwrap();
    assert!((50_000..75_000).contains(&left), "{left}");
    let expected = one(&certificate, "0abc", "2222-01-01T00:00:00Z", days);
    assert_eq!(*own, json!({ "ca_cert": [], "cert_chain": [expected] }));
    let trusted = &shown["certificates"][1];
    let days = &trusted["ca_cert"][0]["days_until_expiration"];
    let expected = one(&ca, "07", "2333-01-01T00:00:00Z", days);
    assert_eq!(*trusted, json!({ "ca_cert": [expected], "cert_chain": [] }));
    assert_eq!(shown.get("faults"), None);

    std::fs::write(&key, second.signing_key.serialize_pem()).unwrap();
    let shown = certs(&admin, |shown| shown.get("faults").is_some());
    has(&shown["faults"].to_string(), "is not the key of the first certificate");
    assert_eq!(shown["certificates"][0]["cert_chain"][0]["serial_number"], "0abc");
    let metrics = ask(&admin, "GET /metrics");
    for line in [
        "distributary_certificate_reloads_total{result=\"bad\"} 1".to_owned(),
        format!("distributary_certificate_expiry_timestamp_seconds{{path=\"{certificate_path}\"}} 7952342400"),
        format!("distributary_certificate_expiry_timestamp_seconds{{path=\"{ca_path}\"}} 11455171200"),
    ] {
        has(&metrics, &line);
    }
    put(&second);
    relay.signal("-HUP");
    // Between the writing of the two files, the old certificate and its key may be there once more.
    let is_second = |shown: &Value| shown["certificates"][0]["cert_chain"][0]["serial_number"] == "07";
    certs(&admin, |shown| is_second(shown) && shown.get("faults").is_none());
}

/// A certificate that ends while the relay runs is in the log, and a fault of the relay, at once; until it is renewed.
#[test]
fn a_certificate_ends() {
    let [certificate, key] = ["ends.pem", "ends.key"].map(|name| file(name, ""));
    let put = |left: std::time::Duration| {
        let mut params = CertificateParams::new(["relay.example.com".to_owned()]).unwrap();
        #[expect(clippy::disallowed_methods, reason = "certificates end by the wall clock")]
        let now = std::time::SystemTime::now();
        params.not_after = (now + left).into();
        let signing_key = KeyPair::generate().unwrap();
        std::fs::write(&certificate, params.self_signed(&signing_key).unwrap().pem()).unwrap();
        std::fs::write(&key, signing_key.serialize_pem()).unwrap();
    };
    put(std::time::Duration::from_secs(5));
    let [chain, private] = [&certificate, &key].map(|path| path.display());
    let text = format!(
        "upstream: {{xds_servers: [{{server_uri: '127.0.0.1:1'}}]}}\nadmin: {{address: '127.0.0.1:0'}}\n\
         listeners: [{{address: '127.0.0.1:0', tls: {{certificate: '{chain}', private_key: '{private}'}}}}]\n"
    );
    let config = file("ends.yaml", &text);
    let relay = Relay::start(program(&["serve", "--config", config.to_str().unwrap()]));
    let admin = address_in(&relay.line("admin address"));
    relay.line("a certificate has ended");
    let said = format!("{}: a certificate in it ended at ", certificate.display());
    let (code, _, error) = output(&["status", "--admin", &admin]);
    assert_eq!(code, Some(1));
    has(&error, &said);
    put(std::time::Duration::from_secs(60 * 24 * 3600));
    relay.signal("-HUP");
    relay.line("the certificates have changed");
    let (_, _, error) = output(&["status", "--admin", &admin]);
    assert!(!error.contains(&said), "{error}");
}

/// A reload gives listeners other files and settings, and control planes others; what is not used any more is not shown. Whether a
/// listener has TLS is for a restart.
#[test]
fn settings_change() {
    let [first, second, ca] = [made(1, 2222), made(2, 2222), made(3, 2222)];
    let write = |name: &str, own: &CertifiedKey<KeyPair>| {
        file(&format!("{name}.key"), &own.signing_key.serialize_pem());
        file(&format!("{name}.pem"), &own.cert.pem()).display().to_string()
    };
    let [first, second, ca] = [("one", &first), ("two", &second), ("ca", &ca)]
        .map(|(name, own)| write(&format!("settings-{name}"), own).replace(".pem", ""));
    let text = |server: &str, tls: &str, more: &str| {
        format!(
            "upstream: {{xds_servers: [{{server_uri: '{server}'}}]}}\nlisteners: [{{address: '127.0.0.1:0'{tls}}}]\n\
             admin: {{address: '127.0.0.1:0', tls: {{certificate: '{first}.pem', private_key: '{first}.key'}}}}\n{more}"
        )
    };
    let pair = |name: &str| format!("certificate: '{name}.pem', private_key: '{name}.key'");
    let secure = text("cp:1", &format!(", tls: {{{}}}", pair(&first)), "");
    let config = file("settings.yaml", &secure);
    let relay = Relay::start(program(&["serve", "--config", config.to_str().unwrap()]));
    relay.line("listening for clients");
    let reload = |text: &str| {
        replace(&config, text);
        relay.line("configuration read again")
    };
    let more = format!("minimum_tls_version: 1.3, client_ca: '{ca}.pem'}}, proxy_protocol: {{from: [10.0.0.0/8]}}");
    let tls = format!(", tls: {{{}, {more}", pair(&second));
    let line = reload(&text("cp:1", &tls, "limits: {requests_per_second: 3}\n"));
    has(
        &line,
        "keys=\"listeners[0].tls listeners[0].proxy_protocol limits.requests_per_second\"",
    );
    let line = relay.line("the certificates have changed; new handshakes use them");
    has(&line, "listener=127.0.0.1:");

    let admin = format!("admin: {{address: '127.0.0.1:0', tls: {{{}}}}}", pair(&first));
    let line = reload(&secure.replace(&admin, "admin: {address: '127.0.0.1:0'}"));
    has(
        &line,
        "keys=\"listeners[0].tls listeners[0].proxy_protocol admin.tls limits.requests_per_second\"",
    );
    assert!(relay.line("take effect after a restart").contains("admin.tls"));
}
