// SPDX-License-Identifier: Apache-2.0
//! The address of the probes: four paths and nothing else, while the admin address is elsewhere.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::{Relay, address_in, ask, file, has, output, program, replace, serve, until};

const PATHS: [&str; 4] = ["/ready", "/live", "/healthz", "/metrics"];

/// Starts a relay. Returns it, its admin address, and that of its probes.
fn start(name: &str) -> (Relay, String, String) {
    let resources = file(&format!("{name}-resources.yaml"), "resources: []\n");
    let text = format!(
        "upstream: {{xds_servers: [{{server_uri: 'file://{}'}}]}}\nlisteners: [{{address: '127.0.0.1:0'}}]\n\
         admin: {{address: '127.0.0.1:0', rules: [{{allow: []}}]}}\nprobes: {{address: '127.0.0.1:0'}}\n",
        resources.display()
    );
    let path = file(&format!("{name}.yaml"), &text);
    let args = ["serve", "--log-format", "json", "--config", path.to_str().unwrap()];
    let relay = Relay::start(program(&args));
    let admin = address_in(&relay.line("\"admin address\""));
    let probes = address_in(&relay.line("\"address of the probes\""));
    (relay, admin, probes)
}

fn status(answer: &str) -> u16 {
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no HTTP: {answer}"))
}

/// A web page under a name of its own, which resolves to this address, reads nothing but probes and metrics.
#[test]
fn the_admin_address_has_names() {
    let text = "upstream: {xds_servers: [{server_uri: '127.0.0.1:1'}]}\nlisteners: [{address: '127.0.0.1:0'}]\n\
                admin: {address: '127.0.0.1:0', hosts: relay.example.com}\n";
    let path = file("hosts-of-the-admin.yaml", text);
    let (_relay, admin, _) = serve(&["--config", path.to_str().unwrap()]);
    let asks = |host: &str, request: &str| {
        let mut stream = TcpStream::connect(&admin).unwrap();
        let head = format!("host: {host}\r\ncontent-length: 0\r\nconnection: close");
        write!(stream, "{request} HTTP/1.1\r\n{head}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    #[rustfmt::skip]
    let reads = ["GET /", "GET /config_dump", "GET /clients", "GET /certs", "GET /events", "GET /page.js",
        "POST /v3/discovery:client_status"];
    for read in reads {
        let answer = asks("evil.example:9901", read);
        assert_eq!(status(&answer), 403, "{read}: {answer}");
        has(&answer, "add the name there");
    }
    let port = admin.rsplit_once(':').unwrap().1;
    #[rustfmt::skip]
    let own = ["127.0.0.1:8080", "localhost:8080", "[::1]", "relay.example.com", &format!("localhost:{port}")];
    for host in own {
        assert_eq!(status(&asks(host, "GET /config_dump")), 200, "{host}");
    }
    for path in ["/ready", "/live", "/healthz", "/metrics", "/stats/prometheus"] {
        assert_ne!(status(&asks("evil.example", &format!("GET {path}"))), 403, "{path}");
    }
    #[rustfmt::skip]
    let orders = [("evil.example", 403), ("localhost:1", 403), ("relay.example.com:80", 200), (&*admin, 200)];
    for (host, code) in orders {
        assert_eq!(status(&asks(host, "POST /healthcheck/ok")), code, "{host}");
    }
}

/// Whoever reaches the probes gets neither what the admin address shows nor what it orders.
#[test]
fn there_is_nothing_else() {
    let (relay, admin, probes) = start("probes-only");
    until(|| status(&ask(&probes, "GET /ready")) == 200, || "not ready");
    // The rules are those of the admin address.
    assert_eq!(status(&ask(&admin, "GET /metrics")), 403);
    has(&ask(&probes, "GET /metrics"), "\ndistributary_connections 0\n");
    for path in PATHS {
        assert_eq!(status(&ask(&probes, &format!("GET {path}"))), 200, "{path}");
        assert_eq!(status(&ask(&probes, &format!("HEAD {path}"))), 200, "{path}");
        let answer = ask(&probes, &format!("POST {path}"));
        assert_eq!(status(&answer), 405, "{path}");
    }
    let others = "/ /help /clusters /clients /config_dump /certs /server_info /events /stats /stats/prometheus /healthz/ready \
        /ready/ //ready /ready/../clients /drain_listeners /reload /validate /healthcheck/fail /logging \
        /v3/discovery:client_status /envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus";
    for path in others.split(' ') {
        for method in ["GET", "POST"] {
            let answer = ask(&probes, &format!("{method} {path}"));
            assert_eq!(status(&answer), 404, "{method} {path}: {answer}");
        }
    }
    relay.signal("-TERM");
    relay.line("draining");
}

/// HTTP/2, garbage and long heads are refused; each connection ends after its answer, and idle ones are not in the way.
#[test]
fn strangers_do_no_harm() {
    let (_relay, _, probes) = start("probes-strangers");
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&probes).unwrap()).collect();
    let long = format!("GET /ready HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "x".repeat(64 << 10));
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0";
    for said in [preface, "\u{16}\u{3}\u{1}\0\u{5}hello", "SSH-2.0-x\r\n\r\n", &*long] {
        let mut stream = TcpStream::connect(&probes).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        // The relay may close before everything is written.
        let _ = stream.write_all(said.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    let mut stream = TcpStream::connect(&probes).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let twice = b"GET /live HTTP/1.1\r\nhost: x\r\n\r\nGET /live HTTP/1.1\r\nhost: x\r\n\r\n";
    stream.write_all(twice).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer.matches("LIVE").count(), 1, "{answer}");
    drop(idle);
}

/// The address is bound at the start, and stays; another one waits for a restart.
#[test]
fn it_is_bound_once() {
    let (relay, _, probes) = start("probes-bound");
    let path = file("probes-bound.yaml", "");
    let text = "upstream: {xds_servers: [{server_uri: cp:1}]}\nlisteners: [{address: '127.0.0.1:0'}]\nadmin: {address: '127.0.0.1:0'}\n";
    replace(&path, text);
    let line = relay.line("take effect after a restart");
    assert!(line.contains("probes"), "{line}");
    assert_eq!(status(&ask(&probes, "GET /live")), 200);

    let taken = file("probes-taken.yaml", &format!("{text}probes: {{address: '{probes}'}}\n"));
    let (code, _, error) = output(&["serve", "--config", taken.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{error}");
    has(&error, &format!("probes.address: cannot listen on {probes}: "));
}
