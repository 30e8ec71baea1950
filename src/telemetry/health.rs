// SPDX-License-Identifier: Apache-2.0
//! Whether the relay can serve: one status with many readers (probes, gRPC health). Owns the order of the states, what the first one
//! waits for, and the operator's override by which the relay reports a failure for a while. The wiring knows when a state is reached.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tokio::sync::watch;

/// The status of the relay. The status that it has reached never goes back.
#[derive(Debug)]
pub struct Health {
    state: watch::Sender<HealthState>,
    lists: Mutex<NeededLists>,
}

/// The lists of control planes without which clients cannot be served, by their names.
#[derive(Debug, Default)]
struct NeededLists {
    all: usize,
    missing: BTreeSet<String>,
}

/// The status that was reached, and the operator's override.
#[derive(Clone, Copy, Debug)]
pub struct HealthState {
    reached: RelayStatus,
    failed: bool,
}

impl HealthState {
    /// Returns the status for readers.
    #[must_use]
    pub const fn status(self) -> RelayStatus {
        if self.failed {
            RelayStatus::Draining
        } else {
            self.reached
        }
    }

    /// Whether the relay is stopping, so that the status does not change any more.
    #[must_use]
    pub const fn is_last(self) -> bool {
        matches!(self.reached, RelayStatus::Draining)
    }
}

/// What the relay can do for clients, in the order in which it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RelayStatus {
    /// No control plane has been reached yet.
    Starting,
    /// It can serve. Losing a control plane later does not end this (G-19).
    Ready,
    /// It is about to stop, or the operator makes it report a failure.
    Draining,
}

impl Health {
    /// Creates the status of a relay that has just started.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: watch::Sender::new(HealthState {
                reached: RelayStatus::Starting,
                failed: false,
            }),
            lists: Mutex::default(),
        }
    }

    /// From now on, the relay can serve once there is something of each of these lists of control planes.
    pub fn await_all(&self, lists: BTreeSet<String>) {
        *self.lists.lock() = NeededLists {
            all: lists.len(),
            missing: lists,
        };
    }

    /// Records that a control plane of this list was reached, or that there is a snapshot of one.
    pub fn is_there(&self, list: &str) {
        let mut lists = self.lists.lock();
        lists.missing.remove(list);
        if lists.missing.is_empty() {
            drop(lists);
            self.advance(RelayStatus::Ready);
        }
    }

    /// Returns the lists of which nothing is there, if there is something of others.
    pub fn missing(&self) -> Option<BTreeSet<String>> {
        let lists = self.lists.lock();
        (lists.missing.len() < lists.all).then(|| lists.missing.clone())
    }

    /// Says of which lists no control plane has been reached.
    pub fn not_reached(&self) -> String {
        let Some(missing) = self.missing() else {
            return "no control plane has been reached yet".to_owned();
        };
        let name = |list: &String| match list.strip_prefix('#') {
            Some(source) => format!("the source `{source}`"),
            None => "`upstream.xds_servers`".to_owned(),
        };
        let names: Vec<String> = missing.iter().map(name).collect();
        format!("no control plane of {} has been reached yet", names.join(", nor of "))
    }

    /// Records that `status` is reached. An earlier status than the present one has no effect.
    pub fn advance(&self, status: RelayStatus) {
        let new = self.state.send_if_modified(|state| {
            let later = status > state.reached;
            if later {
                state.reached = status;
            }
            later
        });
        if new && status == RelayStatus::Ready {
            tracing::info!("ready: clients can be served");
        }
    }

    /// Sets or ends the operator's override.
    pub fn fail(&self, failed: bool) {
        self.state
            .send_if_modified(|state| std::mem::replace(&mut state.failed, failed) != failed);
    }

    /// Returns the current status.
    pub fn status(&self) -> RelayStatus {
        self.state.borrow().status()
    }

    /// Returns a receiver of the status and its changes.
    pub fn watch(&self) -> watch::Receiver<HealthState> {
        self.state.subscribe()
    }
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_never_goes_back() {
        let health = Health::new();
        assert_eq!(health.status(), RelayStatus::Starting);
        health.advance(RelayStatus::Ready);
        assert_eq!(health.status(), RelayStatus::Ready);
        health.advance(RelayStatus::Draining);
        let mut watch = health.watch();
        health.advance(RelayStatus::Ready);
        assert_eq!(health.status(), RelayStatus::Draining);
        assert!(!watch.has_changed().unwrap());
        assert!(watch.borrow_and_update().is_last());
    }

    /// What is waited for has a name once something else is there.
    #[test]
    fn what_is_missing_is_known() {
        let health = Health::new();
        health.await_all(BTreeSet::from([String::new(), "#endpoints".to_owned()]));
        assert_eq!(health.not_reached(), "no control plane has been reached yet");
        health.is_there("");
        let said = "no control plane of the source `endpoints` has been reached yet";
        assert_eq!(health.not_reached(), said);
        assert_eq!(health.missing(), Some(BTreeSet::from(["#endpoints".to_owned()])));
        assert_eq!(health.status(), RelayStatus::Starting);
        health.is_there("#endpoints");
        assert_eq!(health.status(), RelayStatus::Ready);
    }

    /// A status that is reached during the operator's override counts afterwards.
    #[test]
    fn an_operator_has_it_fail_for_a_while() {
        let health = Health::new();
        health.fail(true);
        health.advance(RelayStatus::Ready);
        assert!(health.status() == RelayStatus::Draining && !health.watch().borrow().is_last());
        let watch = health.watch();
        health.fail(true);
        assert!(!watch.has_changed().unwrap());
        health.fail(false);
        assert_eq!(
            (health.status(), watch.has_changed().unwrap()),
            (RelayStatus::Ready, true)
        );
        health.advance(RelayStatus::Draining);
        health.fail(false);
        assert_eq!(health.status(), RelayStatus::Draining);
    }
}
