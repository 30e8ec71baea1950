// SPDX-License-Identifier: Apache-2.0
//! The configuration is read again while the relay runs: by signal, by order, and when its file changes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::{PATIENCE, Relay, ask, file, has, has_metric, metric, now, program, replace, serve};

/// A relay with a configuration of these lines besides what every test needs.
struct Stage {
    relay: Relay,
    path: PathBuf,
    admin: String,
    listener: String,
}

const BASE: &str = "upstream: {xds_servers: [{server_uri: cp:1}]}\nadmin: {address: '127.0.0.1:0'}\n";
const LISTENERS: &str = "listeners: [{address: '127.0.0.1:0'}]\n";

impl Stage {
    fn start(name: &str, lines: &str) -> Self {
        Self::serve(name, &format!("{BASE}{LISTENERS}{lines}"))
    }

    /// The same with this whole file.
    fn serve(name: &str, text: &str) -> Self {
        let path = file(&format!("reload-{name}.yaml"), text);
        let (relay, admin, listener) = serve(&["--log-format", "json", "--config", path.to_str().unwrap()]);
        Self {
            relay,
            path,
            admin,
            listener,
        }
    }

    /// Replaces the whole file at once.
    fn replace(&self, text: &str) {
        replace(&self.path, text);
    }

    /// Replaces these lines.
    fn write(&self, lines: &str) {
        self.replace(&format!("{BASE}{LISTENERS}{lines}"));
    }

    /// Returns the status and the body of the answer to an order.
    fn order(&self, path: &str) -> (u16, String) {
        let answer = ask(&self.admin, &format!("POST {path}"));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// Waits until the metrics have this line.
    fn metric(&self, line: &str) {
        metric(&self.admin, line);
    }

    /// Whether a new connection is served: the relay closes one that it does not admit.
    fn admits(&self) -> bool {
        self.keeps_open(Duration::from_millis(300))
    }

    fn refuses(&self) -> bool {
        !self.keeps_open(PATIENCE)
    }

    /// Whether a new connection is still open after this time.
    fn keeps_open(&self, time: Duration) -> bool {
        let mut connection = TcpStream::connect(&self.listener).unwrap();
        connection.set_read_timeout(Some(time)).unwrap();
        let nothing = connection.read(&mut [0]).map_err(|error| error.kind());
        matches!(nothing, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }
}

/// Each of the three causes puts a new limit into effect. Connections that are open stay.
#[test]
fn three_ways_to_read_it_again() {
    let stage = Stage::start("ways", "");
    stage.metric("configuration_current 1");
    let first = TcpStream::connect(&stage.listener).unwrap();
    stage.metric("connections 1");
    stage.write("limits: {connections: 1}\n");
    let line = stage.relay.line("configuration read again");
    has(&line, "its file has changed");
    has(&line, "limits.connections");
    assert!(stage.refuses());
    stage.write("limits: {connections: 2}\n");
    stage.relay.signal("-HUP");
    stage.relay.line("configuration read again");
    assert!(stage.admits());
    stage.relay.signal("-HUP");
    let line = stage.relay.line("nothing has changed");
    assert!(line.contains("SIGHUP"), "{line}");
    assert_eq!(stage.order("/reload"), (200, "nothing has changed\n".to_owned()));
    stage.metric("reloads_total{result=\"changed\"} 2");
    first.set_nonblocking(true).unwrap();
    let open = (&first).read(&mut [0]).unwrap_err().kind();
    assert_eq!(open, ErrorKind::WouldBlock);
}

/// S-09: rules of the admin address change while it is open.
#[test]
fn rules_of_the_admin_address() {
    let stage = Stage::start("admin", "");
    let with = |rules: &str| {
        let admin = format!("admin: {{address: '127.0.0.1:0', rules: [{rules}]}}");
        let base = BASE.replace("admin: {address: '127.0.0.1:0'}", &admin);
        stage.replace(&format!("{base}{LISTENERS}"));
        stage.relay.line("configuration read again");
    };
    with("{allow: read}");
    let (status, why) = stage.order("/healthcheck/ok");
    assert_eq!(status, 403);
    has(&why, "ip:127.0.0.1 may not change anything here: admin.rules[0]");
    assert!(ask(&stage.admin, "GET /help").starts_with("HTTP/1.1 200 "));
    with("{identities: 'ip:127.*', allow: [read, change]}");
    assert_eq!(stage.order("/healthcheck/ok"), (200, "OK\n".to_owned()));
    let line = stage.relay.line("gives an order");
    has(&line, "ip:127.0.0.1");
    has(&line, "/healthcheck/ok");
}

/// Issuers of tokens change for new calls: nobody looked at a token before, and now a bad one is refused.
#[test]
fn issuers_of_tokens() {
    let stage = Stage::start("jwt", "");
    let keys = file("reload-jwks.json", "{\"keys\": []}");
    let with = |lines: &str| {
        let admin = "admin: {address: '127.0.0.1:0', rules: [{identities: 'jwt:i#*', allow: read}, {allow: read}]}";
        let base = BASE.replace("admin: {address: '127.0.0.1:0'}", admin);
        stage.replace(&format!("{base}{LISTENERS}{lines}"));
        stage.relay.line("configuration read again")
    };
    let asked = || ask(&stage.admin, "GET /help HTTP/1.1\r\nauthorization: Bearer x\r\nx: x");
    with("");
    assert!(asked().starts_with("HTTP/1.1 200 "));
    let keys = keys.display();
    let line = with(&format!("jwt: [{{issuer: i, audiences: [a], jwks_file: '{keys}'}}]\n"));
    assert!(line.contains("\"jwt\""), "{line}");
    assert!(asked().starts_with("HTTP/1.1 401 "));
    stage.metric("configuration_waiting 0");
}

/// All problems are said with their places, and nothing is changed, not even what is good.
#[test]
fn a_bad_file_changes_nothing() {
    let stage = Stage::start("bad", "limits: {connections: 7}\n");
    stage.write("limits: {connections: 1, views: many}\ntimers: {linger: soon}\n");
    let path = stage.path.display();
    let line = stage.relay.line("views");
    assert!(line.contains(&format!("{path}:4:33: limits.views: ")), "{line}");
    stage.metric("configuration_current 0");
    let (status, said) = stage.order("/reload");
    assert_eq!(status, 422);
    assert_eq!(said.lines().count(), 3, "{said}");
    assert!(said.starts_with(&format!("{path}:4:33: limits.views: ")), "{said}");
    has(&said, &format!("\n{path}:5:18: timers.linger: "));
    has(&said, "\nthe earlier configuration stays in effect");
    assert!(stage.admits());
    std::fs::remove_file(&stage.path).unwrap();
    let (status, said) = stage.order("/reload");
    assert!(status == 422 && said.contains("cannot be read"), "{said}");
    stage.write("limits: {connections: 7}\n");
    assert_eq!(stage.order("/reload"), (200, "nothing has changed\n".to_owned()));
    stage.metric("configuration_current 1");
}

/// A file whose parts come one after the other counts once it is whole.
#[test]
fn a_file_half_written() {
    let whole = format!("{BASE}{LISTENERS}limits: {{connections: 1}}\nchunk: 1MiB\n");
    // Returns whether it is written without a pause that the relay takes for the end.
    let written = |stage: &Stage| {
        let mut last = now();
        let ends = [
            BASE.len() / 2,
            BASE.len() + LISTENERS.len(),
            whole.len() - 5,
            whole.len(),
        ];
        ends.iter().all(|end| {
            std::fs::write(&stage.path, &whole[..*end]).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            now() - std::mem::replace(&mut last, now()) < Duration::from_millis(200)
        })
    };
    // A busy machine may pause.
    let started = (0..20).map(|round| Stage::start(&format!("half-{round}"), "limits: {connections: 7}\n"));
    let stage = started.into_iter().find(written).expect("there is always a pause");
    let line = stage.relay.line("configuration read again");
    assert!(line.contains("limits.connections chunk"), "{line}");
    for end in ["changed\"} 1", "bad\"} 0"] {
        assert!(has_metric(&stage.admin, &format!("reloads_total{{result=\"{end}")));
    }
}

#[test]
fn a_file_that_is_too_large() {
    let stage = Stage::start("large", "");
    let file = std::fs::File::options().write(true).open(&stage.path).unwrap();
    file.set_len(100 << 20).unwrap();
    let (status, said) = stage.order("/reload");
    assert!(status == 422 && said.contains("larger than 32 MiB"), "{said}");
    stage.write("");
    assert_eq!(stage.order("/reload").0, 200);
}

/// What only a restart can change is said each time until then, by a metric as well. The listener that is gone from the file stays.
#[test]
fn what_needs_a_restart() {
    let stage = Stage::start("restart", "");
    let listeners = "listeners: [{address: '127.0.0.1:1'}]";
    stage.replace(&format!("{BASE}{listeners}\nlimits: {{connections: 3}}\n"));
    let line = stage.relay.line("take effect after a restart");
    assert!(line.contains("\"listeners\""), "{line}");
    let said = "listeners: changed (needs a restart)\n";
    assert_eq!(stage.order("/reload"), (200, said.to_owned()));
    stage.metric("configuration_current 0");
    stage.metric("configuration_waiting 1");
    assert!(stage.admits());
    stage.write("");
    stage.metric("configuration_current 1");
}

/// A flag still overrides the file, and a file that a flag overrides changes nothing.
#[test]
fn flags_override_what_is_read_again() {
    let path = file("reload-flags.yaml", &format!("{BASE}{LISTENERS}"));
    let flags = ["--admin", "127.0.0.1:0", "--upstream", "127.0.0.1:1"];
    let (relay, ..) = serve(&[&flags[..], &["--config", path.to_str().unwrap()]].concat());
    let text =
        "upstream: {xds_servers: [{server_uri: other:2}]}\nadmin: {address: '127.0.0.1:7'}\nlimits: {views: 3}\n";
    std::fs::write(&path, format!("{text}{LISTENERS}")).unwrap();
    let line = relay.line("configuration read again");
    assert!(line.contains("keys=limits.views"), "{line}");
}

/// A configuration that came through a pipe stays: there is nothing to read again.
#[test]
fn a_pipe_is_read_once() {
    let text = format!("{BASE}{LISTENERS}limits: {{connections: 7}}\n");
    let mut command = program(&["serve", "--config", "/dev/stdin"]);
    let mut child_in = std::io::pipe().unwrap();
    child_in.1.write_all(text.as_bytes()).unwrap();
    drop(child_in.1);
    let relay = Relay::start({
        command.stdin(child_in.0);
        command
    });
    relay.line("listening for clients");
    relay.signal("-HUP");
    let line = relay.line("level=error");
    assert!(line.contains("the earlier one stays"), "{line}");
    relay.line("/dev/stdin: only a file can be read again");
}

/// While the relay stops, its configuration stays as it is.
#[test]
fn not_while_it_drains() {
    let stage = Stage::start("draining", "timers: {drain_announce: 1h}\n");
    let _client = TcpStream::connect(&stage.listener).unwrap();
    stage.metric("connections 1");
    assert_eq!(stage.order("/drain_listeners?graceful").0, 200);
    stage.relay.line("not ready any more");
    let (status, said) = stage.order("/reload");
    assert!(status == 503 && said.contains("stopping"), "{said}");
    stage.relay.signal("-HUP");
    stage.relay.line("does not read its configuration again");
}

/// The level of the file counts at once, unless a flag says another one.
#[test]
fn another_log_level() {
    let stage = Stage::start("log", "logging: {level: info}\n");
    stage.write("logging: {level: warn}\n");
    let (status, said) = stage.order("/reload");
    assert!(status == 200, "{said}");
    stage.write("logging: {level: loud}\n");
    let (status, said) = stage.order("/reload");
    assert!(status == 422 && said.contains("`loud` is not a log level"), "{said}");
    stage.write("logging: {level: info}\nlimits: {connections: 7}\n");
    assert_eq!(stage.order("/reload").0, 200);
    // This is the first such line: those in between were not logged.
    let line = stage.relay.line("configuration read again");
    has(&line, "limits.connections");
    has(&line, "logging.level");

    let text = format!("{BASE}{LISTENERS}logging: {{level: error}}\n");
    let path = file("reload-log-flag.yaml", &text);
    // It says where it listens.
    serve(&["--log-level", "info", "--config", path.to_str().unwrap()]);
}
