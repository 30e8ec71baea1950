// SPDX-License-Identifier: Apache-2.0
//! What neighbours have given, until a view begins with it.
//!
//! Owns how long a view waits for it, and how long it is kept. Does not know where it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::clock;
use crate::snapshot::{Snapshot, SnapshotIdentity};
use crate::xds::Cut;

/// The snapshots of neighbours.
#[derive(Debug, Default)]
pub(super) struct Received(watch::Sender<ReceivedState>);

#[derive(Debug, Default)]
struct ReceivedState {
    snapshots: BTreeMap<SnapshotIdentity, Cut>,
    /// All servers of which one came.
    servers: BTreeSet<String>,
    /// Set once nothing more comes: until when the rest is kept.
    until: Option<Instant>,
}

/// How long what no view has begun with is kept for one that may yet be created.
const KEPT: Duration = Duration::from_secs(3600);

impl Received {
    /// Takes a snapshot. Of two for one view the first counts; returns whether it is that.
    pub(super) fn add(&self, Snapshot { of, cut }: Snapshot) -> bool {
        self.0.send_if_modified(|state| {
            state.servers.insert(of.server.clone());
            let new = !state.snapshots.contains_key(&of);
            if new {
                state.snapshots.insert(of, cut);
            }
            new
        })
    }

    /// Nothing more comes. Returns the servers of which a snapshot came.
    pub(super) fn end(&self) -> BTreeSet<String> {
        self.0.send_modify(|state| state.until = Some(clock::now() + KEPT));
        self.0.borrow().servers.clone()
    }

    /// Returns the snapshot of a view, once it is there or nothing more comes. It is given once.
    pub(super) async fn take(&self, of: &SnapshotIdentity) -> Option<Cut> {
        let known = |state: &ReceivedState| state.until.is_some() || state.snapshots.contains_key(of);
        // This is the sender, so there is one.
        let _ = self.0.subscribe().wait_for(known).await;
        let mut taken = None;
        self.0.send_if_modified(|state| {
            taken = state.snapshots.remove(of);
            false
        });
        taken
    }

    /// Forgets what was kept for long enough.
    pub(super) fn forget(&self) {
        self.0.send_if_modified(|state| {
            if state.until.is_some_and(|until| until <= clock::now()) {
                state.snapshots.clear();
            }
            false
        });
    }
}
