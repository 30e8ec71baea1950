// SPDX-License-Identifier: Apache-2.0
//! Reads the keys of issuers again: when their files change, and over HTTPS from time to time.
//!
//! Owns when that happens, and what operators are told. Does not know what is in the files and answers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::fetch::fetch;
use super::pace::FetchRhythm;
use super::{BadKeys, Tokens, Trusted};
use crate::clock::{self, now};
use crate::config::KeySource;
use crate::telemetry::{ArrivalMetrics, FaultSource, Faults, Metrics};
use crate::watch::{News, Trouble, Watcher};

/// Keeps the keys of all issuers as their files are, and as they are published.
pub struct KeyRenewal {
    tokens: Tokens,
    /// Of files, by the issuer's name.
    troubles: BTreeMap<String, Trouble<BadKeys>>,
    /// Why the last fetch was in vain, by the issuer's name.
    failed: BTreeMap<String, BadKeys>,
    fetches: FuturesUnordered<BoxFuture<'static, Fetched>>,
    rhythm: FetchRhythm,
    metrics: ArrivalMetrics,
    faults: Arc<Faults>,
}

type ReadKeys = Vec<(Arc<Trusted>, Result<bool, BadKeys>)>;
type Fetched = (Arc<Trusted>, Result<Bytes, BadKeys>);

/// The shortest time between two looks at the files.
const PACE: Duration = Duration::from_millis(20);
/// How long a start waits for keys that are fetched. Clients that come before them are refused.
const FIRST: Duration = Duration::from_secs(3);

impl KeyRenewal {
    /// Creates the renewal of the keys by which these tokens are checked. What is wrong with them now goes into the metrics.
    #[must_use]
    pub fn new(tokens: &Tokens, metrics: &Metrics) -> Self {
        Self {
            tokens: tokens.clone(),
            troubles: BTreeMap::new(),
            failed: BTreeMap::new(),
            fetches: FuturesUnordered::new(),
            rhythm: FetchRhythm::default(),
            metrics: metrics.arrivals.clone(),
            faults: metrics.faults.clone(),
        }
    }

    /// Fetches in another rhythm.
    #[must_use]
    pub fn with(self, rhythm: FetchRhythm) -> Self {
        Self { rhythm, ..self }
    }

    /// Fetches keys for the first time, and waits for them a moment.
    pub async fn begin(&mut self) {
        self.fetch();
        let first = async {
            while let Some(fetched) = self.fetches.next().await {
                self.take(fetched);
            }
        };
        clock::timeout(FIRST, first).await;
    }

    /// Reads the files whenever they change, whenever there are other issuers, and whenever `told` is ready; fetches keys in between.
    pub async fn run(mut self, mut told: impl AsyncFnMut()) {
        let mut watcher = Watcher::new(&[]);
        let mut look = true;
        loop {
            if look {
                watcher = self.look(watcher).await;
            }
            let next = self.fetch();
            let due = clock::sleep_if(next);
            let ends = self.due();
            look = tokio::select! {
                () = watcher.next(PACE, ends) => true,
                () = self.tokens.0.changed.notified() => true,
                () = told() => {
                    self.tokens.want();
                    true
                }
                Some(fetched) = self.fetches.next(), if !self.fetches.is_empty() => {
                    self.take(fetched);
                    false
                }
                () = self.tokens.0.wanted.notified() => false,
                () = due => false,
            };
        }
    }

    /// Reads all files.
    async fn look(&mut self, mut watcher: Watcher) -> Watcher {
        let issuers = self.tokens.0.issuers.load_full();
        let paths: Vec<PathBuf> = issuers
            .iter()
            .filter_map(|trusted| trusted.keys.file())
            .map(PathBuf::from)
            .collect();
        watcher.set(&paths);
        self.failed
            .retain(|name, _| issuers.iter().any(|trusted| trusted.issuer.name == *name));
        let names = issuers.iter().filter(|trusted| trusted.keys.file().is_none());
        self.metrics.fetch_keys_of(names.map(|trusted| &*trusted.issuer.name));
        let look = move || -> ReadKeys {
            let read = issuers.iter().filter(|trusted| trusted.keys.file().is_some());
            read.map(|trusted| (trusted.clone(), trusted.keys.renew())).collect()
        };
        let (watcher, read) = watcher.look(look).await;
        match read {
            Ok(read) => self.tell(read, now()),
            Err(error) => tracing::error!(%error, "reading the keys for tokens failed; starting over"),
        }
        watcher
    }

    fn tell(&mut self, read: ReadKeys, now: Instant) {
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
            self.changed(&trusted, &read);
            self.troubles.insert(issuer.clone(), trouble);
        }
        self.show();
    }

    /// Begins all fetches that are due. Returns when the next one is.
    fn fetch(&self) -> Option<Instant> {
        let now = now();
        let issuers = self.tokens.0.issuers.load_full();
        let mut next = None;
        for trusted in issuers.iter() {
            let KeySource::Uri(from) = &trusted.issuer.keys else {
                continue;
            };
            let mut pace = trusted.keys.pace();
            let Some(at) = pace.next(self.rhythm, now) else {
                continue;
            };
            if at > now {
                next = clock::earliest([next, Some(at)]);
                continue;
            }
            pace.begin(now);
            let (trusted, from) = (trusted.clone(), from.clone());
            self.fetches.push(Box::pin(async move {
                let fetched = fetch(&from).await;
                let bad = |error| BadKeys::new(from.uri, format!("{error}"));
                (trusted, fetched.map_err(bad))
            }));
        }
        next
    }

    /// Takes what was fetched, if it is good.
    fn take(&mut self, (trusted, fetched): Fetched) {
        let issuer = &trusted.issuer.name;
        let taken = fetched.and_then(|text| trusted.keys.take(text.to_vec()));
        trusted.keys.pace().end(taken.is_ok(), self.rhythm, now());
        match &taken {
            Ok(_) => {
                self.metrics.keys_fetched(issuer);
                if self.failed.remove(issuer).is_some() {
                    tracing::info!(issuer, "the keys for tokens were fetched again");
                }
            }
            Err(error) => {
                self.metrics.keys("bad");
                // The same fault is told once.
                if self.failed.insert(issuer.clone(), error.clone()).as_ref() != Some(error) {
                    tracing::error!(issuer, %error, "the keys for tokens cannot be fetched; keeping those from before");
                }
            }
        }
        self.changed(&trusted, &taken);
        self.show();
    }

    /// Says that an issuer has other keys.
    fn changed(&self, trusted: &Trusted, read: &Result<bool, BadKeys>) {
        if matches!(read, Ok(true)) {
            self.metrics.keys("used");
            tracing::info!(
                issuer = trusted.issuer.name,
                "the keys for tokens have changed; new calls need them"
            );
            if let Some(warning) = trusted.warning() {
                tracing::warn!("jwt: {warning}");
            }
        }
    }

    fn show(&self) {
        let of_files = self.troubles.iter();
        let of_files = of_files.filter_map(|(issuer, trouble)| Some((issuer, trouble.told()?)));
        let standing = of_files.chain(&self.failed).map(|(issuer, error)| {
            format!("issuer {issuer}: the keys for tokens cannot be used; keeping those from before: {error}")
        });
        self.faults.show(FaultSource::Keys, standing.collect());
    }

    /// Returns when to look again because of a fault that may go away by itself.
    fn due(&self) -> Option<Instant> {
        self.troubles.values().filter_map(Trouble::due).min()
    }
}
