// SPDX-License-Identifier: Apache-2.0
//! SPIFFE Workload APIs: certificates, keys and authorities that an agent on this machine hands out over a Unix socket.
//!
//! Owns one stream for each socket that somebody reads from, and what arrived on it last. Does not know who uses what. The stream
//! has a thread of its own, because whoever reads certificates may be on any thread and may wait, as for a file.

mod stream;
mod svid;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::runtime;
use tokio::sync::watch;

use super::pem_file::BadFile;
use crate::clock::{self, now};
use crate::config::Workload;
pub(super) use svid::Svid;

/// What is known from one socket.
struct AgentSocket {
    /// What stands for its path in messages, and where certificates are shown.
    origin: PathBuf,
    state: Mutex<AgentState>,
    changed: Condvar,
}

struct AgentState {
    begun: Instant,
    /// When somebody read last.
    read: Instant,
    svids: Option<Vec<Svid>>,
    /// Why the SVIDs may be out of date, or are missing.
    fault: Option<String>,
}

/// How long the first to read from a socket waits for its first answer.
const FIRST: Duration = Duration::from_secs(10);
/// A stream from which nobody has read for so long ends.
const UNUSED: Duration = Duration::from_secs(60);
/// The pauses between two streams.
const PAUSE_LEAST: Duration = Duration::from_millis(250);
const PAUSE_MOST: Duration = Duration::from_secs(10);

static SOURCES: Mutex<BTreeMap<PathBuf, Arc<AgentSocket>>> = Mutex::new(BTreeMap::new());
static NEWS: LazyLock<watch::Sender<()>> = LazyLock::new(watch::Sender::default);

/// Returns the latest SVID. The first reading of a socket waits for it, [`FIRST`] at most.
pub(super) fn latest(api: &Workload) -> Result<Svid, BadFile> {
    let source = AgentSocket::of(&api.socket);
    let mut state = source.state.lock();
    state.read = now();
    let until = state.begun + FIRST;
    while state.svids.is_none() && !source.changed.wait_until(&mut state, until).timed_out() {}
    match &state.svids {
        Some(svids) => svid::choose(svids, api.hint.as_deref()).map_err(|why| source.bad(why)),
        None => {
            let why = state.fault.as_deref().unwrap_or("the agent has not answered");
            Err(source.bad(format!(
                "no SVID for `spiffe`: {why}; is the agent running, and is the relay registered with it as a workload?"
            )))
        }
    }
}

/// Returns an error if what was read last may be out of date.
pub(super) fn up_to_date(api: &Workload) -> Result<(), BadFile> {
    let source = AgentSocket::of(&api.socket);
    let mut state = source.state.lock();
    state.read = now();
    state.fault.as_ref().map_or(Ok(()), |why| Err(source.bad(why.clone())))
}

/// Returns what changes whenever there is something new to read from any socket.
pub(super) fn news() -> watch::Receiver<()> {
    NEWS.subscribe()
}

impl AgentSocket {
    fn of(socket: &Path) -> Arc<Self> {
        let mut sources = SOURCES.lock();
        if let Some(source) = sources.get(socket) {
            return source.clone();
        }
        let source = Arc::new(Self::new(socket));
        sources.insert(socket.to_owned(), source.clone());
        let (own, path) = (source.clone(), socket.to_owned());
        let thread = std::thread::Builder::new().name("spiffe".to_owned());
        let begun = thread.spawn(move || {
            match runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime.block_on(own.follow(&path)),
                Err(error) => own.fail(format!("there is no runtime for its stream: {error}")),
            }
            SOURCES.lock().remove(&path);
        });
        if let Err(error) = begun {
            sources.remove(socket);
            source.fail(format!("there is no thread for its stream: {error}"));
        }
        source
    }

    fn new(socket: &Path) -> Self {
        Self {
            origin: PathBuf::from(format!("unix:{}", socket.display())),
            state: Mutex::new(AgentState {
                begun: now(),
                read: now(),
                svids: None,
                fault: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// Keeps a stream open for as long as somebody reads what arrives on it.
    async fn follow(&self, socket: &Path) {
        let mut pause = PAUSE_LEAST;
        let streams = async {
            loop {
                let end = stream::run(socket, |message| match svid::read(&self.origin, &message) {
                    Ok(svids) => {
                        pause = PAUSE_LEAST;
                        self.put(svids);
                    }
                    Err(why) => self.fail(format!("what the agent sent cannot be used: {why}")),
                });
                let Err(why) = end.await;
                self.fail(why);
                clock::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MOST);
            }
        };
        tokio::select! {
            () = streams => {}
            () = self.unused() => {}
        }
    }

    async fn unused(&self) {
        while now() < self.state.lock().read + UNUSED {
            clock::sleep(UNUSED).await;
        }
    }

    fn put(&self, svids: Vec<Svid>) {
        let mut state = self.state.lock();
        (state.svids, state.fault) = (Some(svids), None);
        self.tell();
    }

    fn fail(&self, why: String) {
        self.state.lock().fault = Some(why);
        self.tell();
    }

    fn tell(&self) {
        self.changed.notify_all();
        NEWS.send_replace(());
    }

    fn bad(&self, why: String) -> BadFile {
        BadFile {
            path: self.origin.clone(),
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stream_from_which_nobody_reads_ends() {
        let source = AgentSocket::new(Path::new("/nowhere"));
        let ends = || clock::timeout(Duration::from_millis(50), source.unused());
        assert_eq!(ends().await, None);
        source.state.lock().read = now().checked_sub(UNUSED).unwrap();
        assert_eq!(ends().await, Some(()));
    }
}
