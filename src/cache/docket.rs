//! The views in which clients have rejected something, on their way to whoever judges it.
//!
//! Owns when content is condemned, as it is configured, and that each view is listed once. Judges nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::view::View;
use xds::VerdictSettings;

/// The views with news.
#[derive(Debug)]
pub struct Docket {
    after: AtomicUsize,
    history_bytes: AtomicUsize,
    views: Mutex<Vec<Weak<View>>>,
    news: Notify,
}

impl Default for Docket {
    fn default() -> Self {
        let VerdictSettings { after, history_bytes } = VerdictSettings::default();
        Self {
            after: AtomicUsize::new(after),
            history_bytes: AtomicUsize::new(history_bytes),
            views: Mutex::default(),
            news: Notify::new(),
        }
    }
}

impl Docket {
    /// Replaces the settings.
    pub fn set(&self, settings: VerdictSettings) {
        self.after.store(settings.after, Ordering::Relaxed);
        self.history_bytes.store(settings.history_bytes, Ordering::Relaxed);
        self.news.notify_one();
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> VerdictSettings {
        VerdictSettings {
            after: self.after.load(Ordering::Relaxed),
            history_bytes: self.history_bytes.load(Ordering::Relaxed),
        }
    }

    /// The view has news.
    pub fn add(&self, view: &Arc<View>) {
        let mut views = self.views.lock();
        // Many sessions have news of one view at a time.
        if views.last().is_none_or(|last| last.as_ptr() != Arc::as_ptr(view)) {
            views.push(Arc::downgrade(view));
        }
        drop(views);
        self.news.notify_one();
    }

    /// Waits for news, or for other settings.
    pub async fn changed(&self) {
        self.news.notified().await;
    }

    /// Returns the views that have had news since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Arc<View>> {
        let views = std::mem::take(&mut *self.views.lock());
        views.iter().filter_map(Weak::upgrade).collect()
    }
}
