// SPDX-License-Identifier: Apache-2.0
//! The addresses in use: the admin address, and beside it that of the probes.
//!
//! Owns the thread that serves both, and how many connections they have. Does not know what they answer.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use axum::Router;
use futures_util::future::OptionFuture;
use rustix::process::{Resource, getrlimit};
use tokio::sync::oneshot;

use super::entrance::BoundListener;
use super::orders::RequestOrigin;
use super::reception::{self, Terms};
use super::visits::VisitorRoom;
use super::{Shown, http, probes};
use crate::config::Address;
use crate::tls::ServerTls;

/// The admin address in use; dropping it closes it.
#[derive(Debug)]
pub struct Admin {
    address: Address,
    probes: Option<Address>,
    /// Dropping it ends the thread.
    _stop: oneshot::Sender<()>,
}

/// Why the admin address cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// An address cannot be bound.
    #[error("{key}: cannot listen on {address}: {source}; {advice}")]
    Bind {
        /// The key that names it.
        key: &'static str,
        /// The address as configured.
        address: Address,
        /// The error of the system.
        source: io::Error,
        /// What to do.
        advice: &'static str,
    },
    /// The thread cannot be started.
    #[error("cannot start the thread of the admin address: {0}")]
    Thread(io::Error),
}

impl Admin {
    /// Binds `address` and serves it on a thread of its own, with TLS if `tls` is given. `probes` is served beside it, if given.
    pub fn start(
        address: &Address,
        tls: Option<Arc<ServerTls>>,
        probes: Option<&Address>,
        shown: Shown,
    ) -> Result<Self, AdminError> {
        // Binds here and not on the thread, so that a port in use is an error at the start.
        let bind = |key, address: &Address, advice| {
            BoundListener::bind(address).map_err(|source| AdminError::Bind {
                key,
                address: address.clone(),
                source,
                advice,
            })
        };
        let (bound, address) = bind("admin.address", address, "choose another with --admin")?;
        let probes = probes.map(|probes| bind("probes.address", probes, "choose another, or leave `probes` out"));
        let (bound_probes, probes) = probes.transpose()?.unzip();
        let access = match (&address, &tls) {
            (Address::Socket(_), Some(_)) => RequestOrigin::Tls,
            (Address::Socket(address), None) => RequestOrigin::Plain(address.port()),
            (Address::Unix(_), _) => RequestOrigin::Unix,
        };
        let (stop, stopped) = oneshot::channel();
        let (report, started) = std::sync::mpsc::sync_channel(1);
        std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || {
                let probing = bound_probes.map(|bound| Serving {
                    bound,
                    tls: None,
                    router: probes::router(shown.clone()),
                    manner: Terms::once(room(probes::CONNECTIONS_MAX), probes::LIFETIME),
                });
                let serving = Serving {
                    bound,
                    tls,
                    router: http::router(shown.clone(), access),
                    manner: Terms::many(room(CONNECTIONS_MAX)),
                };
                run(serving, probing, &shown, stopped, &report);
            })
            .map_err(AdminError::Thread)?;
        started
            .recv()
            .unwrap_or_else(|lost| Err(io::Error::other(lost)))
            .map_err(AdminError::Thread)?;
        Ok(Self {
            address,
            probes,
            _stop: stop,
        })
    }

    /// Returns the bound address, with the port that the system chose for port 0.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the bound address of the probes, if there is one.
    #[must_use]
    pub const fn probes(&self) -> Option<&Address> {
        self.probes.as_ref()
    }

    /// Returns the bound address if it is a TCP address.
    #[must_use]
    pub const fn socket(&self) -> Option<SocketAddr> {
        match self.address {
            Address::Socket(address) => Some(address),
            Address::Unix(_) => None,
        }
    }
}

/// The most connections to the admin address...
const CONNECTIONS_MAX: usize = 128;
/// ... and to each address, as a part of the descriptors that the process may have. Clients need the others.
const PART_OF_DESCRIPTORS: u64 = 8;
/// How many there are at least.
const CONNECTIONS_MIN: usize = 8;
/// How far the thread steps back behind those that serve clients. It still gets a quarter of a busy processor, for probes.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// What is served at a bound address.
struct Serving {
    bound: BoundListener,
    tls: Option<Arc<ServerTls>>,
    router: Router,
    manner: Terms,
}

/// Returns how much room there is at an address for at most so many connections.
fn room(connections_max: usize) -> VisitorRoom {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let part = usize::try_from(descriptors / PART_OF_DESCRIPTORS).unwrap_or(usize::MAX);
    VisitorRoom::new(part.clamp(CONNECTIONS_MIN, connections_max))
}

/// The body of the admin thread.
fn run(
    serving: Serving,
    probing: Option<Serving>,
    shown: &Shown,
    stopped: oneshot::Receiver<()>,
    report: &SyncSender<io::Result<()>>,
) {
    // There the call is about this thread, elsewhere about the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "the thread of the admin address keeps its priority");
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report.send(Err(error)).unwrap_or_default(),
    };
    runtime.block_on(async {
        let begun = serving
            .begin()
            .and_then(|serving| Ok((serving, probing.map(Serving::begin).transpose()?)));
        match begun {
            Ok((serving, probing)) => {
                // The thread that called `Admin::start` waits for this.
                let _ = report.send(Ok(()));
                tokio::select! {
                    () = serving => {}
                    () = shown.history.keep(shown) => {}
                    Some(()) = OptionFuture::from(probing) => {}
                    _ = stopped => {}
                }
            }
            Err(error) => report.send(Err(error)).unwrap_or_default(),
        }
    });
}

impl Serving {
    /// Returns what serves it. To be called within a runtime.
    fn begin(self) -> io::Result<impl Future<Output = ()>> {
        Ok(reception::serve(self.bound.open(self.tls)?, self.router, self.manner))
    }
}
