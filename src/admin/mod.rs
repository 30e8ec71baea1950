// SPDX-License-Identifier: Apache-2.0
//! The admin address, and beside it the address of the probes: over HTTP/1.1. Owns the paths, and a thread of its own, so that both
//! answer even while the data side is busy. Knows nothing of the protocol: it shows what it is given.

mod adoption;
mod certificates;
mod changes;
mod clients;
mod clusters;
mod config_dump;
mod counts;
mod entrance;
mod escaped;
mod events;
mod forms;
mod guard;
mod help;
mod history;
mod holds;
mod hosts;
mod http;
mod logging;
mod nacks;
mod orders;
mod page;
mod probes;
mod process;
mod reception;
mod reflection;
mod reload;
mod resources;
mod snapshots;
mod stats;
mod status;
mod tenure;
mod turns;
mod views;
mod visits;
mod written;

pub(crate) use crate::answers::{LackingNames, OfType, ServerRow, SpokenDialect};
pub(crate) use clusters::why;
pub use clusters::{Clusters, NameCounts, Overview, State};
pub use guard::Guard;
pub use history::History;
pub use logging::Logging;
pub use process::Process;
pub use reload::{ReloadAnswer, ReloadOrder, SentText};
pub use snapshots::{Give, Pace, Snapshots};

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use axum::Router;
use futures_util::future::OptionFuture;
use rustix::process::{Resource, getrlimit};
use tokio::sync::{mpsc, oneshot};

use crate::census::ClientStatus;
use crate::config::Address;
use crate::telemetry::{Health, Metrics};
use crate::tls::{InUse, ServerTls};
use entrance::BoundListener;
use orders::RequestOrigin;
use reception::Terms;
use visits::VisitorRoom;

/// The admin address in use; dropping it closes it.
#[derive(Debug)]
pub struct Admin {
    address: Address,
    probes: Option<Address>,
    /// Dropping it ends the thread.
    _stop: oneshot::Sender<()>,
}

/// What the admin address shows.
#[derive(Clone)]
pub struct Shown {
    /// For `/metrics`.
    pub metrics: Arc<Metrics>,
    /// For `/clusters`, and for the metrics of resource names.
    pub overview: Overview,
    /// For `/clients` and CSDS.
    pub status: ClientStatus,
    /// For `/certs`.
    pub certificates: Arc<InUse>,
    /// For the probes.
    pub health: Arc<Health>,
    /// The channel for the operator's drain orders.
    pub order: mpsc::Sender<DrainOrder>,
    /// The channel for the operator's orders to read the configuration again.
    pub reload: mpsc::Sender<ReloadOrder>,
    /// What decides who may see and order it.
    pub guard: Guard,
    /// For `/server_info`, `/listeners` and `/logging`.
    pub process: Process,
    /// The counts of the last hour.
    pub history: History,
    /// What other relays may begin with.
    pub snapshots: Snapshots,
}

impl Shown {
    /// Sets the metrics that are only counted when somebody reads them.
    pub async fn refresh(&self) {
        self.overview.count_names(&self.metrics);
        holds::measure(self).await;
        let standings = self.status.census().standings().await;
        self.metrics
            .hanging_clients
            .set(i64::try_from(standings.hanging()).unwrap_or(i64::MAX));
        let slow = standings.types.iter();
        let slow = slow.map(|(type_url, of)| (type_url.clone(), [0, 0, of.lagging, of.waiting]));
        let rejects = self.status.census().rejecting().into_iter();
        let rejects = rejects.map(|(type_url, [own, older])| (type_url, [own, older, 0, 0]));
        self.metrics.show_clients(slow.chain(rejects));
    }
}

/// The operator's order to move clients away.
#[derive(Clone, Copy, Debug)]
pub struct DrainOrder {
    /// Whether readiness fails first, and clients leave only after load balancers could notice that.
    pub graceful: bool,
}

/// Why the admin address cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The address cannot be bound.
    #[error("admin.address: cannot listen on {address}: {source}; choose another with --admin")]
    Bind {
        /// The address as configured.
        address: Address,
        /// The error of the system.
        source: io::Error,
    },
    /// The address of the probes cannot be bound.
    #[error("probes.address: cannot listen on {address}: {source}; choose another, or leave `probes` out")]
    BindProbes {
        /// The address as configured.
        address: Address,
        /// The error of the system.
        source: io::Error,
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
        let (bound, address) = BoundListener::bind(address).map_err(|source| AdminError::Bind {
            address: address.clone(),
            source,
        })?;
        let bind_probes = |address: &Address| {
            BoundListener::bind(address).map_err(|source| AdminError::BindProbes {
                address: address.clone(),
                source,
            })
        };
        let (bound_probes, probes) = probes.map(bind_probes).transpose()?.unzip();
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
