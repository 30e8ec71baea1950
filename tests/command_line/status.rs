// SPDX-License-Identifier: Apache-2.0
//! `distributary status` over relays that have the same, differ, fail, and are gone.

use std::path::PathBuf;
use std::process::Child;

use serde_json::Value;

use super::{PATIENCE, Relay, file, has, now, output, printed, program, ran, replace, serve_from};

/// A relay that serves clusters from a file, and a client that asks it for all of them.
struct Replica {
    _relay: Relay,
    client: Child,
    admin: String,
    listener: String,
    file: PathBuf,
}

fn clusters(names: &[&str], timeout: &str) -> String {
    let kind = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    let one = |name: &&str| format!("- {{\"@type\": {kind}, name: \"{name}\", connect_timeout: {timeout}}}\n");
    names.iter().map(one).collect()
}

impl Replica {
    fn start(name: &str, names: &[&str]) -> Self {
        let file = file(&format!("status-{name}.yaml"), &clusters(names, "1s"));
        let source = format!("file://{}", file.display());
        let (relay, admin, listener) = serve_from(&source);
        let mut client = program(&["get", "cds", "--watch", "-o", "name"])
            .args(["--node-id", name, "--server", &listener])
            .spawn()
            .unwrap();
        let lines = printed(&mut client);
        for _ in names {
            assert!(lines.recv_timeout(PATIENCE).unwrap().starts_with("+ "));
        }
        Self {
            _relay: relay,
            client,
            admin,
            listener,
            file,
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

fn status(replicas: &[&Replica], flags: &[&str]) -> (Option<i32>, String, String) {
    let admin: Vec<&str> = replicas.iter().map(|replica| replica.admin.as_str()).collect();
    output(&[&["status", "--admin", &admin.join(",")], flags].concat())
}

/// Asks until the exit code is this one, and the error has so many lines.
fn until(code: i32, lines: usize, replicas: &[&Replica], flags: &[&str]) -> (String, String) {
    let deadline = now() + PATIENCE;
    loop {
        let (found, out, error) = status(replicas, flags);
        if (found, error.lines().count()) == (Some(code), lines) {
            return (out, error);
        }
        assert!(now() < deadline, "{found:?} {out} {error}");
    }
}

/// The cells of a column.
pub(crate) fn column<'a>(table: &'a str, title: &str) -> Vec<&'a str> {
    let mut rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let at = head.iter().position(|found| *found == title).unwrap();
    rows.map(|row| *row.get(at).unwrap()).collect()
}

#[test]
fn two_relays_with_the_same_contents_then_with_others() {
    let (one, other) = (Replica::start("one", &["a", "b"]), Replica::start("other", &["a", "b"]));
    let both = [&one, &other];
    let (out, _) = until(0, 0, &both, &[]);
    assert_eq!(column(&out, "RELAY"), [&one.admin, &other.admin]);
    #[rustfmt::skip]
    let cells = [("VERSION", env!("CARGO_PKG_VERSION")), ("STATE", "READY"), ("CLIENTS", "1"), ("SERVERS", "1/1"),
        ("RESOURCES", "2"), ("REJECTED", "0"), ("CONTENT", "same")];
    for (title, cell) in cells {
        assert_eq!(column(&out, title), [cell; 2], "{title}: {out}");
    }
    let digests = column(&out, "DIGEST");
    assert!(digests[0] == digests[1] && digests[0].len() == 8, "{out}");
    let (_, alone, _) = status(&[&one], &[]);
    assert_eq!(column(&alone, "CONTENT"), ["-"]);

    replace(&other.file, &clusters(&["b", "c"], "1s"));
    let (out, error) = until(1, 2, &both, &[]);
    assert_eq!(column(&out, "CONTENT"), ["differs"; 2], "{out}");
    assert!(error.starts_with("cds a differs: nothing at "), "{error}");
    has(&error, "\ncds c differs: nothing at ");
    let (code, out, _) = status(&both, &["--resources", "-o", "wide"]);
    assert_eq!((code, column(&out, "NAME")), (Some(1), vec!["a", "b", "c"]), "{out}");
    assert_eq!(column(&out, "RELAYS"), [&*one.admin, "all", &other.admin]);
    assert_eq!(column(&out, "CONTENT"), ["differs", "same", "differs"]);
    let (code, out, _) = status(&both, &["-o", "json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["well"]), (Some(1), &Value::Bool(false)), "{out}");
    assert_eq!(json["differences"][0]["name"], "a", "{out}");
    assert_eq!(json["relays"][0]["content"], "differs", "{out}");
    let (code, out, _) = status(&both, &["-o", "yaml", "--servers"]);
    assert_eq!((code, out.contains("state: answering")), (Some(0), true), "{out}");

    replace(&other.file, &clusters(&["a", "b"], "1s"));
    until(0, 0, &both, &["--resources"]);
}

/// A name that only the clients of one relay ask for is no difference.
#[test]
fn what_nobody_asks_the_other_for_is_no_difference() {
    let (one, other) = (Replica::start("asked", &["a"]), Replica::start("unasked", &["a"]));
    let source = ["get", "eds", "only", "--server", &one.listener, "--timeout", "300ms"];
    assert_eq!(output(&source).0, Some(1), "it does not exist");
    until(0, 0, &[&one, &other], &[]);
}

#[test]
fn who_is_gone_and_what_fails() {
    let (one, other) = (Replica::start("left", &["a"]), Replica::start("gone", &["a"]));
    let gone = other.admin.clone();
    drop(other);
    let admin = format!("{},{gone}", one.admin);
    for table in [&[][..], &["--clients"], &["--nacks"], &["--servers"], &["--resources"]] {
        let (code, _, error) = output(&[&["status", "--admin", &admin], table].concat());
        assert_eq!((code, error.lines().count()), (Some(1), 1), "{table:?}");
        assert!(error.starts_with(&format!("no answer from {gone}: ")), "{error}");
    }
    // The others are asked all the same.
    let (code, out, error) = output(&["health", "--admin", &admin]);
    assert_eq!((code, out), (Some(1), format!("{}: READY\n", one.admin)));
    assert!(error.starts_with(&format!("no answer from {gone}: ")), "{error}");
    let (_, out, _) = output(&["status", "--admin", &admin]);
    assert!(out.lines().nth(2).unwrap().contains("NO-ANSWER"), "{out}");

    replace(&one.file, "- {name: 1");
    let (out, error) = until(1, 1, &[&one], &["--servers"]);
    assert!(error.starts_with(&format!("{}: file://", one.admin)), "{error}");
    assert!(column(&out, "SERVER")[0].starts_with("file://"), "{out}");
    let (_lost, admin, _) = serve_from("127.0.0.1:1");
    let (code, out, error) = output(&["status", "--admin", &admin]);
    assert_eq!((code, column(&out, "STATE")), (Some(1), vec!["STARTING"]), "{out}");
    has(&error, &format!("{admin}: STARTING: no control plane has been reached"));
}

/// Names may contain anything; nothing of it reaches a terminal as it is.
#[test]
fn names_steer_no_terminal() {
    let replica = Replica::start("evil\u{1b}[2J", &["a\\e[31m\\u009b2J\\nforged"]);
    for table in ["--resources", "--clients", "--servers"] {
        for form in ["table", "wide", "json", "yaml"] {
            let (code, out, error) = status(&[&replica], &[table, "-o", form]);
            assert_eq!((code, error.as_str()), (Some(0), ""), "{table} {form}");
            let steers = out.contains(|c: char| c.is_control() && c != '\n');
            assert!(!steers && !out.contains("\nforged"), "{table} {form}: {out}");
        }
    }
    let (_, out, _) = status(&[&replica], &["--resources"]);
    assert!(out.contains("a\\u{1b}[31m\\u{9b}2J\\nforged"), "{out}");
    let (_, out, _) = status(&[&replica], &["--clients"]);
    assert_eq!(column(&out, "CDS"), ["SYNCED"], "{out}");
}

/// Into a pipe, the table comes again when it has changed, and nothing steers a terminal.
#[test]
fn watching() {
    let replica = Replica::start("watched", &["a"]);
    let args = ["status", "--resources", "--watch", "--admin", &replica.admin];
    let mut watch = program(&args).spawn().unwrap();
    let lines = printed(&mut watch);
    let next = || lines.recv_timeout(PATIENCE).unwrap();
    assert!(next().starts_with("TYPE   NAME   STATE"));
    assert!(next().starts_with("cds    a      acked"));
    replace(&replica.file, &clusters(&["a", "b"], "1s"));
    assert_eq!(next(), "");
    assert!(next().starts_with("TYPE   NAME   STATE"));
    assert!(next().starts_with("cds    a      acked") && next().starts_with("cds    b      acked"));
    watch.kill().unwrap();
    watch.wait().unwrap();
}

/// An error about relays that the environment names says so.
#[test]
fn who_is_named_by_the_environment() {
    #[rustfmt::skip]
    let rows = [
        ("127.0.0.1:1", "no answer from 127.0.0.1:1, which DISTRIBUTARY_ADMIN names: "),
        ("127.0.0.1:1,bad:", "unix:/path (the value is that of DISTRIBUTARY_ADMIN)"),
    ];
    for (value, words) in rows {
        let (code, _, error) = ran(program(&["health"]).env("DISTRIBUTARY_ADMIN", value));
        assert_ne!(code, Some(0));
        has(&error, words);
    }
}

/// What a file has is waited for like all else; what nobody asks for is no affair of a control plane.
#[test]
fn waiting_for_what_a_file_has() {
    let replica = Replica::start("waits", &["a"]);
    let wait = |what: &str| output(&["wait", what, "--timeout", "300ms", "--admin", &replica.admin]);
    let accepted = "accepted by 1 of 1 clients\n";
    assert_eq!(wait("cds/a"), (Some(0), accepted.to_owned(), String::new()));
    let nobody = "no client asks for it, and no client was given it\n";
    let nobody = format!("not accepted within 300ms\n{}: {nobody}", replica.admin);
    assert_eq!(wait("cds/b"), (Some(1), String::new(), nobody));
}
