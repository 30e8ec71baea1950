// SPDX-License-Identifier: Apache-2.0
//! The figures of a relay beside those of the fleet that it serves: the load tool knows what happened, and the relay must say the
//! same in its metrics, on its page, and in `status` and `wait`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_distributary-load");
const CLIENTS: u64 = 24;
const CHANGES: u64 = 10;
const SCENARIO: &str = "
description: Endpoints change, then all clusters; the endpoints follow the clusters, and do not change.
world: { cds: { count: 8, bytes: 300 }, eds: { count: 8, bytes: 300 } }
clients: { count: 24, groups: [{ kind: envoy }, { kind: envoy, dialect: sotw }] }
phases:
  - { name: join, do: { join: {} } }
  - { name: endpoints, do: { change: { kind: eds, pattern: one, times: 10, rate: 5 } } }
  - { name: clusters, do: { change: { kind: cds, pattern: full, times: 1 } } }
  - { name: reading, do: { rest: 8s } }
";
/// How long the test waits for anything before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run of the load tool, whose relay tells where its admin address is.
struct Run {
    tool: Child,
    folder: PathBuf,
    admin: String,
}

impl Run {
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("distributary-figures-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (scenario, relay) = (folder.join("scenario.yaml"), folder.join("relay"));
        fs::write(&scenario, SCENARIO).unwrap();
        let arguments = folder.join("arguments");
        let script = format!(
            "#!/bin/sh\necho \"$@\" > '{0}.new'; mv '{0}.new' '{0}'\nexec '{PROGRAM}' be-the-relay \"$@\"\n",
            arguments.display()
        );
        fs::write(&relay, script).unwrap();
        fs::set_permissions(&relay, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(PROGRAM);
        command.arg("run").arg(&scenario).arg("--relay-bin").arg(&relay);
        command.args(["--quiet", "--json"]).arg(folder.join("record.json"));
        let tool = command.stdout(Stdio::null()).spawn().unwrap();
        let mut run = Self {
            tool,
            folder,
            admin: String::new(),
        };
        run.admin = until("the relay starts", || {
            let words = fs::read_to_string(&arguments).ok()?;
            let mut words = words.split_whitespace().skip_while(|word| *word != "--admin");
            words.nth(1).map(str::to_owned)
        });
        run
    }

    /// What the relay's command line says.
    fn ask(&self, words: &[&str]) -> Output {
        let mut command = Command::new(PROGRAM);
        command.arg("be-the-relay").args(words);
        command.args(["--admin", &self.admin]).output().unwrap()
    }

    /// Reads a page of the admin address.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = self.request(path)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// The first event that the page is told.
    fn page(&self) -> Option<Value> {
        let lines = BufReader::new(self.request("/events")?).lines();
        let mut data = lines
            .map_while(Result::ok)
            .filter(|line| line.contains("convergence_seconds"));
        let line = data.next()?;
        serde_json::from_str(line.trim_start_matches("data:")).ok()
    }

    fn request(&self, path: &str) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(&self.admin).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.admin).ok()?;
        Some(stream)
    }

    /// Waits until the tool has ended, and returns what it has written.
    fn record(mut self) -> Value {
        assert!(self.tool.wait().unwrap().success(), "the run failed");
        let text = fs::read_to_string(self.folder.join("record.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        drop(self.tool.kill());
        drop(self.tool.wait());
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// The convergence of one type, in the metrics.
struct Convergence {
    /// Upper bounds in seconds, and how many acknowledgements there were up to them.
    buckets: Vec<(f64, u64)>,
}

impl Convergence {
    fn of(metrics: &str, kind: &str) -> Self {
        let of_type = format!("\",type=\"{kind}\"}} ");
        let samples = metrics.lines().filter_map(|line| {
            let sample = line.strip_prefix("distributary_convergence_seconds_bucket{le=\"")?;
            let (bound, count) = sample.split_once(&of_type)?;
            let count = count.split_whitespace().next()?;
            Some((bound.replace('+', "").parse().ok()?, count.parse().ok()?))
        });
        Self {
            buckets: samples.collect(),
        }
    }

    fn count(&self) -> u64 {
        self.buckets.last().map_or(0, |(_, count)| *count)
    }

    /// In which bucket this part of the acknowledgements ends.
    fn bucket_at(&self, part: f64) -> usize {
        let wanted = (self.count() as f64 * part).ceil() as u64;
        self.buckets.iter().position(|(_, count)| *count >= wanted).unwrap()
    }

    /// In which bucket this time is.
    fn bucket_of(&self, seconds: f64) -> usize {
        self.buckets.iter().position(|(bound, _)| seconds <= *bound).unwrap()
    }
}

#[expect(clippy::disallowed_methods, reason = "a test waits for a process")]
fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(50));
    }
}

/// First answers and endpoints that only follow their clusters count nowhere; each change counts once for each client.
#[test]
fn the_relay_says_what_the_fleet_saw() {
    let run = Run::start();
    // How clients stand may be said as it was ten seconds before. So nobody asks for it until all are there and something has changed.
    until("a change", || {
        let page = run.page()?;
        (page["convergence_seconds"]["+Inf"].as_u64()? >= CLIENTS).then_some(())
    });
    // Each cluster has changed at each client, in one response or in several.
    let mut last = 0;
    let metrics = until("the clusters have changed", || {
        let metrics = run.get("/metrics")?;
        let count = Convergence::of(&metrics, "cds").count();
        let rests = count >= CLIENTS && count == last;
        last = count;
        rests.then_some(metrics)
    });
    let page = until("an event of the page", || run.page());
    let status = run.ask(&["status", "--output", "json"]);
    let waited = run.ask(&["wait", "cds/cluster-0000003", "--timeout", "5s"]);
    let record = run.record();

    let (clusters, endpoints) = (Convergence::of(&metrics, "cds"), Convergence::of(&metrics, "eds"));
    let changes = &record["phases"][1]["propagation"];
    assert_eq!(changes["count"], CLIENTS * CHANGES, "{changes}");
    // Two changes that meet at one client are acknowledged together; on a busy machine a few do.
    let counted = CLIENTS * CHANGES * 9 / 10..=CLIENTS * CHANGES;
    assert!(counted.contains(&endpoints.count()), "{}", endpoints.count());
    let seen = endpoints.bucket_of(changes["p50_us"].as_f64().unwrap() / 1e6);
    let said = endpoints.bucket_at(0.5);
    assert!(said.abs_diff(seen) <= 1, "bucket {said}: {changes}");
    let of_all = &page["convergence_seconds"]["+Inf"];
    assert_eq!(*of_all, clusters.count() + endpoints.count(), "{page}");

    let said: Value = serde_json::from_slice(&status.stdout).unwrap();
    let standings = &said["relays"][0]["standings"];
    assert!(status.status.success(), "{said}");
    assert_eq!(
        (&standings["streams"], &standings["up_to_date"]),
        (&CLIENTS.into(), &CLIENTS.into())
    );
    let waited = String::from_utf8(waited.stdout).unwrap();
    assert_eq!(waited, format!("accepted by {CLIENTS} of {CLIENTS} clients\n"));
}
