// SPDX-License-Identifier: Apache-2.0
//! `distributary validate --against`: what another configuration would change in a running relay. Nothing changes.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;

use crate::{PORTS, Relay, ask, file, has, output, program, serve, until};

/// A relay with a file, and where it is asked.
struct Stage {
    relay: Relay,
    path: PathBuf,
    admin: String,
    listener: String,
}

impl Stage {
    fn start(name: &str, lines: &str) -> Self {
        let path = file(&format!("against-{name}.yaml"), &whole(lines));
        let (relay, admin, listener) = serve(&[path.to_str().unwrap()]);
        Self {
            relay,
            path,
            admin,
            listener,
        }
    }

    /// Asks about a file with these lines. Returns its path as well.
    fn ask(&self, text: &str) -> (PathBuf, (Option<i32>, String, String)) {
        let new = self.path.with_extension("new.yaml");
        std::fs::write(&new, text).unwrap();
        let said = output(&["validate", new.to_str().unwrap(), "--against", &self.admin]);
        (new, said)
    }

    /// Asks about a file that is refused, with all these words. Returns what is said.
    fn refused(&self, text: &str, words: &[&str]) -> String {
        let (new, (code, out, error)) = self.ask(text);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{text}");
        let new = new.display().to_string();
        words.iter().for_each(|word| has(&error, &word.replace("NEW", &new)));
        error
    }
}

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// Clusters come from a file, so that a client has something to wait for.
fn whole(lines: &str) -> String {
    let text = format!("resources: [{{'@type': {CDS}, name: web, connect_timeout: 1s}}]\n");
    let resources = file("against-clusters.yaml", &text).display().to_string();
    format!("upstream: {{xds_servers: [{{server_uri: '{resources}'}}]}}\n{PORTS}{lines}")
}

/// Each key is said with the moment of its effect, as after a reload; nothing changes, also not by `/reload` with a word behind it.
#[test]
fn what_would_change() {
    let stage = Stage::start("changes", "");
    let lines = "node: {id: other}\nlimits: {connections: 1, names_per_stream: 100}\ntimers: {drain: 1s}\n";
    let (_, (code, out, error)) = stage.ask(&whole(lines));
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let expected = "node: changed (needs a restart)\n\
        limits.connections: 0 -> 1 (at once)\n\
        limits.names_per_stream: 200000 -> 100 (for new connections and streams)\n\
        timers.drain: 20s -> 1s (at once)\n\
        a reload would end 0 streams of clients\n";
    assert_eq!(out, expected);
    let (_, said) = stage.ask(&whole(""));
    assert_eq!(said, (Some(0), "nothing would change\n".to_owned(), String::new()));
    for query in ["dry_run", "dry"] {
        let answer = ask(&stage.admin, &format!("POST /reload?{query}"));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    let metrics = ask(&stage.admin, "GET /metrics");
    for line in [
        "reloads_total{result=\"changed\"} 0",
        "configuration_current 1",
        "configuration_waiting 0",
    ] {
        has(&metrics, &format!("distributary_{line}\n"));
    }
}

/// S-07: the streams are counted that other rules end, and a reload ends just these.
#[test]
fn which_streams_would_end() {
    let stage = Stage::start("streams", "");
    let watch = |id: &str| {
        let mut client = program(&["get", "cds", "--watch", "-o", "name"]);
        client.args(["--server", &stage.listener, "--node-id", id]);
        Relay::start(client)
    };
    let _clients = ["web-1", "web-2", "api-1"].map(watch);
    let streams = || {
        let answer = ask(&stage.admin, "GET /clients?format=json");
        ["web-1", "web-2", "api-1"].map(|id| answer.contains(&format!("\"{id}\"")))
    };
    let until = |expected: [bool; 3]| until(|| streams() == expected, || ask(&stage.admin, "GET /clients"));
    until([true; 3]);
    let rules = whole("rules: [{name: api, nodes: {id: 'api-*'}}]\n");
    let (new, (code, out, error)) = stage.ask(&rules);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let expected = "rules or secrets: changed (at once)\na reload would end 2 streams of clients\n";
    assert_eq!(out, expected);
    assert_eq!(streams(), [true; 3]);
    std::fs::rename(new, &stage.path).unwrap();
    until([false, false, true]);
}

/// What is wrong is said with the line in the new file, and relative paths begin where the relay's own file is.
#[test]
fn what_is_wrong_with_it() {
    let stage = Stage::start("wrong", "");
    let words = ["answers 422", "NEW:4:17: limits.views: "];
    stage.refused(&whole("limits: {views: many}\n"), &words);
    stage.refused("listeners:\n  - {address: [\n", &["answers 422", "NEW:2:15: not YAML"]);
    let tls = "listeners: [{address: '127.0.0.1:1', tls: {certificate: nowhere.pem, private_key: nowhere.key}}]\n";
    let base = whole("").replace("listeners: [{address: '127.0.0.1:0'}]\n", tls);
    let beside = stage.path.with_file_name("nowhere.pem");
    let words = format!("listeners[0].tls: {}: cannot be read: ", beside.display());
    stage.refused(&base, &[&words]);
}

/// Files are looked for at the relay, and nothing of them is answered: each of these has a word that nobody may learn.
#[test]
fn what_is_in_files_is_not_told() {
    let stage = Stage::start("secret", "");
    let secret = file("against-secret", "{\"keys\": [{\"hush\": 1}, \"hush\"], \"hush\": {\n");
    let key = r#"{"kty": "OKP", "crv": "Ed25519", "kid": "hush", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    let keys = file("against-keys", &format!("{{\"keys\": [{key}, {key}]}}"));
    let bootstrap = r#"{"xds_servers": [{"server_uri": "hush hush"}], "node": {"id": ["hush"]}}"#;
    let bootstrap = file("against-bootstrap", bootstrap);
    let [secret, keys, bootstrap] = [secret, keys, bootstrap].map(|path| path.display().to_string());
    let upstream = |path: &str| format!("upstream: '{path}'\nlisteners: [{{address: '127.0.0.1:0'}}]\n");
    let tls = format!("127.0.0.1:0', tls: {{certificate: '{secret}', private_key: '{secret}'}}}}]");
    #[rustfmt::skip]
    let rows = [
        (upstream(&secret), format!("{secret}:1:41: something is wrong here")),
        (upstream(&bootstrap), format!("{bootstrap}:1:")),
        (upstream("/dev/zero"), "it is not a regular file".to_owned()),
        (whole(&format!("descriptors: ['{secret}', nowhere.pb]\n")), "nowhere.pb: cannot be read".to_owned()),
        (whole(&format!("jwt: [{{issuer: i, audiences: [a], jwks_file: '{keys}'}}]\nrules: [{{identities: 'jwt:i#*'}}]\n")),
            "jwt[0]: its keys cannot be used".to_owned()),
        (whole("").replace("127.0.0.1:0'}]", &tls), secret.clone()),
    ];
    for (text, words) in rows {
        let error = stage.refused(&text, &[&words]);
        assert!(!error.contains("hush"), "{error}");
    }
}

/// A text may have so many bytes, and who may not change anything may not ask.
#[test]
fn who_may_ask_and_how_much() {
    let admin = "admin: {address: '127.0.0.1:0', rules: [{allow: read}]}";
    let stage = Stage::start("rights", "");
    let long = format!("{}#{}\n", whole(""), "x".repeat(10 << 20));
    let (new, (code, _, error)) = stage.ask(&long);
    assert_eq!(code, Some(1));
    assert_eq!(error, format!("{}: a relay takes at most 4 MiB\n", new.display()));
    let large = format!("{}#{}\n", whole(""), "x".repeat(3 << 20));
    assert_eq!(stage.ask(&large).1.1, "nothing would change\n");
    // Others may send more.
    let mut stream = TcpStream::connect(&stage.admin).unwrap();
    let length = long.len();
    let head = format!("host: {}\r\ncontent-length: {length}", stage.admin);
    write!(stream, "POST /validate HTTP/1.1\r\n{head}\r\n\r\n").unwrap();
    stream.write_all(&long.as_bytes()[..(4 << 20) + 1]).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    let guarded = Stage::start("guarded", "");
    let text = whole("").replace("admin: {address: '127.0.0.1:0'}", admin);
    std::fs::write(&guarded.path, text).unwrap();
    guarded.relay.line("configuration read again");
    guarded.refused(&whole(""), &["answers 403", "may not change anything here"]);
}
