//! A hostile fleet against the program as a process, while honest clients use it. Run with `tests/hostile/run`.

mod attacks;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use distributary::xds::Dialect;
use tokio::task::{AbortHandle, JoinHandle};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use self::attacks::ATTACKS;
use crate::support::client::Client;
use crate::support::messages::Subscriber;
use crate::support::process::Process;
use crate::support::{ADS, Address, CDS, PATIENCE, now, spawn, until};

/// How many honest clients there are.
const HONEST: usize = 50;
/// How many clusters the control plane has. The last one changes.
const CLUSTERS: usize = 100;
/// How much memory the process may ever have, of which up to 64 MiB may be unfinished requests by the default limits.
const PEAK: usize = 400 << 20;
/// How much more memory than before may stay in use when the attackers have left.
const SLACK: usize = 48 << 20;
/// How many lines a second the attackers and the changes together may cause: each change is one or two.
const LINES: usize = 100;
/// The pause after each change.
const PAUSE: Duration = Duration::from_millis(50);

/// The control plane: a file.
struct Content {
    path: std::path::PathBuf,
    version: usize,
}

impl Content {
    fn new() -> Self {
        let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hostile-clusters.json");
        Self { path, version: 0 }
    }

    /// Moves a file with the next version into place.
    fn change(&mut self) {
        self.version += 1;
        let cluster = |n: usize| {
            format!(
                r#"{{"@type": "{CDS}", "name": "c{n}", "altStatName": "{}"}}"#,
                "x".repeat(500)
            )
        };
        let changed = format!(
            r#"{{"@type": "{CDS}", "name": "changes", "altStatName": "v{}"}}"#,
            self.version
        );
        let all: Vec<String> = (1..CLUSTERS).map(cluster).chain([changed]).collect();
        let beside = self.path.with_extension("new");
        std::fs::write(&beside, format!(r#"{{"resources": [{}]}}"#, all.join(","))).unwrap();
        std::fs::rename(beside, &self.path).unwrap();
    }
}

/// A client that reads and acknowledges everything.
struct Honest {
    /// The newest version that it got.
    version: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Honest {
    async fn new(relay: &Process, dialect: Dialect) -> Self {
        let client = Client::connect(&Address::Tcp(relay.clients)).await;
        let method = match dialect {
            Dialect::Sotw => "StreamAggregatedResources",
            Dialect::Delta => "DeltaAggregatedResources",
        };
        let mut subscriber = Subscriber::new(client.call(&format!("/{ADS}/{method}")).await, dialect, CDS);
        subscriber.subscribe(&["*"]);
        let version = Arc::new(AtomicUsize::new(0));
        let newest = version.clone();
        let task = spawn(async move {
            while let Ok(got) = subscriber.next().await {
                subscriber.ack();
                let versions = got.bodies.iter().filter_map(|body| {
                    let (_, text) = body.split_once("changes")?;
                    text.rsplit_once('v')?.1.parse::<usize>().ok()
                });
                newest.fetch_max(versions.max().unwrap_or_default(), Ordering::Relaxed);
            }
            // The connection lives as long as its client.
            drop(client);
        });
        Self { version, task }
    }

    fn has(&self, version: usize) -> bool {
        assert!(!self.task.is_finished(), "the stream of an honest client has ended");
        self.version.load(Ordering::Relaxed) >= version
    }
}

/// Makes a change, and returns how long it took until all honest clients had it.
async fn change(content: &mut Content, honest: &[Honest]) -> Duration {
    content.change();
    let begun = now();
    let lacking = || honest.iter().filter(|honest| !honest.has(content.version)).count();
    until(|| lacking() == 0, || format!("{} clients lack a change", lacking())).await;
    begun.elapsed()
}

/// A new client gets in and is told that the relay is healthy. Returns how long that took.
async fn arrival(relay: &Process) -> Duration {
    let begun = now();
    let client = Client::connect(&Address::Tcp(relay.clients)).await;
    let request = HealthCheckRequest::default();
    let mut call = client.unary("/grpc.health.v1.Health/Check", &request).await;
    assert_eq!(call.next::<HealthCheckResponse>().await.unwrap().status, 1);
    begun.elapsed()
}

/// Honest clients miss nothing, new ones get in, and what the attackers took is free when they have left. Prints the longest times;
/// they depend on the machine and are not judged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute: tests/hostile/run"]
async fn a_hostile_fleet() {
    let seconds = std::env::var("DISTRIBUTARY_SECONDS").map_or(60, |seconds| seconds.parse::<u32>().unwrap());
    let of_each = Duration::from_secs(1) * seconds / u32::try_from(ATTACKS.len()).unwrap();
    let mut content = Content::new();
    content.change();
    let relay = Process::of(
        "hostile",
        content.path.to_str().unwrap(),
        "timers: {linger: 1s}\nclasses: [{key: [cluster]}]\n",
    );
    let mut honest = Vec::new();
    for n in 0..HONEST {
        honest.push(Honest::new(&relay, [Dialect::Sotw, Dialect::Delta][n % 2]).await);
    }
    let quiet = change(&mut content, &honest).await;
    let (base, descriptors) = (relay.resident(), relay.descriptors());
    println!("quiet: a change takes {quiet:.1?}, {} MiB", base >> 20);
    for attack in ATTACKS {
        let lines = relay.lines();
        let address = relay.clients;
        let attackers = (0..attack.connections).map(|_| spawn(attack.run(address)).abort_handle());
        let attackers: Vec<AbortHandle> = attackers.collect();
        let begun = now();
        let (mut longest, mut arrived) = (Duration::ZERO, Duration::ZERO);
        while begun.elapsed() < of_each {
            longest = longest.max(change(&mut content, &honest).await);
            arrived = arrived.max(arrival(&relay).await);
            tokio::time::sleep(PAUSE).await;
        }
        attackers.iter().for_each(AbortHandle::abort);
        let lines = relay.lines() - lines;
        println!(
            "{}: a change takes up to {longest:.1?}, an arrival up to {arrived:.1?}; {} MiB, {lines} lines",
            attack.name,
            relay.resident() >> 20
        );
        let most = LINES * (begun.elapsed().as_secs() as usize + 1);
        assert!(lines <= most, "{}: {lines} lines in the log", attack.name);
    }
    change(&mut content, &honest).await;
    println!("{} MiB at the most", relay.peak() >> 20);
    assert!(relay.peak() < PEAK, "{} MiB at the most", relay.peak() >> 20);
    let begun = now();
    loop {
        let descriptors = relay.descriptors().saturating_sub(descriptors);
        let bytes = relay.resident().saturating_sub(base);
        // Other allocators keep what was freed.
        if descriptors == 0 && (bytes < SLACK || !cfg!(feature = "jemalloc")) {
            return;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{descriptors} descriptors and {bytes} bytes more than before"
        );
        change(&mut content, &honest).await;
        tokio::time::sleep(PAUSE).await;
    }
}
