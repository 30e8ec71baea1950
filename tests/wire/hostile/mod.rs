// SPDX-License-Identifier: Apache-2.0
//! A hostile fleet against the program as a process, while honest clients use it. Run with `tests/hostile/run`.

mod attack;
mod attacks;
mod callers;
mod content;
mod crowd;
mod planes;
mod who;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use distributary::xds::Dialect;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::{AbortHandle, JoinHandle};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use self::attack::Listeners;
use self::attacks::ATTACKS;
use self::callers::CALLERS;
use self::content::Content;
use self::crowd::Crowd;
use self::planes::{PLANES, Running};
use self::who::{PROBES, Who, everybody};
use self::words::FORBIDDEN;
pub(crate) use self::words::{rejection, versions, wrong_token};
use crate::support::certificates::{Authority, Folder, VERSIONS, agree};
use crate::support::client::Client;
use crate::support::process::{Process, processor};
use crate::support::{CDS, EDS, PATIENCE, now, raw, soon, spawn, until};
use crate::tls::speak;
use crate::tokens::{ISSUER, Published, Signer};

/// How much memory the process may ever have in the full run, of which up to 64 MiB may be unfinished requests by the default
/// limits.
const PEAK: usize = 400 << 20;
/// How much it may ever have in shorter runs: its `limits.memory`.
const BUDGET: usize = 200 << 20;
/// How much more memory than before may stay in use when the attackers have left.
const SLACK: usize = 48 << 20;
/// How many lines a second the attackers and the changes together may cause: each change is one or two.
const LINES: usize = 100;
/// Judged: the longest time of an arrival with its health check...
const ARRIVAL: Duration = Duration::from_secs(1);
/// ... and what p99 of a change may always be. It may also be twice that of a quiet time.
const LEAST_BOUND: Duration = Duration::from_millis(25);
/// The pause after each change.
const PAUSE: Duration = Duration::from_millis(50);

/// How large the fleet is, and how long each attack lasts.
struct Scale {
    of_each: Duration,
    honest: usize,
    /// The memory that the relay may use.
    budget: Option<usize>,
    /// Whether times are judged: in longer runs alone, because they depend on the machine.
    judged: bool,
}

impl Scale {
    fn new() -> Self {
        let seconds = std::env::var("DISTRIBUTARY_SECONDS").map_or(60, |seconds| seconds.parse::<u32>().unwrap());
        let (honest, budget, judged) = match seconds {
            600.. => (1000, None, true),
            240.. => (50, Some(BUDGET), true),
            _ => (200, Some(BUDGET), false),
        };
        Self {
            of_each: Duration::from_secs(1) * seconds
                / u32::try_from(ATTACKS.len() + CALLERS.len() + PLANES.len() + 1).unwrap(),
            honest,
            budget,
            judged,
        }
    }
}

/// When each honest client got the newest version.
struct Following {
    published: Instant,
    version: usize,
    took: Vec<Duration>,
}

/// A client that reads and acknowledges everything.
struct Honest(JoinHandle<()>);

impl Honest {
    async fn new(client: Client, dialect: Dialect, following: Arc<Mutex<Following>>) -> Self {
        let mut subscriber = client.subscriber(dialect, CDS).await;
        subscriber.subscribe(&["*"]);
        Self(spawn(async move {
            while let Ok(got) = subscriber.next().await {
                subscriber.ack();
                let versions = got.bodies.iter().filter_map(|body| {
                    let (_, text) = body.split_once("changes")?;
                    text.rsplit_once('v')?.1.parse::<usize>().ok()
                });
                let newest = versions.max().unwrap_or_default();
                let mut following = following.lock();
                if newest == following.version {
                    let took = following.published.elapsed();
                    following.took.push(took);
                }
            }
            // The connection lives as long as its client.
            drop(client);
        }))
    }
}

/// The relay, its control plane, and the honest clients.
struct World {
    relay: Process,
    content: Content,
    listeners: Listeners,
    planes: Vec<Running>,
    crowd: Crowd,
    honest: Vec<Honest>,
    following: Arc<Mutex<Following>>,
    _files: (Folder, Published),
}

impl World {
    async fn new(scale: &Scale) -> Self {
        let (authority, files) = (Authority::new(), Folder::new());
        let own = authority.sign("localhost");
        let certificate = files.put("relay.pem", &own.certificate);
        let key = files.put("relay.key", &own.key);
        let (certificate, key) = (certificate.display(), key.display());
        let tls = format!(", tls: {{certificate: '{certificate}', private_key: '{key}'}}");
        let mut content = Content::default();
        let path = content.change();
        let (crowd, mut planes) = (Crowd::new(), Vec::new());
        for plane in PLANES {
            planes.push(crowd.spawn(plane.start()).await.unwrap());
        }
        let authorities: Vec<&str> = planes.iter().map(|plane| plane.entry.as_str()).collect();
        let upstream = format!(
            "xds_servers: [{{server_uri: '{}'}}], authorities: {{{}}}",
            path.display(),
            authorities.join(", ")
        );
        let published = Published::new(&[Signer::new("key").public()]);
        let mut more = format!(
            "timers: {{linger: 1s}}\nclasses: [{{key: [cluster]}}]\n\
             rules: [{{name: nobody, types: lds, names: '{FORBIDDEN}*', action: deny}}, \
             {{name: tokens, identities: 'jwt:{ISSUER}#*'}}, {{name: all}}, {{name: operators, dialects: csds}}]\n\
             jwt: [{{issuer: '{ISSUER}', audiences: [relay], jwks_file: '{}'}}]\n",
            published.file.display()
        );
        if let Some(budget) = scale.budget {
            more += &format!("limits: {{memory: {budget}}}\n");
        }
        let relay = Process::with("hostile", &upstream, &["", &tls], &more);
        let listeners = Listeners {
            plain: relay.clients,
            secure: relay.others[0],
            admin: relay.admin,
            trust: Arc::new(authority.client(None, &VERSIONS)),
        };
        let following = Arc::new(Mutex::new(Following {
            published: now(),
            version: content.version(),
            took: Vec::new(),
        }));
        let mut world = Self {
            relay,
            content,
            listeners,
            planes,
            crowd,
            honest: Vec::new(),
            following,
            _files: (files, published),
        };
        for n in 0..scale.honest {
            let client = world.client(n % 4 == 0).await;
            let dialect = [Dialect::Sotw, Dialect::Delta][n % 2];
            let honest = Honest::new(client, dialect, world.following.clone());
            world.honest.push(honest.await);
        }
        world.everybody_has_it().await;
        world
    }

    async fn client(&self, secure: bool) -> Client {
        if !secure {
            return Client::connect(self.listeners.plain).await;
        }
        let socket = raw::socket(self.listeners.secure).await;
        socket.set_nodelay(true).unwrap();
        speak(agree(&self.listeners.trust, socket).await.unwrap()).await
    }

    /// Makes a change. Returns how long it took until each honest client had it.
    async fn change(&mut self) -> Vec<Duration> {
        {
            let mut following = self.following.lock();
            following.version = self.content.version() + 1;
            following.published = now();
        }
        self.content.change();
        self.everybody_has_it().await
    }

    async fn everybody_has_it(&self) -> Vec<Duration> {
        let lacking = || self.honest.len() - self.following.lock().took.len();
        until(|| lacking() == 0, || format!("{} clients lack a change", lacking())).await;
        let ended = self.honest.iter().filter(|honest| honest.0.is_finished()).count();
        assert_eq!(ended, 0, "the streams of honest clients have ended");
        std::mem::take(&mut self.following.lock().took)
    }

    /// A new client gets in and is told that the relay is healthy. Returns how long that took.
    async fn arrival(&self, secure: bool) -> Duration {
        let begun = now();
        let client = self.client(secure).await;
        let request = HealthCheckRequest::default();
        let mut call = client.unary("/grpc.health.v1.Health/Check", &request).await;
        assert_eq!(call.next::<HealthCheckResponse>().await.unwrap().status, 1);
        begun.elapsed()
    }

    /// A kubelet asks whether the relay is ready, or an operator something else. Returns how long the answer took.
    async fn visit(&self, path: &str) -> Duration {
        let begun = now();
        let asked = async {
            let mut socket = raw::socket(self.listeners.admin).await;
            let request = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n");
            socket.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            socket.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = soon("an answer to a visitor", asked).await;
        assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
        begun.elapsed()
    }

    /// Honest clients go on while somebody attacks, and somebody visits these paths. Returns all times of changes, and the longest of
    /// an arrival or a visit.
    async fn endures(&mut self, of_each: Duration, paths: &[&str]) -> (Vec<Duration>, Duration) {
        let begun = now();
        let (mut took, mut arrived) = (Vec::new(), Duration::ZERO);
        while begun.elapsed() < of_each {
            took.extend(self.change().await);
            arrived = arrived.max(self.arrival(false).await).max(self.arrival(true).await);
            for path in paths {
                arrived = arrived.max(self.visit(path).await);
            }
            tokio::time::sleep(PAUSE).await;
        }
        took.sort_unstable();
        (took, arrived)
    }

    /// A client asks for a name under this authority, and stays.
    async fn asks(&self, authority: &str) -> AbortHandle {
        let client = self.client(false).await;
        let mut subscriber = client.subscriber(Dialect::Delta, EDS).await;
        subscriber.subscribe(&[&planes::name(authority, "a")]);
        let stays = async move {
            let _open = (subscriber, client);
            std::future::pending::<()>().await;
        };
        spawn(stays).abort_handle()
    }

    /// What the attackers took is free when they have left.
    async fn settles_at(&mut self, memory: usize, descriptors: usize) {
        let begun = now();
        loop {
            let descriptors = self.relay.descriptors().saturating_sub(descriptors);
            let bytes = self.relay.resident().saturating_sub(memory);
            // What is built for tests has the allocator of the system, which keeps what was freed.
            if descriptors == 0 && (bytes < SLACK || std::env::var_os("DISTRIBUTARY_BIN").is_none()) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{descriptors} and {bytes} bytes more");
            self.change().await;
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The 99th of a hundred of these sorted times.
fn p99(sorted: &[Duration]) -> Duration {
    sorted[(sorted.len() - 1) * 99 / 100]
}

/// How many turns each kind of task has had, in all and up to 5, 10, 25 and 100 ms.
fn turns(metrics: &str) -> BTreeMap<String, [u64; 5]> {
    let mut turns: BTreeMap<String, [u64; 5]> = BTreeMap::new();
    let bounds = ["+Inf", "0.005", "0.01", "0.025", "0.1"].map(|bound| format!("le=\"{bound}\""));
    let buckets = |line: &&str| line.starts_with("distributary_turn_seconds_bucket");
    for line in metrics.lines().filter(buckets) {
        let (labels, count) = line.rsplit_once(' ').unwrap();
        let task = labels.split_once("task=\"").unwrap().1.split('"').next().unwrap();
        if let Some(at) = bounds.iter().position(|bound| labels.contains(&**bound)) {
            turns.entry(task.to_owned()).or_default()[at] = count.parse().unwrap();
        }
    }
    turns
}

/// How many turns were longer meanwhile, by task.
fn longer(before: &BTreeMap<String, [u64; 5]>, after: &BTreeMap<String, [u64; 5]>) -> String {
    let of = |[all, a, b, c, d]: [u64; 5]| [a, b, c, d].map(|shorter| all - shorter);
    let counted = after.iter().filter_map(|(task, after)| {
        let (before, after) = (of(before.get(task).copied().unwrap_or_default()), of(*after));
        let longer: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
        (longer[0] > 0).then(|| format!("{task} {longer:?}"))
    });
    counted.collect::<Vec<_>>().join(", ")
}

/// Honest clients miss nothing, new ones get in, and what the attackers took is free when they have left. Prints the times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute: tests/hostile/run"]
async fn a_hostile_fleet() {
    let scale = Scale::new();
    let mut world = World::new(&scale).await;
    world.change().await;
    let (quiet, _) = world.endures(scale.of_each, PROBES).await;
    let (memory, descriptors) = (world.relay.resident(), world.relay.descriptors());
    let bound = (2 * p99(&quiet)).max(LEAST_BOUND);
    println!("quiet: p99 of a change {:.1?}; {} MiB", p99(&quiet), memory >> 20);
    let only = std::env::var("DISTRIBUTARY_ATTACK").unwrap_or_default();
    let mut slow = Vec::new();
    for (name, who) in everybody().filter(|(name, _)| name.contains(&only)) {
        if let Who::Clients(attack) = who {
            // What is always the same is made before anybody measures.
            drop((attack.turn)(0));
        }
        let lines = world.relay.lines();
        let attackers = world.attackers(&who, scale.of_each).await;
        let begun = now();
        let used = [world.relay.processor(), processor("self")];
        let turned = turns(&world.relay.metrics());
        let (took, arrived) = world.endures(scale.of_each, who.visited()).await;
        attackers.iter().for_each(AbortHandle::abort);
        if let Who::Plane(nth) = who {
            let answers = world.planes[nth].answers.load(Ordering::Relaxed);
            assert!(answers > 0, "{name}: nobody asked it");
        }
        let (p99, longest) = (p99(&took), took.last().copied().unwrap_or_default());
        let lines = world.relay.lines() - lines;
        let of_a_core = |before: Duration, after: Duration| 100.0 * (after - before).div_duration_f64(begun.elapsed());
        println!(
            "{name}: p99 of a change {p99:.1?}, longest {longest:.1?}, an arrival up to {arrived:.1?}; {} MiB, {lines} lines; \
             {:.0} % of a core in the relay, {:.0} % in all others; turns over 5, 10, 25 and 100 ms: {}",
            world.relay.resident() >> 20,
            of_a_core(used[0], world.relay.processor()),
            of_a_core(used[1], processor("self")),
            longer(&turned, &turns(&world.relay.metrics())),
        );
        let most = LINES * (begun.elapsed().as_secs() as usize + 1);
        assert!(lines <= most, "{name}: {lines} lines in the log");
        if p99 > bound || arrived > ARRIVAL {
            slow.push(name);
        }
    }
    world.change().await;
    // The limit is one on what the process has for itself: the pages of its own file do not count.
    let peak = world.relay.peak() - world.relay.files();
    println!("{} MiB at the most", peak >> 20);
    assert!(peak < scale.budget.unwrap_or(PEAK), "{} MiB at the most", peak >> 20);
    world.settles_at(memory, descriptors).await;
    println!("slow, with more than {bound:.1?} for a change or {ARRIVAL:?} for an arrival: {slow:?}");
    assert!(!scale.judged || slow.is_empty(), "others felt these attacks: {slow:?}");
}
