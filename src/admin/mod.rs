//! The admin address: probes and metrics over HTTP/1.1. Owns the paths, and a thread of its own, so that it answers even while
//! the data side is busy. Knows nothing of the protocol: it shows what it is given.

mod cached;
mod certificates;
mod clock;
mod clusters;
mod guard;
mod http;
mod orders;
mod reload;
mod secured;

pub use cached::Cached;
pub use clock::Clock;
pub use clusters::{Clusters, Held, Lacking, Overview, Server, Spoken, State};
pub use guard::Guard;
pub use reload::{ReloadAnswer, ReloadOrder};

use std::io;
use std::net::{self, SocketAddr};
use std::os::unix::net as unix;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use futures_util::FutureExt as _;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{mpsc, oneshot};

use crate::config::{Address, is_abstract, system_path};
use crate::telemetry::{Health, Metrics};
use crate::tls::{InUse, ServerTls};
use guard::Visitor;
use orders::Access;
use secured::Secured;

/// The admin address in use; dropping it closes it.
#[derive(Debug)]
pub struct Admin {
    address: Address,
    /// Dropping it ends the thread.
    _stop: oneshot::Sender<()>,
}

/// What the admin address shows.
#[derive(Clone, Debug)]
pub struct Shown {
    /// For `/metrics`.
    pub metrics: Arc<Metrics>,
    /// For `/clusters`, and for the metrics of resource names.
    pub overview: Overview,
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
    /// The thread cannot be started.
    #[error("cannot start the thread of the admin address: {0}")]
    Thread(io::Error),
}

impl Admin {
    /// Binds `address` and serves it on a thread of its own, with TLS if `tls` is given.
    pub fn start(address: &Address, tls: Option<Arc<ServerTls>>, shown: Shown) -> Result<Self, AdminError> {
        // Binds here and not on the thread, so that a port in use is an error at the start.
        let cannot_bind = |source| AdminError::Bind {
            address: address.clone(),
            source,
        };
        let bound = Bound::bind(address).map_err(cannot_bind)?;
        let address = bound.address(address).map_err(cannot_bind)?;
        let access = match (&address, &tls) {
            (Address::Socket(_), Some(_)) => Access::Tls,
            (Address::Socket(address), None) => Access::Plain(address.port()),
            (Address::Unix(_), _) => Access::Unix,
        };
        let (stop, stopped) = oneshot::channel();
        let (report, started) = std::sync::mpsc::sync_channel(1);
        std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || run(bound, tls, http::router(shown, access), stopped, &report))
            .map_err(AdminError::Thread)?;
        started
            .recv()
            .unwrap_or_else(|lost| Err(io::Error::other(lost)))
            .map_err(AdminError::Thread)?;
        Ok(Self { address, _stop: stop })
    }

    /// Returns the bound address, with the port that the system chose for port 0.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
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

/// The most connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// A listener that is not registered with a runtime yet.
enum Bound {
    Socket(net::TcpListener),
    Unix(unix::UnixListener),
}

impl Bound {
    fn bind(address: &Address) -> io::Result<Self> {
        Ok(match address {
            Address::Socket(address) => {
                let listener = net::TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Self::Socket(listener)
            }
            Address::Unix(path) => {
                let listener = bind_unix(path)?;
                listener.set_nonblocking(true)?;
                Self::Unix(listener)
            }
        })
    }

    fn address(&self, wanted: &Address) -> io::Result<Address> {
        Ok(match self {
            Self::Socket(listener) => Address::Socket(listener.local_addr()?),
            Self::Unix(_) => wanted.clone(),
        })
    }
}

/// Binds a Unix socket. Replaces a socket file that a dead process has left, to which nobody answers.
fn bind_unix(path: &Path) -> io::Result<unix::UnixListener> {
    if is_abstract(path) {
        let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
        socket.bind(&socket2::SockAddr::unix(system_path(path))?)?;
        socket.listen(BACKLOG)?;
        return Ok(socket.into());
    }
    match unix::UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if unix::UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            unix::UnixListener::bind(path)
        }
        bound => bound,
    }
}

/// The body of the admin thread.
fn run(
    bound: Bound,
    tls: Option<Arc<ServerTls>>,
    router: Router,
    stopped: oneshot::Receiver<()>,
    report: &SyncSender<io::Result<()>>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report.send(Err(error)).unwrap_or_default(),
    };
    runtime.block_on(async {
        let listening = match bound {
            Bound::Socket(listener) => TcpListener::from_std(listener).map(|listener| match tls {
                Some(tls) => serve(Secured::new(listener, tls), router).boxed(),
                None => serve(listener, router).boxed(),
            }),
            Bound::Unix(listener) => UnixListener::from_std(listener).map(|listener| serve(listener, router).boxed()),
        };
        match listening {
            Ok(serving) => {
                // The thread that called `Admin::start` waits for this.
                let _ = report.send(Ok(()));
                tokio::select! {
                    () = serving => {}
                    _ = stopped => {}
                }
            }
            Err(error) => report.send(Err(error)).unwrap_or_default(),
        }
    });
}

async fn serve<L>(listener: L, router: Router)
where
    L: Listener,
    L::Addr: std::fmt::Debug,
    Visitor: for<'a> Connected<IncomingStream<'a, L>>,
{
    let ended = axum::serve(listener, router.into_make_service_with_connect_info::<Visitor>()).await;
    tracing::error!(?ended, "the admin address stopped unexpectedly");
}
