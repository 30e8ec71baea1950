//! The one writer of a view that is fed from files.
//!
//! Owns the order of work. Reads no files: all views of a source share its content.

use std::sync::Arc;

use tokio::sync::watch;

use super::asked::Asked;
use super::{Files, Loaded};
use crate::cache::View;
use crate::clock::{self, now};
use crate::protocol::Departures;
use crate::xds::Changes;

/// Keeps a view in step with the files of a source.
pub struct FileWriter {
    view: Arc<View>,
    loaded: watch::Receiver<Loaded>,
    asked: Asked,
    /// D-03: removals that wait: an operator may change the file with the cluster before the file with the route.
    departures: Departures,
}

impl FileWriter {
    /// Creates the writer of a view of this source.
    #[must_use]
    pub fn new(view: Arc<View>, files: &Files, departures: Departures) -> Self {
        Self {
            view,
            loaded: files.loaded.subscribe(),
            asked: Asked::default(),
            departures,
        }
    }

    /// Works until the view is closed.
    pub async fn run(mut self) {
        while !self.view.is_closed() {
            let loaded = self.loaded.borrow_and_update().clone();
            let wants = self.view.take_wants(now());
            let changes = self.asked.handle_wants(&wants, &loaded.content, &self.view.cut());
            self.publish(&changes).await;
            if !self.asked.is_at(&loaded.content) {
                let cut = self.view.cut();
                let mut changes = self.asked.handle_content(&loaded.content, &cut);
                self.departures.hold_again(&mut changes, &cut, now());
                self.publish(&changes).await;
            }
            let gone = self.departures.release(&self.view.cut(), now());
            self.publish(&gone).await;
            self.view.publish_server_state(loaded.server_state);
            self.next().await;
        }
    }

    async fn publish(&self, changes: &[Changes]) {
        if changes.is_empty() {
            return;
        }
        let mut woken = self.view.publish(changes);
        while woken.wake_some() {
            tokio::task::yield_now().await;
        }
    }

    async fn next(&mut self) {
        let (view, loaded, departures) = (&self.view, &mut self.loaded, &self.departures);
        let timer = async {
            match view.poll_timeout().into_iter().chain(departures.poll_timeout()).min() {
                Some(at) => clock::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let news = async {
            // If the task that reads the files has ended, only wants can change.
            if loaded.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = view.changed() => {}
            () = news => {}
            () = timer => {}
        }
    }
}
