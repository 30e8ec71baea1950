// SPDX-License-Identifier: Apache-2.0
//! What operators are told of a control plane that was never reached, before the first client.

use std::net::TcpListener;
use std::path::Path;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use serde_json::Value;

use super::status::column;
use super::{PATIENCE, PORTS, Relay, address_in, ask, fails, file, has, now, output, prints, program, serve, until};

/// Returns a certificate for this name that signs itself.
fn signed(name: &str) -> CertifiedKey<KeyPair> {
    generate_simple_self_signed([name.to_owned()]).unwrap()
}

/// A control plane: a relay that serves files, at this address. Returns it with its port.
fn plane(name: &str, listen: &str, tls: Option<&CertifiedKey<KeyPair>>) -> (Relay, String) {
    let resources = file(&format!("{name}-resources.yaml"), "resources: []\n");
    let tls = tls.map(|own| {
        let certificate = file(&format!("{name}.pem"), &own.cert.pem());
        let key = file(&format!("{name}.key"), &own.signing_key.serialize_pem());
        let (certificate, key) = (certificate.display(), key.display());
        format!(", tls: {{certificate: '{certificate}', private_key: '{key}'}}")
    });
    let config = format!(
        "upstream: {{xds_servers: [{{server_uri: 'file://{}'}}]}}\nadmin: {{address: '127.0.0.1:0'}}\n\
         listeners: [{{address: '{listen}'{}}}]\n",
        resources.display(),
        tls.unwrap_or_default()
    );
    let config = file(&format!("{name}-plane.yaml"), &config);
    let (relay, _, address) = serve(&["--config", config.to_str().unwrap()]);
    (relay, address.rsplit(':').next().unwrap().to_owned())
}

/// A relay with these servers. Returns it with its admin address.
fn relay(name: &str, servers: &str) -> (Relay, String) {
    let text = format!("upstream: {{xds_servers: [{servers}]}}\n{PORTS}");
    let config = file(&format!("{name}.yaml"), &text);
    let args = ["serve", "--log-format", "json", "--config", config.to_str().unwrap()];
    let relay = Relay::start(program(&args));
    let admin = address_in(&relay.line("admin address"));
    (relay, admin)
}

/// Returns the entry of a server with TLS that trusts this authority.
fn secured(uri: &str, trusted: &Path) -> String {
    let tls = format!(
        "{{type: tls, config: {{ca_certificate_file: '{}'}}}}",
        trusted.display()
    );
    format!("{{server_uri: '{uri}', channel_creds: [{tls}]}}")
}

/// Checks that everything that operators ask says what the log says.
fn assert_all_say(name: &str, uri: &str, entry: &str, words: &str) {
    let (relay, admin) = relay(name, entry);
    let line: Value = serde_json::from_str(&relay.line("control plane not reached")).unwrap();
    let logged = line.get("error").unwrap().as_str().unwrap();
    assert!(logged.contains(words), "{name}: {logged}");

    let answer = ask(&admin, "GET /ready");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 503 "), "{name}: {head}");
    let ready = format!("STARTING: no control plane has been reached yet; {uri}: ");
    assert!(body.starts_with(&ready) && body.lines().count() == 1, "{name}: {body}");
    has(body, words);

    for wait in [&[][..], &["--wait", "300ms"]] {
        let error = fails(1, &[&["health", "--admin", &admin], wait].concat(), &ready);
        has(&error, words);
    }

    let (code, out, error) = output(&["status", "--admin", &admin]);
    assert_eq!((code, column(&out, "SERVERS")), (Some(1), vec!["0/1"]), "{name}: {out}");
    has(&error, &format!("{admin}: {uri} unreachable since "));
    assert!(error.lines().all(|line| line.contains(words)), "{name}: {error}");

    let (code, out, error) = output(&["status", "--servers", "--admin", &admin]);
    assert_eq!((code, column(&out, "STATE")), (Some(1), vec!["unreachable"]), "{out}");
    has(&error, words);
    let (code, out, _) = output(&["status", "--servers", "-o", "json", "--admin", &admin]);
    assert_eq!(code, Some(1), "{name}");
    let shown: Value = serde_json::from_str(&out).unwrap();
    let said = shown.pointer("/relays/0/servers/0/last_error").unwrap();
    assert!(said.as_str().unwrap().contains(words), "{name}: {out}");

    let clusters = ask(&admin, "GET /clusters");
    for (key, value) in [("state", "unreachable"), ("last_error", ""), ("why", uri)] {
        has(&clusters, &format!("#old::{uri}::{key}::{value}"));
    }
    let said = clusters.lines().filter(|line| line.contains(words)).count();
    assert_eq!(said, 2, "{name}: {clusters}");
}

/// A port where nobody listens, also of a server that is polled, and a name that no resolver is asked for, because a part of it is empty.
#[test]
fn where_nobody_is() {
    let refused = "cannot connect to 127.0.0.1:1: Connection refused";
    for (name, uri, words) in [
        ("contact-port", "127.0.0.1:1", refused),
        ("contact-rest", "rest+http://127.0.0.1:1", refused),
        ("contact-name", "wrong..example:1", "cannot resolve wrong..example: "),
    ] {
        assert_all_say(name, uri, &format!("{{server_uri: '{uri}'}}"), words);
    }
}

#[test]
fn an_untrusted_certificate() {
    let (_plane, port) = plane("contact-untrusted", "127.0.0.1:0", Some(&signed("localhost")));
    let trusted = file("contact-untrusted-ca.pem", &signed("localhost").cert.pem());
    let uri = format!("localhost:{port}");
    let words = "the server's certificate is signed by no authority that the relay trusts";
    assert_all_say("contact-untrusted", &uri, &secured(&uri, &trusted), words);
}

/// `health --wait` ends as soon as the relay is ready. Then nothing is wrong any more, although no client has come.
#[test]
fn a_control_plane_that_comes_later() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let uri = format!("127.0.0.1:{port}");
    let (relay, admin) = relay("contact-later", &format!("{{server_uri: '{uri}'}}"));
    relay.line("control plane not reached");
    let waits = program(&["health", "--wait", "30s", "--admin", &admin])
        .spawn()
        .unwrap();
    let (_plane, _) = plane("contact-later", &uri, None);
    let waited = waits.wait_with_output().unwrap();
    assert_eq!((waited.status.code(), waited.stdout), (Some(0), b"READY\n".to_vec()));
    let (code, out, error) = output(&["status", "--servers", "--admin", &admin]);
    assert_eq!((code, column(&out, "STATE")), (Some(0), vec!["unused"]), "{error}");
}

/// A server that was never tried is unused, not unreachable. One that was tried first, in vain, is unreachable until it is there.
#[test]
fn only_what_was_tried_has_failed() {
    let (_plane, port) = plane("contact-two", "127.0.0.1:0", None);
    let right = format!("{{server_uri: '127.0.0.1:{port}'}}");
    let wrong = "{server_uri: '127.0.0.1:1'}";
    for (name, servers, wanted) in [
        ("contact-second", format!("{right}, {wrong}"), (0, ["unused", "unused"])),
        (
            "contact-first",
            format!("{wrong}, {right}"),
            (1, ["unreachable", "unused"]),
        ),
    ] {
        let (_relay, admin) = relay(name, &servers);
        prints(&["health", "--wait", "30s", "--admin", &admin]);
        let (code, out, _) = output(&["status", "--servers", "--admin", &admin]);
        assert_eq!(
            (code, &column(&out, "STATE")[..]),
            (Some(wanted.0), &wanted.1[..]),
            "{name}"
        );
    }
}

/// A relay that is not there is waited for, too, but not for longer than was said.
#[test]
fn waiting_in_vain() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = gone.local_addr().unwrap().to_string();
    let begun = now();
    let words = format!("no answer from {silent}: it took longer than 1.0s");
    fails(1, &["health", "--wait", "500ms", "--admin", &silent], &words);
    assert!(now() < begun + PATIENCE / 10, "it is not waited for longer");
    fails(2, &["health", "--wait", "soon"], "write 250ms, 3s, 5m or 1h");
}

/// One of two sources is there: the other one is named, and what is wrong with it. Nobody asks for anything, and what the files have is
/// there all the same.
#[test]
fn the_source_that_is_missing_is_named() {
    let resources =
        "- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a, connect_timeout: 1s}\n";
    let resources = file("contact-source-resources.yaml", resources);
    let source = "sources: [{name: endpoints, types: [eds], xds_servers: [{server_uri: '127.0.0.1:1'}]}]";
    let resources = resources.display();
    let config = format!("upstream: {{xds_servers: [{{server_uri: '{resources}'}}]}}\n{source}\n{PORTS}");
    let config = file("contact-source.yaml", &config);
    let (_relay, admin, _) = serve(&["--config", config.to_str().unwrap()]);
    let said = "STARTING: no control plane of the source `endpoints` has been reached yet; 127.0.0.1:1: cannot connect";
    let ready = || ask(&admin, "GET /ready");
    until(|| ready().contains(&format!("\r\n\r\n{said}")), ready);
    let (_, out, _) = output(&["status", "--servers", "--admin", &admin]);
    assert_eq!(column(&out, "RESOURCES"), ["1", "0"], "{out}");
}
