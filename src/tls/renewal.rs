//! Reads the TLS files of listeners again when they change.
//!
//! Owns when that happens, and how a bad file is reported: once, and only if it stays bad for longer than a swap of several files
//! takes. Does not know what is in the files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::in_use::{CertificateSet, InUse};
use super::pem_file::BadFile;
use super::server::ServerTls;
use crate::clock::now;
use crate::config::Tls;
use crate::telemetry::CertificateMetrics;
use crate::watch::Watcher;

/// Keeps the TLS of all listeners as their files are, and what operators see of all certificates.
pub struct Renewal {
    listeners: Vec<Listener>,
    /// Control planes, for which the files are read anew for each connection anyway.
    servers: Arc<Vec<(String, Tls)>>,
    in_use: Arc<InUse>,
    metrics: CertificateMetrics,
}

struct Listener {
    name: String,
    tls: Arc<ServerTls>,
    trouble: Trouble,
}

/// Why a listener keeps using its earlier files, if it does.
#[derive(Debug, Default)]
struct Trouble(Option<Fault>);

#[derive(Debug)]
struct Fault {
    error: BadFile,
    since: Instant,
    told: bool,
}

/// What is worth telling after a look at the files.
#[derive(Debug, PartialEq, Eq)]
enum News {
    /// They have been bad for a while.
    Bad(BadFile),
    /// They were bad, and are good now.
    Good,
}

/// A certificate and its key are two files, and while they are replaced they may not belong together.
const MOMENT: Duration = Duration::from_secs(2);
/// The shortest time between two looks at the files.
const PACE: Duration = Duration::from_millis(20);

impl Renewal {
    /// Creates the renewal of these listeners. What is known of their certificates, and of those towards these control planes,
    /// goes into `in_use`.
    #[must_use]
    pub fn new(
        listeners: impl IntoIterator<Item = (String, Arc<ServerTls>)>,
        servers: impl IntoIterator<Item = (String, Tls)>,
        in_use: &Arc<InUse>,
        metrics: CertificateMetrics,
    ) -> Self {
        let listeners = listeners.into_iter().map(|(name, tls)| Listener {
            name,
            tls,
            trouble: Trouble::default(),
        });
        let renewal = Self {
            listeners: listeners.collect(),
            servers: Arc::new(servers.into_iter().collect()),
            in_use: in_use.clone(),
            metrics,
        };
        for listener in &renewal.listeners {
            in_use.put(&listener.name, listener.tls.shown());
        }
        renewal
    }

    /// Reads the files whenever they change, and whenever `told` is ready.
    pub async fn run(mut self, mut told: impl AsyncFnMut()) {
        let paths = self.paths();
        if paths.is_empty() {
            return std::future::pending().await;
        }
        let mut watcher = Watcher::new(&paths);
        let mut unwatched = None;
        loop {
            let listeners: Vec<_> = self.listeners.iter().map(|listener| listener.tls.clone()).collect();
            let (servers, in_use) = (self.servers.clone(), self.in_use.clone());
            let look = tokio::task::spawn_blocking(move || {
                watcher.arm();
                for (name, tls) in servers.iter() {
                    in_use.put(name, CertificateSet::towards(tls));
                }
                let read: Vec<_> = listeners.iter().map(|tls| tls.renew()).collect();
                (watcher, read)
            });
            match look.await {
                Ok((armed, read)) => {
                    watcher = armed;
                    self.tell(read, now());
                }
                Err(error) => {
                    tracing::error!(%error, "reading the certificates failed; starting over");
                    watcher = Watcher::new(&paths);
                }
            }
            let fault = watcher.fault().map(str::to_owned);
            if fault != unwatched {
                if let Some(fault) = &fault {
                    tracing::warn!(%fault, "the certificates cannot be watched; checking them every two seconds");
                }
                unwatched = fault;
            }
            tokio::select! {
                () = watcher.next(PACE, self.due()) => {}
                () = told() => {}
            }
        }
    }

    fn paths(&self) -> Vec<PathBuf> {
        let of_listeners = self.listeners.iter().flat_map(|listener| listener.tls.paths().cloned());
        let of_servers = self.servers.iter().flat_map(|(_, tls)| {
            let identity = tls.identity.iter();
            let identity = identity.flat_map(|files| [&files.certificate_file, &files.private_key_file]);
            identity.chain(&tls.ca_certificate_file).cloned()
        });
        of_listeners.chain(of_servers).collect()
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
    }

    /// Returns when to look again because of a fault that may go away by itself.
    fn due(&self) -> Option<Instant> {
        self.listeners
            .iter()
            .filter_map(|listener| listener.trouble.due())
            .min()
    }
}

impl Trouble {
    /// Notes the result of a look at the files. Returns what to tell now.
    fn note(&mut self, error: Option<&BadFile>, now: Instant) -> Option<News> {
        let known = self.0.take();
        let Some(error) = error else {
            return known.filter(|fault| fault.told).map(|_| News::Good);
        };
        // Until a fault is told it may turn into another one, as files are replaced one by one.
        let known = known.filter(|fault| !fault.told || fault.error == *error);
        let since = known.as_ref().map_or(now, |fault| fault.since);
        let told = known.is_some_and(|fault| fault.told);
        let tells = !told && now >= since + MOMENT;
        self.0 = Some(Fault {
            error: error.clone(),
            since,
            told: told || tells,
        });
        tells.then(|| News::Bad(error.clone()))
    }

    /// Returns when to look again because the fault may have gone away by itself.
    fn due(&self) -> Option<Instant> {
        let fault = self.0.as_ref().filter(|fault| !fault.told)?;
        Some(fault.since + MOMENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(why: &str) -> BadFile {
        BadFile {
            path: "relay.key".into(),
            why: why.to_owned(),
        }
    }

    #[test]
    fn a_fault_that_lasts_is_told_once() {
        let begun = now();
        let at = |millis| begun + Duration::from_millis(millis);
        let mut trouble = Trouble::default();
        assert_eq!(trouble.due(), None);
        assert_eq!(trouble.note(Some(&bad("gone")), at(0)), None);
        assert_eq!(trouble.note(Some(&bad("of another certificate")), at(1900)), None);
        assert_eq!(trouble.due(), Some(at(2000)));
        let told = trouble.note(Some(&bad("of another certificate")), at(2000));
        assert_eq!(told, Some(News::Bad(bad("of another certificate"))));
        assert_eq!(trouble.due(), None);
        assert_eq!(trouble.note(Some(&bad("of another certificate")), at(9000)), None);

        // Another fault gets its own moment.
        assert_eq!(trouble.note(Some(&bad("gone")), at(10_000)), None);
        assert_eq!(
            trouble.note(Some(&bad("gone")), at(12_000)),
            Some(News::Bad(bad("gone")))
        );
        assert_eq!(trouble.note(None, at(12_001)), Some(News::Good));
        assert_eq!(trouble.note(None, at(12_002)), None);
    }

    #[test]
    fn a_fault_of_a_moment_is_no_news() {
        let begun = now();
        let mut trouble = Trouble::default();
        assert_eq!(trouble.note(Some(&bad("of another certificate")), begun), None);
        assert_eq!(trouble.note(None, begun + MOMENT), None);
        assert_eq!(trouble.due(), None);
    }
}
