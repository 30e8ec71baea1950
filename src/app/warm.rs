// SPDX-License-Identifier: Apache-2.0
//! The warm start: the content of views is written to disk, and read back when a view is created; or neighbours are asked for theirs.
//!
//! Owns when snapshots are written and read. Never blocks a publish, a client, or the end of the relay.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;

use super::fleet::Fleet;
use super::neighbours::Neighbours;
use super::received::Received;
use super::{handing, plan};
use crate::cache::{Knowledge, Scopes, View};
use crate::clock::WallClock;
use crate::config::Config;
use crate::snapshot::{Folder, SnapshotError, SnapshotIdentity, read};
use crate::telemetry::{FaultSource, LinePaces, Metrics};
use crate::xds::{Cut, Hold, Types};

/// The snapshots of a relay.
pub(super) struct Warm {
    /// None if nothing is written to disk.
    folder: Option<Arc<Folder>>,
    neighbours: Neighbours,
    received: Arc<Received>,
    interval: Duration,
    types: Types,
    fleet: Arc<Fleet>,
    scopes: Arc<Scopes>,
    metrics: Arc<Metrics>,
    /// By identity: the view that was written last, and its generation then.
    written: Mutex<BTreeMap<SnapshotIdentity, WrittenView>>,
    /// The lines about those that cannot be written.
    paces: LinePaces,
}

/// What was written of a view.
struct WrittenView {
    view: Weak<View>,
    generation: u64,
    holds: Arc<Vec<Hold>>,
    at: Instant,
}

/// A view that has changed since it was last written.
struct ChangedView {
    of: SnapshotIdentity,
    kept: Knowledge,
    view: Arc<View>,
    generation: u64,
}

impl Warm {
    /// Creates the warm start, if the configuration asks for snapshots.
    pub(super) fn new(
        config: &Config,
        fleet: &Arc<Fleet>,
        scopes: &Arc<Scopes>,
        metrics: &Arc<Metrics>,
    ) -> Option<Arc<Self>> {
        let snapshot = config.snapshot.as_ref()?;
        let (secrets, types) = (snapshot.include_secrets, plan::types(config));
        let folder = |dir: &PathBuf| Arc::new(Folder::new(dir.clone(), secrets, config.limits.views));
        Some(Arc::new(Self {
            folder: snapshot.dir.as_ref().map(folder),
            neighbours: Neighbours::new(config, types.clone(), metrics),
            received: Arc::default(),
            interval: snapshot.interval,
            types,
            fleet: fleet.clone(),
            scopes: scopes.clone(),
            metrics: metrics.clone(),
            written: Mutex::default(),
            paces: LinePaces::default(),
        }))
    }

    /// Checks the snapshots on disk, and asks neighbours for theirs if none is usable. Returns the servers of which one can be served.
    pub(super) async fn look(&self) -> BTreeSet<String> {
        let mut servers = BTreeSet::new();
        if let Some(folder) = &self.folder {
            servers = self.look_into(folder).await;
        }
        if servers.is_empty() {
            self.neighbours.ask(&self.received).await;
        }
        servers.append(&mut self.received.end());
        servers
    }

    async fn look_into(&self, folder: &Arc<Folder>) -> BTreeSet<String> {
        let (all, types) = (folder.clone(), self.types.clone());
        let found = blocking(move || {
            let read = |path: PathBuf| read(&path, &types, plan::now()).map(|snapshot| snapshot.of.server);
            Ok(all.all()?.into_iter().map(read).collect())
        });
        let found: Vec<_> = match found.await {
            Ok(found) => found,
            Err(error) => vec![Err(error)],
        };
        let mut usable = 0;
        let mut servers = BTreeSet::new();
        for file in found {
            match file {
                Ok(server) => {
                    usable += 1;
                    servers.insert(server);
                }
                Err(error) => self.refused(&error),
            }
        }
        if usable > 0 {
            tracing::info!(dir = %folder.dir().display(), usable, "clients can be served from snapshots");
        }
        servers
    }

    /// Loads the snapshot of a view, if there is one: from disk, or what a neighbour has given, once they were asked.
    pub(super) async fn load(&self, view: &Arc<View>) {
        let Some(of) = self.identity(view) else { return };
        let cut = match self.saved(&of).await {
            Some(cut) => Some(cut),
            None => self.received.take(&of).await,
        };
        if let Some(cut) = cut {
            let resources: usize = cut.slots().map(|(_, slot)| slot.present()).sum();
            tracing::info!(
                server = of.server,
                class = of.class,
                resources,
                "a view begins with its snapshot"
            );
            self.metrics.snapshots.loaded.inc();
            view.set_restored(cut);
        }
    }

    async fn saved(&self, of: &SnapshotIdentity) -> Option<Cut> {
        let folder = self.folder.clone()?;
        let (types, class) = (self.types.clone(), of.clone());
        let loaded = blocking(move || folder.load(&class, &types, plan::now())).await;
        loaded.unwrap_or_else(|error| {
            self.refused(&error);
            None
        })
    }

    /// Writes changed views at every interval, forever.
    pub(super) async fn keep(&self) {
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            self.received.forget();
            self.write(self.changed()).await;
        }
    }

    /// Writes changed views for the last time. The call collects the changes, before clients leave; the future writes them.
    pub(super) fn last(self: Arc<Self>) -> impl Future<Output = ()> {
        let changed = self.changed();
        async move { self.write(changed).await }
    }

    fn changed(&self) -> Vec<ChangedView> {
        if self.folder.is_none() {
            return Vec::new();
        }
        let mut written = self.written.lock();
        written.retain(|_, last| last.view.strong_count() > 0);
        let mut changed = Vec::new();
        for view in self.scopes.all() {
            let Some(of) = self.identity(&view) else { continue };
            let (generation, kept) = (view.head().generation(), view.knowledge(plan::now()));
            let same = written.get(&of).is_some_and(|last| last.is(&view, generation));
            // An empty view must not replace an earlier snapshot.
            if !same && !kept.is_empty() {
                changed.push(ChangedView {
                    of,
                    kept,
                    view,
                    generation,
                });
            }
        }
        changed
    }

    async fn write(&self, changed: Vec<ChangedView>) {
        let Some(folder) = &self.folder else { return };
        let (mut any, mut faults) = (false, Vec::new());
        for ChangedView {
            of,
            kept,
            view,
            generation,
        } in changed
        {
            let (into, named, holds) = (folder.clone(), of.clone(), view.head().holds());
            match blocking(move || into.save(&named, &kept.whole())).await {
                Ok(()) => {
                    tracing::debug!(server = of.server, class = of.class, generation, "snapshot written");
                    self.metrics.snapshots.written.inc();
                    let mut written = self.written.lock();
                    let last = WrittenView {
                        view: Arc::downgrade(&view),
                        generation,
                        holds,
                        at: plan::now(),
                    };
                    written.insert(of, last);
                    any = true;
                }
                Err(error) => {
                    self.metrics.snapshots.not_written.inc();
                    let (said, retry_in) = (error.to_string(), self.interval);
                    if let Some(suppressed) = self.paces.admit(&[&of.server, &of.class, &said], plan::now()) {
                        tracing::warn!(
                            server = of.server,
                            error = said,
                            ?retry_in,
                            suppressed,
                            "cannot write a snapshot; clients are still served"
                        );
                    }
                    faults.push(self.fault(&of, &error));
                }
            }
        }
        let more = faults.len().saturating_sub(1);
        faults.truncate(1);
        if let Some(first) = faults.first_mut().filter(|_| more > 0) {
            first.push_str(&format!("; {more} more of other views"));
        }
        self.metrics.faults.show(FaultSource::Snapshots, faults);
        if any {
            self.prune(folder).await;
        }
    }

    /// Says what a restart would begin with, because a snapshot cannot be written.
    fn fault(&self, of: &SnapshotIdentity, error: &SnapshotError) -> String {
        let written = self.written.lock();
        let last = written.get(of).map(|last| WallClock::read().time(last.at));
        let last = last.map_or_else(
            || "none of it was written since the start".to_owned(),
            |at| format!("the last one of it was written at {at}"),
        );
        format!("a snapshot of {} cannot be written: {error}; {last}", of.server)
    }

    async fn prune(&self, folder: &Arc<Folder>) {
        let open: BTreeSet<PathBuf> = self
            .scopes
            .all()
            .iter()
            .filter_map(|view| self.identity(view))
            .map(|of| folder.path(&of))
            .collect();
        let folder = folder.clone();
        if let Err(error) = blocking(move || folder.prune(&open)).await {
            tracing::warn!(%error, "cannot remove old snapshots");
        }
    }

    fn identity(&self, view: &View) -> Option<SnapshotIdentity> {
        handing::identity(&self.fleet, &self.scopes, view)
    }

    fn refused(&self, error: &SnapshotError) {
        self.metrics.snapshots.not_loaded.inc();
        tracing::warn!(%error, "a snapshot is not used; a new one is written once the control plane has answered");
    }
}

impl WrittenView {
    fn is(&self, view: &View, generation: u64) -> bool {
        let same = std::ptr::eq(self.view.as_ptr(), view) && self.generation == generation;
        same && Arc::ptr_eq(&self.holds, &view.head().holds())
    }
}

/// Runs work that waits for the disk on a thread where blocking is allowed.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SnapshotError> + Send + 'static,
) -> Result<T, SnapshotError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(lost) => Err(SnapshotError::Read {
            path: PathBuf::new(),
            source: std::io::Error::other(lost),
        }),
    }
}
