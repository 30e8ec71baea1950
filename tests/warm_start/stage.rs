// SPDX-License-Identifier: Apache-2.0
//! The relay as a process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;

pub(crate) use crate::clients::{Client, Delta, Got, Sotw};
pub(crate) use crate::messages::{cluster, clusters, node};
use crate::plane::PATIENCE;

pub(crate) const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(crate) const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

#[expect(clippy::disallowed_methods, reason = "some instant")]
pub(crate) fn now() -> Instant {
    Instant::now()
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

/// Looks until something is there.
pub(crate) async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(now() < end, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Listens on an address that was in use before.
pub(crate) async fn listen(address: SocketAddr) -> TcpListener {
    let end = now() + PATIENCE;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => assert!(now() < end, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A running relay; dropping it ends it.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
    child: Child,
    /// The log lines to come, and those that came.
    log: Mutex<(Receiver<String>, Vec<String>)>,
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
        let text = format!(
            "upstream: {{xds_servers: [{{server_uri: '{upstream}'}}]}}\nlisteners: [{{address: '127.0.0.1:0'}}]\nadmin: {{address: '127.0.0.1:0'}}\nlimits: {{history_bytes: 0}}\nsnapshot: {{dir: '{}', interval: {}ms}}\n",
            snapshots.display(),
            interval.as_millis()
        );
        let name = format!("{}-{}", upstream.port(), interval.as_millis());
        Self::execute(command, &name, &text, "json")
    }

    /// With this configuration, which has listeners and an admin address of any port.
    pub(crate) fn run(name: &str, text: &str) -> Self {
        Self::execute(&[], name, text, "json")
    }

    /// The same with a log for people.
    pub(crate) fn telling(name: &str, text: &str) -> Self {
        Self::execute(&[], name, text, "text")
    }

    /// A relay that `command` starts by `exec`, with this configuration and a log in this form.
    pub(crate) fn execute(command: &[String], name: &str, text: &str, log: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("warm-{name}.yaml"));
        std::fs::write(&path, text).unwrap();
        let words = [command, &[env!("CARGO_BIN_EXE_distributary").to_owned()]].concat();
        let (first, rest) = words.split_first().unwrap();
        let mut child = Command::new(first)
            .args(rest)
            .args(["serve", "--log-format", log, "--config"])
            .arg(&path)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = sync_channel(10_000);
        std::thread::spawn(move || log.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let anywhere = SocketAddr::from(([0; 4], 0));
        let mut relay = Self {
            address: anywhere,
            admin: anywhere,
            child,
            log: Mutex::new((lines, Vec::new())),
        };
        relay.admin = address(&relay.line("admin address"));
        relay.address = address(&relay.line("listening for clients"));
        relay
    }

    /// Returns the first line that contains `text`; waits for it if there is none yet.
    pub(crate) fn line(&self, text: &str) -> String {
        let (lines, seen) = &mut *self.log.lock().unwrap();
        if let Some(line) = seen.iter().find(|line| line.contains(text)) {
            return line.clone();
        }
        loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(error) => panic!("no line with {text}: {error}"),
            }
        }
    }

    /// Returns the lines up to the last one that a test waited for.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.log.lock().unwrap().1.clone()
    }

    /// How many lines with `text` there are up to the last one that a test waited for.
    pub(crate) fn lines(&self, text: &str) -> usize {
        let (_, seen) = &*self.log.lock().unwrap();
        seen.iter().filter(|line| line.contains(text)).count()
    }

    /// Returns the response of the admin address.
    pub(crate) fn admin(&self, path: &str) -> String {
        self.ask("GET", path, "", "")
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
        self.ask(
            "GET",
            "/metrics",
            "accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1\r\n",
            "",
        )
    }

    /// Returns the response of the admin address to an order.
    pub(crate) fn post(&self, path: &str) -> String {
        self.ask("POST", path, "", "")
    }

    /// Returns the response of the admin address to a question in JSON.
    pub(crate) fn post_json(&self, path: &str, question: &str) -> String {
        self.ask("POST", path, "content-type: application/json\r\n", question)
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.admin).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = self.admin;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
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
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address(line: &str) -> SocketAddr {
    if let Some((_, rest)) = line.split_once(" address=") {
        return rest
            .split_whitespace()
            .next()
            .unwrap()
            .trim_matches('"')
            .parse()
            .unwrap();
    }
    let fields: serde_json::Value = serde_json::from_str(line).unwrap();
    fields.get("address").unwrap().as_str().unwrap().parse().unwrap()
}
