//! Reads the keys of issuers again when their files change.
//!
//! Owns when that happens, and what operators are told. Does not know what is in the files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{BadKeys, Tokens, Trusted};
use crate::clock::now;
use crate::telemetry::ArrivalMetrics;
use crate::watch::{News, Trouble, Watcher};

/// Keeps the keys of all issuers as their files are.
pub struct KeyRenewal {
    issuers: Vec<(Arc<Trusted>, Trouble<BadKeys>)>,
    metrics: ArrivalMetrics,
}

/// The shortest time between two looks at the files.
const PACE: Duration = Duration::from_millis(20);

impl KeyRenewal {
    /// Creates the renewal of these issuers' keys.
    #[must_use]
    pub fn new(tokens: &Tokens, metrics: ArrivalMetrics) -> Self {
        let issuers = tokens.0.iter().map(|trusted| (trusted.clone(), Trouble::default()));
        Self {
            issuers: issuers.collect(),
            metrics,
        }
    }

    /// Reads the files whenever they change, and whenever `told` is ready.
    pub async fn run(mut self, mut told: impl AsyncFnMut()) {
        let paths: Vec<PathBuf> = self
            .issuers
            .iter()
            .map(|(trusted, _)| trusted.keys.path().to_owned())
            .collect();
        if paths.is_empty() {
            return std::future::pending().await;
        }
        let mut watcher = Watcher::new(&paths);
        loop {
            let issuers: Vec<_> = self.issuers.iter().map(|(trusted, _)| trusted.clone()).collect();
            let look = tokio::task::spawn_blocking(move || {
                watcher.arm();
                let read: Vec<_> = issuers.iter().map(|trusted| trusted.keys.renew()).collect();
                (watcher, read)
            });
            match look.await {
                Ok((armed, read)) => {
                    watcher = armed;
                    self.tell(read, now());
                }
                Err(error) => {
                    tracing::error!(%error, "reading the keys for tokens failed; starting over");
                    watcher = Watcher::new(&paths);
                }
            }
            tokio::select! {
                () = watcher.next(PACE, self.due()) => {}
                () = told() => {}
            }
        }
    }

    fn tell(&mut self, read: Vec<Result<bool, BadKeys>>, now: Instant) {
        for ((trusted, trouble), read) in self.issuers.iter_mut().zip(read) {
            let issuer = &trusted.issuer.name;
            match trouble.note(read.as_ref().err(), now) {
                Some(News::Bad(error)) => {
                    self.metrics.keys("bad");
                    tracing::error!(issuer, %error, "the keys for tokens cannot be used; keeping those from before");
                }
                Some(News::Good) => tracing::info!(issuer, "the file of the keys for tokens is good again"),
                None => {}
            }
            if matches!(read, Ok(true)) {
                self.metrics.keys("used");
                tracing::info!(issuer, "the keys for tokens have changed; new calls need them");
                trusted
                    .warning()
                    .into_iter()
                    .for_each(|warning| tracing::warn!("jwt: {warning}"));
            }
        }
    }

    /// Returns when to look again because of a fault that may go away by itself.
    fn due(&self) -> Option<Instant> {
        self.issuers.iter().filter_map(|(_, trouble)| trouble.due()).min()
    }
}
