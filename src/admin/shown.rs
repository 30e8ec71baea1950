// SPDX-License-Identifier: Apache-2.0
//! What the paths of the admin address are given to show, and the channels for what they order. Knows no path.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Guard, History, Overview, Process, ReloadOrder, Snapshots, holds};
use crate::census::ClientStatus;
use crate::telemetry::{Health, Metrics};
use crate::tls::InUse;

/// What the admin address shows.
#[derive(Clone)]
pub struct Shown {
    /// For `/metrics`.
    pub metrics: Arc<Metrics>,
    /// For `/clusters`, and for the metrics of resource names.
    pub overview: Overview,
    /// For `/clients` and CSDS.
    pub status: ClientStatus,
    /// For `/certs`.
    pub certificates: Arc<InUse>,
    /// For the probes.
    pub health: Arc<Health>,
    /// The channel for the operator's drain orders.
    pub order: mpsc::Sender<DrainOrder>,
    /// The channel for the operator's orders to read the configuration again.
    pub reload: mpsc::Sender<ReloadOrder>,
    /// What decides who may see and order it.
    pub guard: Guard,
    /// For `/server_info`, `/listeners` and `/logging`.
    pub process: Process,
    /// The counts of the last hour.
    pub history: History,
    /// What other relays may begin with.
    pub snapshots: Snapshots,
}

impl Shown {
    /// Sets the metrics that are only counted when somebody reads them.
    pub async fn refresh(&self) {
        self.overview.count_names(&self.metrics);
        holds::measure(self).await;
        let standings = self.status.census().standings().await;
        self.metrics
            .hanging_clients
            .set(i64::try_from(standings.hanging()).unwrap_or(i64::MAX));
        let slow = standings.types.iter();
        let slow = slow.map(|(type_url, of)| (type_url.clone(), [0, 0, of.lagging, of.waiting]));
        let rejects = self.status.census().rejecting().into_iter();
        let rejects = rejects.map(|(type_url, [own, older])| (type_url, [own, older, 0, 0]));
        self.metrics.show_clients(slow.chain(rejects));
    }
}

/// The operator's order to move clients away.
#[derive(Clone, Copy, Debug)]
pub struct DrainOrder {
    /// Whether readiness fails first, and clients leave only after load balancers could notice that.
    pub graceful: bool,
}
