// SPDX-License-Identifier: Apache-2.0
//! When a change of a file reaches a view, on a real file system.

use std::io::Write;
use std::time::Duration;

use distributary::cache::{Seat, View, ViewSettings};
use distributary::classes::Class;
use distributary::protocol::Holds;
use distributary::telemetry::Metrics;
use distributary::upstream::{FileWriter, Files};
use distributary::xds::{GuardSettings, ServerState, Target, Want};

use super::*;

/// How long a test waits for anything before it fails.
const PATIENCE: Duration = Duration::from_secs(45);
/// Less than the time after which files are looked at without an event.
const POLL: Duration = Duration::from_secs(9);

/// A source with one view of it, and a session that wants all clusters.
struct Source {
    files: Arc<Files>,
    view: Arc<View>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    _seat: Seat,
}

impl Source {
    fn start(path: &Path) -> Self {
        Self::quiet(path, Duration::ZERO)
    }

    /// The same, with removals that wait so long for routes.
    fn quiet(path: &Path, quiet: Duration) -> Self {
        let metrics = Metrics::new([]);
        let files = Files::new("files", path, metrics.upstreams.of_files("files"));
        let settings = ViewSettings {
            linger: Duration::ZERO,
            names_per_view: 0,
            pinned_bytes_per_view: 0,
            history_bytes: 16 << 20,
        };
        let view = View::new(Class::default(), settings);
        let seat = view.enter();
        let want = Want {
            type_url: cds(),
            target: Target::Wildcard,
            wanted: true,
            written: None,
        };
        seat.want(&want).unwrap();
        let tasks = vec![
            spawn(files.clone().run(MIB, dictionary())),
            spawn(FileWriter::new(view.clone(), &files, Holds::new(quiet, PATIENCE, GuardSettings::OFF)).run()),
        ];
        Self {
            files,
            view,
            tasks,
            _seat: seat,
        }
    }

    fn clusters(&self) -> Option<Vec<String>> {
        let cut = self.view.cut();
        let state = cut
            .slot(&cds())?
            .wildcard
            .as_ref()
            .filter(|state| state.complete())?
            .clone();
        Some(state.resources().map(|resource| resource.name().to_string()).collect())
    }

    /// Waits until exactly these clusters are there; returns how long that took.
    async fn until(&self, expected: &[&str]) -> Duration {
        let begun = now();
        self.wait(
            |source| source.clusters().is_some_and(|there| there == expected),
            &format!("{expected:?}"),
        )
        .await;
        begun.elapsed()
    }

    async fn wait(&self, condition: impl Fn(&Self) -> bool, what: &str) {
        let begun = now();
        while !condition(self) {
            assert!(
                begun.elapsed() < PATIENCE,
                "{what}: {:?} {:?}",
                self.clusters(),
                self.files.status()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

#[expect(clippy::disallowed_methods, reason = "the relay's wiring does this")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
    tokio::spawn(task)
}

/// I-02, I-03: a file that is moved into place is seen at once, also if there was none before; a file that is written in
/// place is seen when the writer pauses.
#[tokio::test(flavor = "multi_thread")]
async fn moves_and_writes() {
    let folder = Folder::new();
    let source = Source::start(&folder.write("c.yaml", &clusters(&["a"])));
    source.until(&["a"]).await;
    source.files.reached().await;
    assert_eq!(source.view.cut().server_state(), ServerState::Up);
    folder.place("c.yaml", &clusters(&["b"]));
    let took = source.until(&["b"]).await;
    assert!(took < POLL, "{took:?} is the poll");
    folder.write("c.yaml", &clusters(&["c"]));
    let took = source.until(&["c"]).await;
    assert!(took < POLL, "{took:?} is the poll");
    folder.remove("c.yaml");
    source
        .wait(|source| source.files.status().faulty == 1, "the fault")
        .await;
    assert!(source.files.status().faults[0].contains("No such file") && source.files.status().since.is_some());
    assert_eq!(source.clusters().unwrap(), ["c"]);
    folder.place("c.yaml", &clusters(&["d"]));
    source.until(&["d"]).await;
    assert_eq!(source.files.status().faulty, 0);
}

/// D-03: a cluster that is gone from the files stays for a while, because a route may follow; a cluster that returns in that
/// time was never gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_removal_waits_for_routes() {
    let quiet = Duration::from_millis(1500);
    let folder = Folder::new();
    let source = Source::quiet(&folder.write("c.yaml", &clusters(&["a", "b"])), quiet);
    source.until(&["a", "b"]).await;
    let generation = source.view.head().generation();
    folder.place("c.yaml", &clusters(&["b"]));
    let looked = |source: &Source| source.files.status().resources == 1;
    source.wait(looked, "the file without the cluster").await;
    folder.place("c.yaml", &clusters(&["a", "b"]));
    source.wait(|source| !looked(source), "the file with the cluster").await;
    tokio::time::sleep(2 * quiet).await;
    assert_eq!(source.view.head().generation(), generation, "nothing has changed");
    let begun = now();
    folder.place("c.yaml", &clusters(&["b"]));
    source.until(&["b"]).await;
    assert!(begun.elapsed() >= quiet);
}

/// E-11: a resource expires by itself, without an event of the file system.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_to_live_ends() {
    let folder = Folder::new();
    let text = "- '@type': type.googleapis.com/envoy.service.discovery.v3.Resource\n  ttl: 1.5s\n  resource: { '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a }\n";
    let source = Source::start(&folder.write("c.yaml", text));
    source.until(&["a"]).await;
    let took = source.until(&[]).await;
    assert!(took < POLL, "{took:?} is the poll");
}

/// A slow write is seen as a whole: neither the empty file nor half of it counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_writer() {
    // A busy machine may pause, which is taken for the end.
    for _ in 0..20 {
        if writes_slowly().await {
            return;
        }
    }
    panic!("there is always a pause");
}

/// Returns whether the file was written without a pause.
async fn writes_slowly() -> bool {
    let folder = Folder::new();
    let path = folder.write("c.yaml", &clusters(&["a", "b"]));
    let source = Source::start(&path);
    source.until(&["a", "b"]).await;
    let generation = source.view.head().generation();
    let text = clusters(&["a", "b", "c", "d"]);
    let mut last = now();
    let mut file = std::fs::File::create(&path).unwrap();
    for part in text.as_bytes().chunks(40) {
        file.write_all(part).unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
        if now() - std::mem::replace(&mut last, now()) > Duration::from_millis(200) {
            return false;
        }
    }
    source.until(&["a", "b", "c", "d"]).await;
    assert_eq!(
        source.view.head().generation(),
        generation + 1,
        "nothing was seen in between"
    );
    true
}

/// I-04: the swap of a mounted ConfigMap, twice, for the file and for the directory.
#[tokio::test(flavor = "multi_thread")]
async fn a_swapped_config_map() {
    let folder = Folder::new();
    let swap = |version: &str, cluster: &str| {
        std::fs::create_dir(folder.path(version)).unwrap();
        folder.write(&format!("{version}/c.yaml"), &clusters(&[cluster]));
        std::os::unix::fs::symlink(version, folder.path("..data_tmp")).unwrap();
        std::fs::rename(folder.path("..data_tmp"), folder.path("..data")).unwrap();
    };
    swap("..1", "one");
    std::os::unix::fs::symlink("..data/c.yaml", folder.path("c.yaml")).unwrap();
    let (file, directory) = (Source::start(&folder.path("c.yaml")), Source::start(&folder.0));
    for (version, cluster) in [("..2", "two"), ("..3", "three")] {
        swap(version, cluster);
        for source in [&file, &directory] {
            source.until(&[cluster]).await;
        }
    }
    std::fs::remove_dir_all(folder.path("..1")).unwrap();
    std::fs::remove_dir_all(folder.path("..2")).unwrap();
    swap("..4", "four");
    assert!(file.until(&["four"]).await < POLL);
}

/// I-07: a directory that does not exist yet, or goes and comes back, is found by looking periodically.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_comes_and_goes() {
    let folder = Folder::new();
    let path = folder.path("later/below");
    let source = Source::start(&path);
    source
        .wait(
            |source| source.view.cut().server_state() == ServerState::Failing,
            "a failure",
        )
        .await;
    assert_eq!(source.clusters(), None);
    std::fs::create_dir_all(&path).unwrap();
    folder.write("later/below/1.yaml", &clusters(&["a"]));
    source.until(&["a"]).await;
    std::fs::remove_dir_all(folder.path("later")).unwrap();
    source
        .wait(|source| source.files.status().faulty == 1, "the fault")
        .await;
    assert_eq!(source.clusters().unwrap(), ["a"]);
    std::fs::create_dir_all(&path).unwrap();
    folder.write("later/below/1.yaml", &clusters(&["b"]));
    source.until(&["b"]).await;
    folder.write("later/below/2.yaml", &clusters(&["c"]));
    source.until(&["b", "c"]).await;
    folder.remove("later/below/1.yaml");
    source.until(&["c"]).await;
}
