// SPDX-License-Identifier: Apache-2.0
//! Reads certificates again when they change: files, and what a Workload API sends.
//!
//! Owns when that happens, and what operators are told. Does not know what is in the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::in_use::{CertificateSet, InUse};
use super::pem_file::BadFile;
use super::server::ServerTls;
use crate::clock::{WallClock, date_and_time, now};
use crate::config::{Supply, Tls};
use crate::telemetry::{CertificateMetrics, FaultSource, Faults, Metrics};
use crate::watch::{News, Trouble, Watcher};

/// Keeps the TLS of all listeners as their files are, and what operators see of all certificates.
pub struct Renewal {
    listeners: Vec<ListenerFiles>,
    /// What is wrong with the certificates towards each control plane.
    troubles: BTreeMap<String, Trouble<String>>,
    /// Control planes, for which the files are read anew for each connection anyway. Every sending is a reason to read the files of
    /// listeners, too.
    servers: watch::Receiver<Vec<(String, Tls)>>,
    in_use: Arc<InUse>,
    metrics: CertificateMetrics,
    faults: Arc<Faults>,
    /// The files with a certificate that has ended, and when it did.
    ended: BTreeMap<PathBuf, u64>,
}

struct ListenerFiles {
    name: String,
    tls: Arc<ServerTls>,
    trouble: Trouble<BadFile>,
}

/// The shortest time between two looks at the files.
const PACE: Duration = Duration::from_millis(20);
/// The longest time between two looks at the wall clock while certificates are in use.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

impl Renewal {
    /// Creates the renewal of these listeners. What is known of their certificates, and of those towards these control planes,
    /// goes into `in_use`, and what is wrong with them now into the metrics.
    #[must_use]
    pub fn new(
        listeners: impl IntoIterator<Item = (String, Arc<ServerTls>)>,
        servers: watch::Receiver<Vec<(String, Tls)>>,
        in_use: &Arc<InUse>,
        metrics: &Metrics,
    ) -> Self {
        let listeners = listeners.into_iter().map(|(name, tls)| ListenerFiles {
            name,
            tls,
            trouble: Trouble::default(),
        });
        let renewal = Self {
            listeners: listeners.collect(),
            troubles: BTreeMap::new(),
            servers,
            in_use: in_use.clone(),
            metrics: metrics.certificates.clone(),
            faults: metrics.faults.clone(),
            ended: BTreeMap::new(),
        };
        for listener in &renewal.listeners {
            in_use.put(&listener.name, listener.tls.shown());
        }
        renewal
    }

    /// Reads all of them whenever one changes, and whenever `told` is ready.
    pub async fn run(mut self, mut told: impl AsyncFnMut()) {
        let mut watcher = Watcher::new(&[]);
        let mut news = super::workload::news();
        let mut unwatched = None;
        loop {
            let servers = self.servers.borrow_and_update().clone();
            self.in_use.keep(&self.names(&servers));
            let paths = self.paths(&servers);
            if paths.is_empty() {
                self.show(Vec::new(), now());
                self.tell(Vec::new(), now());
                self.changed().await;
                continue;
            }
            watcher.set(&paths);
            let listeners: Vec<_> = self.listeners.iter().map(|listener| listener.tls.clone()).collect();
            let look = move || -> (Vec<_>, Vec<_>) {
                let towards = servers
                    .iter()
                    .map(|(name, tls)| (name.clone(), CertificateSet::towards(tls)));
                (towards.collect(), listeners.iter().map(|tls| tls.renew()).collect())
            };
            let read;
            (watcher, read) = watcher.look(look).await;
            match read {
                Ok((towards, read)) => {
                    self.show(towards, now());
                    self.tell(read, now());
                }
                Err(error) => tracing::error!(%error, "reading the certificates failed; starting over"),
            }
            let fault = watcher.fault().map(str::to_owned);
            if fault != unwatched {
                if let Some(fault) = &fault {
                    tracing::warn!(%fault, "the certificates cannot be watched; checking them every two seconds");
                }
                unwatched = fault;
            }
            let sent = async {
                if news.changed().await.is_ok() {
                    return;
                }
                std::future::pending().await
            };
            tokio::select! {
                () = watcher.next(PACE, self.due()) => {}
                () = told() => {}
                () = self.changed() => {}
                () = sent => {}
            }
        }
    }

    /// Waits until the settings have changed.
    async fn changed(&self) {
        if self.servers.clone().changed().await.is_err() {
            // They never change again.
            std::future::pending().await
        }
    }

    fn names<'a>(&'a self, servers: &'a [(String, Tls)]) -> Vec<&'a str> {
        let listeners = self.listeners.iter().map(|listener| listener.name.as_str());
        listeners.chain(servers.iter().map(|(name, _)| name.as_str())).collect()
    }

    fn paths(&self, servers: &[(String, Tls)]) -> Vec<PathBuf> {
        let of_listeners = self.listeners.iter().flat_map(|listener| listener.tls.paths());
        let of_servers = servers.iter().flat_map(|(_, tls)| {
            let identity = tls.identity.iter().flat_map(Supply::paths);
            identity
                .chain(tls.authorities.iter().map(Supply::path))
                .map(Path::to_owned)
        });
        of_listeners.chain(of_servers).collect()
    }

    /// Shows the certificates towards control planes, and tells what is wrong with them.
    fn show(&mut self, towards: Vec<(String, CertificateSet)>, now: Instant) {
        let mut earlier = std::mem::take(&mut self.troubles);
        for (server, set) in towards {
            let mut trouble = earlier.remove(&server).unwrap_or_default();
            match trouble.note(set.fault.as_ref(), now) {
                Some(News::Bad(error)) => {
                    self.metrics.not_read.inc();
                    tracing::error!(
                        server,
                        error,
                        "the certificates towards the control plane cannot be read"
                    );
                }
                Some(News::Good) => tracing::info!(server, "the certificates towards the control plane are good again"),
                None => {}
            }
            self.in_use.put(&server, set);
            self.troubles.insert(server, trouble);
        }
    }

    fn tell(&mut self, read: Vec<Result<bool, BadFile>>, now: Instant) {
        for (listener, read) in self.listeners.iter_mut().zip(read) {
            let name = &listener.name;
            match listener.trouble.note(read.as_ref().err(), now) {
                Some(News::Bad(error)) => {
                    self.metrics.not_read.inc();
                    self.in_use.fault(name, Some(error.to_string()));
                    tracing::error!(listener = name, %error, "the certificates cannot be used; keeping those from before");
                }
                Some(News::Good) => {
                    self.in_use.fault(name, None);
                    tracing::info!(listener = name, "the files of the certificates are good again");
                }
                None => {}
            }
            if matches!(read, Ok(true)) {
                self.metrics.read.inc();
                self.in_use.put(name, listener.tls.shown());
                tracing::info!(
                    listener = name,
                    "the certificates have changed; new handshakes use them"
                );
                for warning in listener.tls.warnings() {
                    tracing::warn!(listener = name, "{warning}");
                }
            }
        }
        self.metrics.show_ends(&self.in_use.ends());
        self.note_ended();
        self.faults.show(FaultSource::Certificates, self.standing());
    }

    /// Returns what is wrong now, in a sentence for each listener and control plane.
    fn standing(&self) -> Vec<String> {
        let listeners = self.listeners.iter();
        let listeners = listeners.filter_map(|listener| Some((&listener.name, listener.trouble.told()?)));
        let listeners = listeners.map(|(name, error)| {
            format!("listener {name}: the certificates cannot be used; keeping those from before: {error}")
        });
        let servers = self.troubles.iter();
        let servers = servers.filter_map(|(name, trouble)| Some((name, trouble.told()?)));
        let servers = servers.map(|(name, error)| {
            format!("server {name}: the certificates towards the control plane cannot be read: {error}")
        });
        let ended = self.ended.iter().map(|(path, until)| {
            let until = date_and_time(*until);
            format!("{}: a certificate in it ended at {until}; renew it", path.display())
        });
        listeners.chain(servers).chain(ended).collect()
    }

    /// Logs each certificate once that has ended.
    fn note_ended(&mut self) {
        let (ended, _) = self.in_use.ended(unix());
        for (path, until) in &ended {
            if self.ended.get(path) != Some(until) {
                let until = date_and_time(*until);
                tracing::error!(path = %path.display(), until, "a certificate has ended: peers refuse it; renew it");
            }
        }
        self.ended = ended;
    }

    /// Returns when to look again because the next certificate ends. The wall clock may be set meanwhile.
    fn end(&self) -> Option<Instant> {
        let now_unix = unix();
        let (_, next) = self.in_use.ended(now_unix);
        let left = Duration::from_secs(next?.saturating_sub(now_unix) + 1);
        now().checked_add(left.min(LOOK_AGAIN))
    }

    /// Returns when to look again because of a fault that may go away by itself.
    fn due(&self) -> Option<Instant> {
        let listeners = self.listeners.iter().filter_map(|listener| listener.trouble.due());
        let servers = self.troubles.values().filter_map(Trouble::due);
        listeners.chain(servers).chain(self.end()).min()
    }
}

/// Returns the time in seconds since 1970.
fn unix() -> u64 {
    WallClock::read().unix(now()).as_secs()
}
