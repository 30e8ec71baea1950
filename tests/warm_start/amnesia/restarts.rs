// SPDX-License-Identifier: Apache-2.0
//! The relay restarts from a snapshot while something is held.

use std::path::Path;

use super::{
    LDS, RDS, Server, Watcher, configuration, held, holding, nothing_held, of, put_clusters, put_listeners, put_path,
    relay, route, snapshots,
};
use crate::stage::{CDS, Relay, directory, eventually, now};

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

/// Waits until the snapshot has so many resources.
async fn whole(dir: &Path, resources: usize) {
    eventually("a whole snapshot", || {
        let file = crate::find(dir)?;
        let found = distributary::snapshot::read(&file, &Default::default(), now()).ok()?;
        let present: usize = found.cut.slots().map(|(_, slot)| slot.present()).sum();
        (present == resources).then_some(())
    })
    .await;
}

/// The relay restarts while listeners are held, and the server is whole again. The times of the old hold are over with it: the next
/// amnesia is held as long as any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remembered_hold_does_not_disarm() {
    let dir = directory("disarm");
    let server = Server::start().await;
    put_listeners(&server, 1..=3);
    let whole = server.content();
    let old = relay("disarm", &server, "2s", &snapshots(&dir));
    let watcher = Watcher::start(old.address, &[(LDS, &["*"])]).await;
    watcher.has(LDS, "l1 l2 l3").await;
    server.forget(LDS, &["l1", "l2", "l3"]);
    holding(&old, "lds", "mass", "l1 l2 l3").await;
    written(&dir, 3).await;
    let until = of(&old, "lds", "mass")[0]["until"].as_str().unwrap().to_owned();
    drop((watcher, old));
    server.restart(|content| *content = whole.clone());
    let new = relay("disarm", &server, "2s", &snapshots(&dir));
    let watcher = Watcher::start(new.address, &[(LDS, &["*"])]).await;
    watcher.has(LDS, "l1 l2 l3").await;
    nothing_held(&new).await;
    // Until the time of the old hold is over.
    eventually("the old end", || (utc() > until).then_some(())).await;
    server.forget(LDS, &["l1", "l2", "l3"]);
    holding(&new, "lds", "mass", "l1 l2 l3").await;
    assert_eq!(watcher.lost(), "");
}

/// The time of day, as in `/holds`.
fn utc() -> String {
    let out = std::process::Command::new("date")
        .args(["-u", "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .unwrap();
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

/// Over SotW, the relay restarts, and the server has forgotten clusters and says nothing of routes yet. The restored route is served
/// still, so it counts: its clusters stay when the clock of the judgement ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_route_refers() {
    let dir = directory("restored-route");
    let server = Server::start().await;
    put_path(&server, &["c0", "c1", "c2", "c3"]);
    put_clusters(&server, 4..8);
    let upstream = format!("{{server_uri: '{}', transport: sotw}}", server.address);
    let more = format!("timers: {{does_not_exist: 500ms}}\n{}", snapshots(&dir));
    let text = configuration(&upstream, "5s", &more);
    let old = Relay::telling("amnesia-restored", &text);
    let wants: [(&str, &[&str]); 3] = [(LDS, &["*"]), (CDS, &["*"]), (RDS, &["r"])];
    let watcher = Watcher::start(old.address, &wants).await;
    watcher.has(CDS, "c0 c1 c2 c3 c4 c5 c6 c7").await;
    watcher.has(RDS, "r").await;
    whole(&dir, 10).await;
    drop((watcher, old));
    server.restart(|content| {
        content
            .get_mut(CDS)
            .unwrap()
            .retain(|name, _| ["c3", "c7"].contains(&name.as_str()));
    });
    server.mute(RDS);
    let new = Relay::telling("amnesia-restored", &text);
    let watcher = Watcher::start(new.address, &wants).await;
    watcher.has(CDS, "c0 c1 c2 c3 c4 c5 c6 c7").await;
    // The clock lets go what nothing refers to.
    watcher.has(CDS, "c0 c1 c2 c3 c7").await;
    watcher.keeps(&["c0", "c1", "c2", "c3", "c7"]).await;
    assert_eq!(held(&new, "cds", "referenced"), "c0 c1 c2");
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
