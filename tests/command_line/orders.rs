// SPDX-License-Identifier: Apache-2.0
//! What somebody types: a configuration without a flag, orders to running relays, names of relays, and what keys mean.

use std::path::PathBuf;
use std::time::Duration;

use super::{PATIENCE, Relay, file, now, output, program, serve, with_a_client};

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
    let reload = |more: &[&str]| output(&[&["reload", "-a", &admin], more].concat());
    std::fs::copy(&changed, &path).unwrap();
    let (code, out, error) = reload(&[]);
    assert_eq!(code, Some(0), "{error}");
    // The relay may have seen by itself that the file is another one.
    let said = ["limits.views: ", "nothing has changed"];
    assert!(said.iter().any(|said| out.starts_with(said)), "{out}");
    std::fs::write(&path, "limits: {views: many}\n").unwrap();
    let (code, out, error) = reload(&[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        error.contains("answers 422: ") && error.contains("limits.views"),
        "{error}"
    );
}

#[test]
fn levels_are_shown_and_changed() {
    let path = file("levelled.yaml", TEXT);
    let (_relay, admin) = start(path.to_str().unwrap());
    let level = |more: &[&str]| output(&[&["log-level", "--admin", &admin], more].concat());
    let (code, out, _) = level(&["upstream=debug"]);
    assert!(code == Some(0) && out.contains("upstream: debug"), "{out}");
    let (code, out, _) = level(&[]);
    assert!(code == Some(0) && out.contains("upstream: debug"), "{out}");
    let (code, _, error) = level(&["loud"]);
    assert!(code == Some(1) && error.contains("answers 400"), "{error}");
}

#[test]
fn one_configuration_is_named() {
    let path = file("named.yaml", TEXT);
    let path = path.to_str().unwrap();
    let (code, _, error) = output(&["serve", path, "-c", "other.yaml"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("named twice"), "{error}");
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
    let (code, out, error) = output(&["health", "--admin", "relay.invalid:1"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(error.contains("the name relay.invalid has no address"), "{error}");
    let (code, out, _) = output(&["status", "--admin", &format!("{admin},relay.invalid")]);
    assert!(
        code == Some(1) && out.contains("relay.invalid:9901") && out.contains("NO-ANSWER"),
        "{out}"
    );
}

#[test]
fn keys_are_explained() {
    let (code, out, _) = output(&["explain", "timers.drain"]);
    assert!(code == Some(0) && out.starts_with("timers.drain"), "{out}");
    let (code, out, _) = output(&["explain", "clock_skew"]);
    assert!(code == Some(0) && out.starts_with("jwt.clock_skew"), "{out}");
    let (code, _, error) = output(&["explain", "timer.drain"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("did you mean `timers.drain`?"), "{error}");
    for (command, said) in [
        (vec!["explain", "--schema"], ""),
        (
            vec!["schema"],
            "`schema` goes with the next version; write `explain --schema`\n",
        ),
    ] {
        let of = |key| output(&[&command[..], &[key]].concat());
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
        let done = program(&["validate", file]).current_dir(from).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let whole = folder.join("relay.yaml");
    for (file, from) in [("relay.yaml", &folder), (whole.to_str().unwrap(), &PathBuf::from("/"))] {
        assert_eq!(validate(file, from), (Some(0), String::new()), "{file}");
    }
    std::fs::create_dir_all(folder.join("etc")).unwrap();
    std::fs::write(folder.join("etc/relay.yaml"), text).unwrap();
    let (code, warning) = validate("etc/relay.yaml", &folder);
    assert_eq!(code, Some(0), "{warning}");
    assert!(
        warning.contains("./resources is taken from the working directory"),
        "{warning}"
    );
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
    for command in [
        "serve",
        "validate",
        "status",
        "get",
        "health",
        "reload",
        "log-level",
        "explain",
        "holds",
        "wait",
    ] {
        let (_, help, _) = output(&[command, "--help"]);
        assert!(help.contains("Examples:\n  $ distributary"), "{command}: {help}");
        let page = std::fs::read_to_string(folder.join(format!("distributary-{command}.1"))).unwrap();
        assert!(
            page.contains(".SH \"EXIT STATUS\"") && page.contains(".SH \"EXAMPLES\""),
            "{command}"
        );
    }
    let page = std::fs::read_to_string(folder.join("distributary-serve.1")).unwrap();
    assert!(
        page.contains(".SH \"ENVIRONMENT\"") && page.contains("DISTRIBUTARY_CONFIG"),
        "{page}"
    );
    assert!(page.contains(".SH \"FILES\""), "{page}");
}
