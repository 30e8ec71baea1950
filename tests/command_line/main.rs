// SPDX-License-Identifier: Apache-2.0
//! The program as a process: exit codes, what it prints, which setting wins, how it stops.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod admin_tls;
mod adopted;
mod against;
mod bootstrap;
mod certificates;
mod compare;
mod doors;
mod first_contact;
mod get;
mod health;
mod limits;
mod orders;
mod pages;
mod probes;
mod reload;
mod request;
mod shells;
mod spiffe;
mod standing;
mod status;
mod supervisor;
mod survey;
mod validate;
mod words;

use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use peers::process::{Process as Relay, address_in};
use peers::{PATIENCE, agent, now, plane, process};

/// A relay that needs no upstream, on free ports.
#[rustfmt::skip]
const SERVE: [&str; 7] = ["serve", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

/// Variables of other programs that mean something to the relay.
const OURS: [&str; 2] = ["RUST_LOG", "SPIFFE_ENDPOINT_SOCKET"];

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_distributary"));
    let ours = |name: &str| name.starts_with("DISTRIBUTARY_") || name.starts_with("GRPC_XDS_") || OURS.contains(&name);
    for (name, _) in std::env::vars().filter(|(name, _)| ours(name)) {
        command.env_remove(name);
    }
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn output(args: &[&str]) -> (Option<i32>, String, String) {
    ran(&mut program(args))
}

/// Returns the exit code of a command, what it prints, and what it says.
fn ran(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Returns what a command prints that ends well and says nothing.
#[track_caller]
fn prints(args: &[&str]) -> String {
    let (code, out, error) = output(args);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{args:?}: {out}");
    out
}

/// A command prints nothing, says these words, and ends with this code. Returns all that it says.
#[track_caller]
fn fails(code: i32, args: &[&str], words: &str) -> String {
    let (found, out, error) = output(args);
    assert_eq!((found, out.as_str()), (Some(code), ""), "{args:?}: {error}");
    has(&error, words);
    error
}

#[track_caller]
fn has(text: &str, words: &str) {
    assert!(text.contains(words), "no {words:?} in {text}");
}

/// What most relays of the tests have in their files: their addresses, on free ports.
const PORTS: &str = "admin: {address: '127.0.0.1:0'}\nlisteners: [{address: '127.0.0.1:0'}]\n";

/// Starts a relay. Returns it, its admin address, and where its clients connect.
fn serve(args: &[&str]) -> (Relay, String, String) {
    let relay = Relay::start(program(&[&["serve"], args].concat()));
    let admin = address_in(&relay.line("admin address"));
    let listener = address_in(&relay.line("listening for clients"));
    (relay, admin, listener)
}

/// A relay that takes its contents from this server, on free ports.
fn serve_from(upstream: &str) -> (Relay, String, String) {
    serve(&[
        "--upstream",
        upstream,
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
    ])
}

/// Returns the lines that a program prints, as they come. They are read to the end: a program that cannot print any more ends.
fn printed(child: &mut Child) -> Receiver<String> {
    let lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let (sender, receiver) = sync_channel(64);
    std::thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
    receiver
}

/// Replaces a file, so that no reader sees a part of it.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

fn has_metric(admin: &str, line: &str) -> bool {
    let line = format!("distributary_{line}");
    ask(admin, "GET /metrics").lines().any(|shown| shown == line)
}

/// Waits until the metrics have this line.
fn metric(admin: &str, line: &str) {
    until(|| has_metric(admin, line), || ask(admin, "GET /metrics"));
}

/// Looks until it is so; else says why not.
#[track_caller]
fn until<W: Display>(is: impl Fn() -> bool, why: impl Fn() -> W) {
    let deadline = now() + PATIENCE;
    while !is() {
        assert!(now() < deadline, "{}", why());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn wrong_use_is_two() {
    for args in [
        &["--nonsense"][..],
        &[],
        &["serve", "--log-format", "xml"],
        &["validate"],
        &["steer"],
        &["status", "--clients", "--nacks"],
        &["status", "-o", "xml"],
        &["status", "--admin", "ftp://nowhere"],
        &["status", "--cert", "x"],
    ] {
        let error = fails(2, args, "");
        assert!(error.contains("Usage") || error.contains("--help"), "{args:?}: {error}");
    }
}

#[test]
fn asking_for_help_is_no_error() {
    let version = format!("distributary {}\n", distributary::telemetry::BUILD);
    assert_eq!(prints(&["--version"]), version);
    for args in [&["--help"][..], &["serve", "--help"], &["help", "validate"]] {
        let (code, out, _) = output(args);
        assert_eq!(code, Some(0), "{args:?}");
        assert!(out.contains("Usage: distributary"), "{out}");
    }
}

#[test]
fn a_bad_start_is_one() {
    fails(1, &["serve"], "command line: upstream.xds_servers: no control plane");
    let level = ["serve", "--upstream", "cp:1", "--log-level", "relay=loud"];
    fails(1, &level, "`relay=loud` is not a log level; write ");
}

#[test]
fn sigterm_ends_it_cleanly() {
    let args = [&SERVE[..], &["--log-format", "json"]].concat();
    let mut relay = Relay::start(program(&args));
    let line = relay.line("admin address");
    let fields: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(fields["level"], "INFO");
    let time = fields["timestamp"].as_str().unwrap();
    // RFC 3339 in UTC.
    assert_eq!(
        (time.len(), time.find('T'), time.find('Z')),
        (27, Some(10), Some(26)),
        "{time}"
    );
    relay.signal("-TERM");
    relay.line("draining");
    assert_eq!(relay.child.wait().unwrap().code(), Some(0));
}

/// Signals that mean "reopen the logs" to other programs change nothing, and the relay says so.
#[test]
fn other_signals_do_not_end_it() {
    let mut relay = Relay::start(program(&SERVE));
    relay.line("listening for clients");
    for signal in ["USR1", "USR2", "USR1"] {
        relay.signal(&format!("-{signal}"));
        let line = relay.line(&format!("signal=SIG{signal}"));
        assert!(line.contains("ignored: the relay has no log files"), "{line}");
    }
    relay.signal("-TERM");
    relay.line("draining");
    assert_eq!(relay.child.wait().unwrap().code(), Some(0));
}

/// A relay with a client, its admin address, and where clients connect.
fn with_a_client(name: &str, timers: &str) -> (Relay, String, TcpStream, String) {
    let text = format!("upstream: {{xds_servers: [{{server_uri: cp:1}}]}}\n{PORTS}timers: {{{timers}}}\n");
    let path = file(name, &text);
    let (relay, admin, listener) = serve(&["--log-format", "json", "--config", path.to_str().unwrap()]);
    let client = TcpStream::connect(&listener).unwrap();
    metric(&admin, "connections 1");
    (relay, admin, client, listener)
}

/// Returns the response of the admin address.
fn ask(admin: &str, request: &str) -> String {
    process::ask(admin, request, "", "")
}

/// The first signal ends readiness while clients are still served, the second one begins the drain, the third one ends all.
#[test]
fn sigterm_is_announced() {
    let (mut relay, admin, _client, listener) = with_a_client("announced.yaml", "drain_announce: 1h, drain: 1h");
    relay.signal("-TERM");
    relay.line("not ready any more");
    assert!(ask(&admin, "GET /ready").starts_with("HTTP/1.1 503 "));
    drop(TcpStream::connect(&listener).unwrap());
    relay.signal("-TERM");
    relay.line("draining");
    relay.signal("-TERM");
    relay.line("stopped at once");
    assert_eq!(relay.child.wait().unwrap().code(), Some(0));
}

/// The announcement is skipped for SIGINT, which comes from a terminal, and if readiness was failed before.
#[test]
fn what_is_not_announced() {
    for (signal, failed) in [("-INT", false), ("-TERM", true)] {
        let (relay, admin, _client, _) = with_a_client("unannounced.yaml", "drain_announce: 1h, drain: 1h");
        if failed {
            assert!(ask(&admin, "POST /healthcheck/fail").starts_with("HTTP/1.1 200 "));
        }
        relay.signal(signal);
        relay.line("draining");
    }
}

/// `distributary drain` drains all clients; the relay runs until a signal ends it.
#[test]
fn an_operator_has_clients_leave() {
    let (mut relay, admin, client, listener) = with_a_client("drained.yaml", "drain_announce: 10ms, drain: 200ms");
    assert_eq!(prints(&["drain", "--admin", &admin]), "OK\n");
    relay.line("draining");
    assert_eq!((&client).read(&mut [0]).unwrap_or_default(), 0, "the client is let go");
    assert!(TcpStream::connect(&listener).is_err());
    fails(1, &["health", "--admin", &admin], "503: DRAINING");
    relay.signal("-TERM");
    relay.line("stopped");
    assert_eq!(relay.child.wait().unwrap().code(), Some(0));
}

/// A flag wins over the environment, and the environment over the file.
#[test]
fn the_nearest_setting_wins() {
    let admin = |flag: bool, variable: bool| {
        let text = format!("upstream: {{xds_servers: [{{server_uri: 'unix:/file'}}]}}\n{PORTS}");
        let path = file(&format!("nearest-{flag}-{variable}.yaml"), &text);
        let socket = |name: &str| format!("unix:{}/{name}-{flag}-{variable}.sock", env!("CARGO_TARGET_TMPDIR"));
        let mut command = program(&["serve", "--config", path.to_str().unwrap()]);
        if flag {
            command.args(["--admin", &socket("flag")]);
        }
        if variable {
            command.env("DISTRIBUTARY_ADMIN_LISTEN", socket("variable"));
            command.env("DISTRIBUTARY_ADMIN", "of-another-relay:9901");
        }
        Relay::start(command).line("admin address")
    };
    assert!(admin(true, true).contains("flag-true-true.sock"));
    assert!(admin(false, true).contains("variable-false-true.sock"));
    assert!(admin(false, false).contains("127.0.0.1:"));
}

/// The variable that once was that of `serve` still is, with a warning; an error says which variable is wrong.
#[test]
fn the_old_variable_of_the_admin_address() {
    let serve = |old: &str| {
        let mut command = program(&["serve", "--upstream", "unix:/nobody", "--listen", "127.0.0.1:0"]);
        command.env("DISTRIBUTARY_ADMIN", old);
        command
    };
    let relay = Relay::start(serve("127.0.0.1:0"));
    has(
        &relay.line("DISTRIBUTARY_ADMIN"),
        "set DISTRIBUTARY_ADMIN_LISTEN instead",
    );
    relay.line("admin address");
    has(
        &ran(&mut serve("nowhere")).2,
        "DISTRIBUTARY_ADMIN: `nowhere` is not an address",
    );
}

/// Lists in the environment are separated by commas.
#[test]
fn lists_in_the_environment_are_split() {
    let mut command = program(&["serve", "--upstream", "cp:1"]);
    command.env("DISTRIBUTARY_LISTEN", "127.0.0.1:0,nowhere");
    has(
        &ran(&mut command).2,
        "command line: DISTRIBUTARY_LISTEN: `nowhere` is not an address",
    );
}
