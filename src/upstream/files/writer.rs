//! The one writer of a view that is fed from files.
//!
//! Owns the order of work. Reads no files: all views of a source share its content.

use std::sync::Arc;

use tokio::sync::watch;

use super::asked::Asked;
use super::content::Content;
use super::{Files, Loaded};
use crate::cache::View;
use crate::clock::{self, now};
use crate::xds::Changes;

/// Keeps a view in step with the files of a source.
pub struct FileWriter {
    view: Arc<View>,
    loaded: watch::Receiver<Loaded>,
    asked: Asked,
    /// The content that the view has.
    content: Arc<Content>,
}

impl FileWriter {
    /// Creates the writer of a view of this source.
    #[must_use]
    pub fn new(view: Arc<View>, files: &Files) -> Self {
        Self {
            view,
            loaded: files.loaded.subscribe(),
            asked: Asked::default(),
            content: Arc::default(),
        }
    }

    /// Works until the view is closed.
    pub async fn run(mut self) {
        while !self.view.is_closed() {
            let loaded = self.loaded.borrow_and_update().clone();
            let wants = self.view.take_wants(now());
            let changes = self.asked.handle_wants(&wants, &loaded.content, &self.view.cut());
            self.publish(&changes).await;
            if !Arc::ptr_eq(&self.content, &loaded.content) {
                self.content = loaded.content.clone();
                let changes = self.asked.handle_content(&loaded.content, &self.view.cut());
                self.publish(&changes).await;
            }
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
        let (view, loaded) = (&self.view, &mut self.loaded);
        let timer = async {
            match view.poll_timeout() {
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
