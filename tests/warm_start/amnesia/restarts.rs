// SPDX-License-Identifier: Apache-2.0
//! The relay restarts from a snapshot while something is held.

use std::path::Path;

use super::{LDS, RDS, Server, Watcher, held, holding, put_clusters, put_listeners, put_path, relay, route, snapshots};
use crate::stage::{CDS, directory, eventually, now};

/// Waits until the snapshot of a relay has a hold of so many names, or none if 0.
async fn written(dir: &Path, names: usize) {
    eventually("a snapshot", || {
        let file = crate::find(dir)?;
        let found = distributary::snapshot::read(&file, &Default::default(), now()).ok()?;
        let held: usize = found.cut.holds().iter().map(|hold| hold.removals.len()).sum();
        (held == names).then_some(())
    })
    .await;
}

/// The relay restarts while the server is dead: what the snapshot holds is listed from the start, for its own reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_are_listed_while_the_server_is_away() {
    let dir = directory("listed");
    let mut server = Server::start().await;
    put_path(&server, &["c0", "c1"]);
    put_clusters(&server, 2..8);
    let old = relay("listed", &server, "60s", &snapshots(&dir));
    let wants: [(&str, &[&str]); 3] = [(LDS, &["*"]), (CDS, &["*"]), (RDS, &["r"])];
    let watcher = Watcher::start(old.address, &wants).await;
    watcher.has(CDS, "c0 c1 c2 c3 c4 c5 c6 c7").await;
    watcher.has(RDS, "r").await;
    server.remove(CDS, "c0");
    holding(&old, "cds", "referenced", "c0").await;
    server.forget(CDS, &["c4", "c5", "c6"]);
    holding(&old, "cds", "mass", "c4 c5 c6").await;
    written(&dir, 4).await;
    drop((watcher, old));
    server.stop().await;
    let new = relay("listed", &server, "60s", &snapshots(&dir));
    let watcher = Watcher::start(new.address, &wants).await;
    watcher.has(CDS, "c0 c1 c2 c3 c4 c5 c6 c7").await;
    holding(&new, "cds", "mass", "c4 c5 c6").await;
    holding(&new, "cds", "referenced", "c0").await;
    server.return_().await;
    crate::stale(&new, 0).await;
    watcher.loses_only("").await;
    assert_eq!(held(&new, "cds", "mass"), "c4 c5 c6");
    assert_eq!(held(&new, "cds", "referenced"), "c0");
    server.put(RDS, "r", route("r", &["c1"]));
    watcher.has(CDS, "c1 c2 c3 c4 c5 c6 c7").await;
}

/// The clock of the machine that wrote the snapshot was years ahead: nothing is held for years.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_was_ahead() {
    let dir = directory("ahead");
    let server = Server::start().await;
    put_listeners(&server, 1..=3);
    let old = relay("ahead", &server, "1s", &snapshots(&dir));
    let watcher = Watcher::start(old.address, &[(LDS, &["*"])]).await;
    watcher.has(LDS, "l1 l2 l3").await;
    server.forget(LDS, &["l1"]);
    holding(&old, "lds", "mass", "l1").await;
    written(&dir, 1).await;
    drop((watcher, old));
    far_ahead(&dir);
    let new = relay("ahead", &server, "1s", &snapshots(&dir));
    let watcher = Watcher::start(new.address, &[(LDS, &["*"])]).await;
    watcher.has(LDS, "l1 l2 l3").await;
    watcher.has(LDS, "l2 l3").await;
}

/// Moves the times of all holds of a snapshot a hundred years on.
fn far_ahead(dir: &Path) {
    let file = crate::find(dir).unwrap();
    let found = distributary::snapshot::read(&file, &Default::default(), now()).unwrap();
    let century = std::time::Duration::from_secs(100 * 365 * 86_400);
    let mut holds = found.cut.holds().to_vec();
    for hold in &mut holds {
        let removals = std::mem::take(&mut hold.removals).into_iter();
        let removals = removals.map(|(name, mut removal)| {
            removal.until = removal.until.map(|until| until + century);
            (name, removal)
        });
        hold.removals = removals.collect();
    }
    let cut = found.cut.with_holds(holds);
    distributary::snapshot::write(&file, &found.of, &cut, false).unwrap();
}
