//! Reads the keys of issuers again when their files change.
//!
//! Owns when that happens, and what operators are told. Does not know what is in the files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{BadKeys, Tokens, Trusted};
use crate::clock::now;
use crate::telemetry::{ArrivalMetrics, FaultSource, Faults, Metrics};
use crate::watch::{News, Trouble, Watcher};

/// Keeps the keys of all issuers as their files are.
pub struct KeyRenewal {
    tokens: Tokens,
    /// By the issuer's name.
    troubles: BTreeMap<String, Trouble<BadKeys>>,
    metrics: ArrivalMetrics,
    faults: Arc<Faults>,
}

type Read = Vec<(Arc<Trusted>, Result<bool, BadKeys>)>;

/// The shortest time between two looks at the files.
const PACE: Duration = Duration::from_millis(20);

impl KeyRenewal {
    /// Creates the renewal of the keys by which these tokens are checked. What is wrong with them now goes into the metrics.
    #[must_use]
    pub fn new(tokens: &Tokens, metrics: &Metrics) -> Self {
        Self {
            tokens: tokens.clone(),
            troubles: BTreeMap::new(),
            metrics: metrics.arrivals.clone(),
            faults: metrics.faults.clone(),
        }
    }

    /// Reads the files whenever they change, whenever there are other issuers, and whenever `told` is ready.
    pub async fn run(mut self, mut told: impl AsyncFnMut()) {
        let mut watcher = Watcher::new(&[]);
        loop {
            let issuers = self.tokens.0.issuers.load_full();
            let paths: Vec<PathBuf> = issuers.iter().map(|trusted| trusted.keys.path().to_owned()).collect();
            watcher.set(&paths);
            let look = move || -> Read {
                let read = issuers.iter().map(|trusted| (trusted.clone(), trusted.keys.renew()));
                read.collect()
            };
            let read;
            (watcher, read) = watcher.look(look).await;
            match read {
                Ok(read) => self.tell(read, now()),
                Err(error) => tracing::error!(%error, "reading the keys for tokens failed; starting over"),
            }
            tokio::select! {
                () = watcher.next(PACE, self.due()) => {}
                () = self.tokens.0.changed.notified() => {}
                () = told() => {}
            }
        }
    }

    fn tell(&mut self, read: Read, now: Instant) {
        let mut earlier = std::mem::take(&mut self.troubles);
        for (trusted, read) in read {
            let issuer = &trusted.issuer.name;
            let mut trouble = earlier.remove(issuer).unwrap_or_default();
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
                if let Some(warning) = trusted.warning() {
                    tracing::warn!("jwt: {warning}");
                }
            }
            self.troubles.insert(issuer.clone(), trouble);
        }
        let standing = self.troubles.iter();
        let standing = standing.filter_map(|(issuer, trouble)| Some((issuer, trouble.told()?)));
        let standing = standing.map(|(issuer, error)| {
            format!("issuer {issuer}: the keys for tokens cannot be used; keeping those from before: {error}")
        });
        self.faults.show(FaultSource::Keys, standing.collect());
    }

    /// Returns when to look again because of a fault that may go away by itself.
    fn due(&self) -> Option<Instant> {
        self.troubles.values().filter_map(Trouble::due).min()
    }
}
