// SPDX-License-Identifier: Apache-2.0
//! The relay as a process.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

pub(crate) use peers::client::Client;
pub(crate) use peers::messages::{CDS, EDS, cluster, clusters, node};
pub(crate) use peers::process::{Process, address_in, ask};
pub(crate) use peers::stream::{Delta, Got, Sotw};
pub(crate) use peers::{eventually, now};

/// Looks until it is so.
pub(crate) async fn until(what: &str, mut is: impl FnMut() -> bool) {
    eventually(what, || is().then_some(())).await;
}

#[track_caller]
pub(crate) fn has(text: &str, words: &str) {
    assert!(text.contains(words), "no {words:?} in {text}");
}

/// A new directory for a test.
pub(crate) fn directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("warm-{name}"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A place where nobody listens, and which nobody else is given: below the ports that the kernel gives to connections.
pub(crate) fn place() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let places = std::iter::repeat_with(|| {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 2_000;
        SocketAddr::from(([127, 0, 0, 1], port))
    });
    let mut free = places.filter(|place| std::net::TcpListener::bind(place).is_ok());
    free.next().unwrap()
}

/// A listener and an admin address of any port.
pub(crate) const ANYWHERE: &str = "listeners: [{address: '127.0.0.1:0'}]\nadmin: {address: '127.0.0.1:0'}\n";

/// A configuration with this server, `ANYWHERE`, and these lines.
pub(crate) fn asking(server: impl Display, more: &str) -> String {
    format!("upstream: {{xds_servers: [{{server_uri: '{server}'}}]}}\n{ANYWHERE}{more}")
}

/// Moves a file with this text into place.
pub(crate) fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(&new, path).unwrap();
}

/// The JSON of an answer.
pub(crate) fn json_in(answer: &str) -> serde_json::Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    // The body of a list is in pieces.
    let (begin, end) = (body.find('{').unwrap(), body.rfind('}').unwrap());
    serde_json::from_str(&body[begin..=end]).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// A running relay; dropping it ends it.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
    config: PathBuf,
    process: Process,
}

impl Relay {
    pub(crate) fn start(upstream: SocketAddr, snapshots: &Path) -> Self {
        Self::with(upstream, snapshots, Duration::from_millis(100))
    }

    pub(crate) fn with(upstream: SocketAddr, snapshots: &Path, interval: Duration) -> Self {
        Self::snapshotting(&[], upstream, snapshots, interval)
    }

    /// A relay that `command` starts by `exec`.
    pub(crate) fn behind(command: &[String], upstream: SocketAddr, snapshots: &Path) -> Self {
        Self::snapshotting(command, upstream, snapshots, Duration::from_millis(100))
    }

    fn snapshotting(command: &[String], upstream: SocketAddr, snapshots: &Path, interval: Duration) -> Self {
        let (dir, interval) = (snapshots.display(), interval.as_millis());
        let more = format!("limits: {{history_bytes: 0}}\nsnapshot: {{dir: '{dir}', interval: {interval}ms}}\n");
        let text = asking(upstream, &more);
        let name = format!("{}-{interval}", upstream.port());
        Self::execute(command, &name, &text, "json")
    }

    /// With this configuration, which has listeners and an admin address of any port.
    pub(crate) fn run(name: &str, text: &str) -> Self {
        Self::execute(&[], name, text, "json")
    }

    /// A relay of this server with these lines.
    pub(crate) fn asks(name: &str, server: impl Display, more: &str) -> Self {
        Self::run(name, &asking(server, more))
    }

    /// The same as `run` with a log for people.
    pub(crate) fn telling(name: &str, text: &str) -> Self {
        Self::execute(&[], name, text, "text")
    }

    /// A relay that `command` starts by `exec`, with this configuration and a log in this form.
    pub(crate) fn execute(command: &[String], name: &str, text: &str, log: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("warm-{name}.yaml"));
        std::fs::write(&path, text).unwrap();
        let words = [command, &[env!("CARGO_BIN_EXE_distributary").to_owned()]].concat();
        let (first, rest) = words.split_first().unwrap();
        let mut command = Command::new(first);
        command
            .args(rest)
            .args(["serve", "--log-format", log, "--config"])
            .arg(&path)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let process = Process::start(command);
        let address = |text: &str| address_in(&process.line(text)).parse().unwrap();
        let admin = address("admin address");
        Self {
            admin,
            address: address("listening for clients"),
            config: path,
            process,
        }
    }

    /// Returns the first line that contains `text`; waits for it if there is none yet.
    pub(crate) fn line(&self, text: &str) -> String {
        let mut seen = self.seen().into_iter();
        let found = seen.find(|line| line.contains(text));
        found.unwrap_or_else(|| self.process.line(text))
    }

    /// Returns the lines up to the last one that a test waited for.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.process.seen()
    }

    /// How many lines with `text` there are up to the last one that a test waited for.
    pub(crate) fn lines(&self, text: &str) -> usize {
        self.seen().iter().filter(|line| line.contains(text)).count()
    }

    /// Returns the response of the admin address.
    pub(crate) fn admin(&self, path: &str) -> String {
        ask(self.admin, &format!("GET {path}"), "", "")
    }

    /// Asserts that the metrics have this line.
    #[track_caller]
    pub(crate) fn shows(&self, line: &str) {
        has(&self.admin("/metrics"), &format!("distributary_{line}\n"));
    }

    /// The same, which is JSON.
    pub(crate) fn json(&self, path: &str) -> serde_json::Value {
        json_in(&self.admin(path))
    }

    /// Puts a configuration into effect. Returns what has changed.
    pub(crate) fn reload(&self, text: &str) -> String {
        replace(&self.config, text);
        let answer = self.post("/reload");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        answer
    }

    /// A number in `/metrics`; 0 if it is not there.
    pub(crate) fn number(&self, name: &str) -> f64 {
        let metrics = self.admin("/metrics");
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0.0, |number| number.trim().parse().unwrap())
    }

    /// Runs a command of the program for it. Returns the exit code and what it prints.
    pub(crate) fn command(&self, words: &[&str]) -> (Option<i32>, String) {
        let out = Command::new(env!("CARGO_BIN_EXE_distributary"))
            .args(words)
            .args(["--admin", &self.admin.to_string()])
            .output()
            .unwrap();
        let said = [out.stdout, out.stderr].concat();
        (out.status.code(), String::from_utf8(said).unwrap())
    }

    /// Where its admin address is.
    pub(crate) const fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    /// Returns the metrics for a client that reads OpenMetrics.
    pub(crate) fn openmetrics(&self) -> String {
        let headers = "accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1\r\n";
        ask(self.admin, "GET /metrics", headers, "")
    }

    /// Returns the response of the admin address to an order.
    pub(crate) fn post(&self, path: &str) -> String {
        ask(self.admin, &format!("POST {path}"), "", "")
    }

    /// Returns the response of the admin address to a question in JSON.
    pub(crate) fn post_json(&self, path: &str, question: &str) -> String {
        let headers = "content-type: application/json\r\n";
        ask(self.admin, &format!("POST {path}"), headers, question)
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.process.child.id()
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    /// Kills it.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Ends it in an orderly way.
    pub(crate) fn terminate(&mut self) {
        self.signal("-TERM");
        self.ends();
    }

    /// Waits until it has ended in an orderly way.
    pub(crate) fn ends(&mut self) {
        assert!(self.process.child.wait().unwrap().success());
    }
}
