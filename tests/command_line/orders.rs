// SPDX-License-Identifier: Apache-2.0
//! What somebody types: a configuration without a flag, orders to running relays, names of relays, and what keys mean.

use std::path::PathBuf;
use std::time::Duration;

use super::{PATIENCE, Relay, fails, file, has, now, output, prints, program, ran, serve, with_a_client};

/// A relay with this file, and its admin address.
fn start(path: &str) -> (Relay, String) {
    let (relay, admin, _) = serve(&[path, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    (relay, admin)
}

const TEXT: &str = "upstream: {xds_servers: [{server_uri: 127.0.0.1:1}]}\n";

#[test]
fn a_reload_says_what_changes() {
    let path = file("ordered.yaml", TEXT);
    let (_relay, admin) = start(path.to_str().unwrap());
    let changed = file("ordered.new.yaml", &format!("{TEXT}limits: {{views: 3}}\n"));
    std::fs::copy(&changed, &path).unwrap();
    let (code, out, error) = output(&["reload", "-a", &admin]);
    assert_eq!(code, Some(0), "{error}");
    // The relay may have seen by itself that the file is another one.
    let said = ["limits.views: ", "nothing has changed"];
    assert!(said.iter().any(|said| out.starts_with(said)), "{out}");
    std::fs::write(&path, "limits: {views: many}\n").unwrap();
    let error = fails(1, &["reload", "-a", &admin], "answers 422: ");
    has(&error, "limits.views");
}

#[test]
fn levels_are_shown_and_changed() {
    let path = file("levelled.yaml", TEXT);
    let (_relay, admin) = start(path.to_str().unwrap());
    has(
        &prints(&["log-level", "--admin", &admin, "upstream=debug"]),
        "upstream: debug",
    );
    has(&prints(&["log-level", "--admin", &admin]), "upstream: debug");
    fails(1, &["log-level", "--admin", &admin, "loud"], "answers 400");
}

#[test]
fn one_configuration_is_named() {
    let path = file("named.yaml", TEXT);
    let path = path.to_str().unwrap();
    fails(2, &["serve", path, "-c", "other.yaml"], "named twice");
    // That of the environment is replaced.
    let mut command = program(&["serve", path, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.env("DISTRIBUTARY_CONFIG", "nowhere.yaml");
    Relay::start(command).line("listening for clients");
}

#[test]
fn names_of_relays() {
    let path = file("called.yaml", TEXT);
    let (_relay, admin) = start(path.to_str().unwrap());
    let (_, port) = admin.rsplit_once(':').unwrap();
    // The name may have an address more, at which there is no relay.
    let (_, out, error) = output(&["log-level", "--admin", &format!("http://localhost:{port}/")]);
    assert!(out.contains("upstream: info"), "{out} {error}");
    let words = "the name relay.invalid has no address";
    fails(1, &["health", "--admin", "relay.invalid:1"], words);
    let (code, out, _) = output(&["status", "--admin", &format!("{admin},relay.invalid")]);
    assert_eq!(code, Some(1));
    has(&out, "relay.invalid:9901");
    has(&out, "NO-ANSWER");
}

#[test]
fn keys_are_explained() {
    for (key, whole) in [("timers.drain", "timers.drain"), ("clock_skew", "jwt.clock_skew")] {
        let out = prints(&["explain", key]);
        assert!(out.starts_with(whole), "{out}");
    }
    fails(1, &["explain", "timer.drain"], "did you mean `timers.drain`?");
    let goes = "`schema` goes with the next version; write `explain --schema`\n";
    for (command, said) in [(&["explain", "--schema"][..], ""), (&["schema"], goes)] {
        let of = |key| output(&[command, &[key]].concat());
        let (code, out, error) = of("limits");
        let schema: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert!(code == Some(0) && schema["properties"]["views"].is_object(), "{out}");
        assert_eq!(error, said);
        assert_eq!(of("nothing").0, Some(1));
    }
}

/// Files that stand beside the configuration are found from everywhere; those of the working directory are, with a warning.
#[test]
fn paths_begin_at_the_file() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("beside");
    std::fs::create_dir_all(folder.join("resources")).unwrap();
    std::fs::write(folder.join("resources/a.yaml"), "resources: []\n").unwrap();
    let text = "upstream: {xds_servers: [{server_uri: ./resources}]}\n";
    std::fs::write(folder.join("relay.yaml"), text).unwrap();
    let validate = |file: &str, from: &PathBuf| {
        let (code, _, error) = ran(program(&["validate", file]).current_dir(from));
        (code, error)
    };
    let whole = folder.join("relay.yaml");
    for (file, from) in [("relay.yaml", &folder), (whole.to_str().unwrap(), &PathBuf::from("/"))] {
        assert_eq!(validate(file, from), (Some(0), String::new()), "{file}");
    }
    std::fs::create_dir_all(folder.join("etc")).unwrap();
    std::fs::write(folder.join("etc/relay.yaml"), text).unwrap();
    let (code, warning) = validate("etc/relay.yaml", &folder);
    assert_eq!(code, Some(0), "{warning}");
    has(&warning, "./resources is taken from the working directory");
}

/// One client need not wait for the turns of a herd that is none.
#[test]
fn few_clients_leave_soon() {
    let (mut relay, _, client, _) = with_a_client("few.yaml", "drain_announce: 0s, drain: 60s");
    let began = now();
    relay.signal("-INT");
    let line = relay.line("draining");
    assert!(line.contains("another signal stops at once"), "{line}");
    drop(client);
    assert_eq!(relay.child.wait().unwrap().code(), Some(0));
    assert!(began.elapsed() < PATIENCE.min(Duration::from_secs(20)));
}

/// The help of each command has its examples, and its manual page says what the exit codes mean.
#[test]
fn help_has_examples_and_pages_have_exit_codes() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pages");
    assert_eq!(output(&["manual", folder.to_str().unwrap()]).0, Some(0));
    let page = |command: &str| std::fs::read_to_string(folder.join(format!("distributary-{command}.1"))).unwrap();
    for command in "serve validate status get health reload log-level explain holds wait".split(' ') {
        has(&output(&[command, "--help"]).1, "Examples:\n  $ distributary");
        for title in ["EXIT STATUS", "EXAMPLES"] {
            has(&page(command), &format!(".SH \"{title}\""));
        }
    }
    for words in [".SH \"ENVIRONMENT\"", "DISTRIBUTARY_CONFIG", ".SH \"FILES\""] {
        has(&page("serve"), words);
    }
}
