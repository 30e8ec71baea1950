// SPDX-License-Identifier: Apache-2.0
//! The one writer of a view that is fed from files.
//!
//! Owns the order of work. Reads no files: all views of a source share its content.

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::watch;

use super::asked::FileWants;
use super::{Files, Loaded};
use crate::cache::View;
use crate::clock::{self, now};
use crate::protocol::Holds;
use crate::telemetry::TracedArrival;
use crate::upstream::holding::{FindOtherViews, HeldView};
use crate::upstream::overtime::{self, MANY};
use crate::xds::{Changes, GuardSettings, Update};

/// Keeps a view in step with the files of a source.
pub struct FileWriter {
    view: Arc<View>,
    loaded: watch::Receiver<Loaded>,
    asked: FileWants,
    /// D-03: removals that wait: an operator may change the file with the cluster before the file with the route. D-11, D-12: what waits
    /// for other servers.
    holding: HeldView,
    server: Arc<str>,
}

impl FileWriter {
    /// Creates the writer of a view of this source.
    #[must_use]
    pub fn new(view: Arc<View>, files: &Files, waiting: Holds) -> Self {
        let told = (files.metrics.traces.clone(), files.metrics.holds.clone());
        Self {
            holding: HeldView::new(view.clone(), &files.uri, told, waiting),
            view,
            loaded: files.loaded.subscribe(),
            asked: FileWants::default(),
            server: Arc::from(&*files.uri),
        }
    }

    /// D-12: changes wait for what clients read of other servers, which is found in this way.
    #[must_use]
    pub fn seeing(mut self, find: FindOtherViews) -> Self {
        self.holding.look_at_other_views(find);
        self
    }

    /// Works until the view is closed.
    pub async fn run(mut self) {
        while !self.view.mailbox().is_closed() {
            let loaded = self.loaded.borrow_and_update().clone();
            let is_long = loaded.content.len() + self.holding.holds().len() > MANY;
            overtime::turn(is_long, pin!(self.turn(&loaded))).await;
            self.next().await;
            // Clients may want very much at once. The other tasks of this thread have their turns in between.
            tokio::task::yield_now().await;
        }
        self.holding.close();
    }

    async fn turn(&mut self, loaded: &Loaded) {
        // An operator who removes something from a file means it.
        self.holding.holds().handle_settings(GuardSettings {
            unready: self.view.guarded().settings().unready,
            ..GuardSettings::OFF
        });
        let orders = self.holding.take_orders();
        let wants = self.view.take_wants(now());
        let ended = wants.iter().filter(|want| !want.wanted);
        ended.for_each(|want| self.holding.holds().handle_unwanted(&want.type_url, &want.target));
        let cut = self.view.cut();
        let changes = self.asked.handle_wants(&wants, &loaded.content, &cut);
        self.holding.publish(&changes, &[], &cut).await;
        if !self.asked.is_at(&loaded.content) {
            let cut = self.view.cut();
            let mut changes = self.asked.handle_content(&loaded.content, &cut);
            self.holding.holds().hear_again(&mut changes, &cut, now());
            self.holding.cross(&mut changes, &cut);
            self.holding.publish(&changes, &self.arrivals(&changes), &cut).await;
        }
        loop {
            let cut = self.view.cut();
            let free = self.holding.look(&cut);
            if free.is_empty() {
                break;
            }
            self.holding.publish(&free, &[], &cut).await;
        }
        self.holding.tell();
        drop(orders);
        self.view.publish_server_state(loaded.server_state);
    }

    /// Returns the newest content of each type as what arrived together, if changes are traced.
    fn arrivals(&self, changes: &[Changes]) -> Vec<TracedArrival> {
        let of_type = |changes: &Changes| {
            let put = changes.updates.iter().filter_map(|update| match update {
                Update::Put(resource, _) => Some(resource),
                Update::Absent(..) | Update::Forget(_) | Update::Whole(_) | Update::Error(..) => None,
            });
            let received = put.clone().map(|resource| resource.received()).max()?;
            let new = put.filter(|resource| resource.received() == received);
            Some(TracedArrival {
                server: self.server.clone(),
                type_url: changes.type_url.clone(),
                bytes: new.map(|resource| resource.weight()).sum(),
                received,
                decoded: now(),
                parent: None,
                stream: None,
            })
        };
        let traced = changes.iter().filter(|_| self.holding.traces());
        traced.filter_map(of_type).collect()
    }

    async fn next(&mut self) {
        let (view, loaded, holding) = (&self.view, &mut self.loaded, &self.holding);
        let times = [view.demand().poll_timeout(), holding.poll_timeout()];
        let timer = clock::sleep_if(times.into_iter().flatten().min());
        let news = async {
            // If the task that reads the files has ended, only wants can change.
            if loaded.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = view.mailbox().changed() => {}
            () = news => {}
            () = timer => {}
        }
    }
}
