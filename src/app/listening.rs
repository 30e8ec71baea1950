// SPDX-License-Identifier: Apache-2.0
//! Where clients and operators connect.
//!
//! Owns what is bound, and what changes about it while the relay runs: certificates, who is admitted, and balancers. What is bound
//! stays as it is.

use std::io::IsTerminal as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::sync::watch;

use super::{AppError, plan, spawn};
use crate::admin::{Admin, Shown};
use crate::config::{self, Address, Config, ListenerTls, Tls};
use crate::downstream::{self, Entrance, Handshakes, Shared};
use crate::shutdown::Drain;
use crate::tls::{HTTP1, HTTP2, Protocols, ServerTls};
use crate::wire::Listener;

/// The control planes that are reached over TLS, by name.
type TlsServers = Vec<(String, Tls)>;

/// The listeners and the admin address.
pub(super) struct Listening {
    /// In the order of the configuration.
    listeners: Vec<OpenListener>,
    admin: Option<Arc<ServerTls>>,
    /// What is presented to control planes, for whoever looks after the files.
    servers: watch::Sender<TlsServers>,
}

struct OpenListener {
    /// The bound address, as the log has it.
    shown: String,
    address: Address,
    entrance: Arc<Entrance>,
}

impl Listening {
    /// Binds all listeners before the first client is served. Also returns the control planes that are reached over TLS, as they
    /// change.
    pub(super) fn begin(
        config: &Config,
        admin: Option<Arc<ServerTls>>,
        shared: &Arc<Shared>,
        drain: &Drain,
    ) -> Result<(Self, watch::Receiver<TlsServers>), AppError> {
        let mut sockets = Vec::new();
        let mut listeners = Vec::new();
        for listener in &config.listeners {
            let (socket, bound) = bind(listener)?;
            sockets.push((socket, bound.entrance.clone()));
            listeners.push(bound);
        }
        for (socket, entrance) in sockets {
            let served = downstream::serve(socket, entrance, shared.clone(), drain.clone());
            drop(spawn(&shared.metrics.turns.other, served));
        }
        let (servers, changes) = watch::channel(plan::secured(config));
        let listening = Self {
            listeners,
            admin,
            servers,
        };
        Ok((listening, changes))
    }

    /// Returns the TLS of all that have it.
    pub(super) fn secured(&self) -> Vec<(String, Arc<ServerTls>)> {
        let listeners = self.listeners.iter().filter_map(|bound| {
            let handshakes = bound.entrance.tls()?;
            Some((bound.shown.clone(), handshakes.tls().clone()))
        });
        let admin = self.admin.iter().map(|tls| ("admin".to_owned(), tls.clone()));
        listeners.chain(admin).collect()
    }

    /// Returns the bound addresses.
    pub(super) fn addresses(&self) -> Vec<Address> {
        self.listeners.iter().map(|bound| bound.address.clone()).collect()
    }

    /// Gives new connections these settings. The listeners of the configuration are those that are bound, in the same order.
    pub(super) fn set(&self, config: &Config) {
        for (bound, listener) in self.listeners.iter().zip(&config.listeners) {
            bound.entrance.set_proxies(&listener.proxies);
            bound.entrance.require_identity(listener.requires_identity);
            if let (Some(handshakes), Some(tls)) = (bound.entrance.tls(), &listener.tls) {
                handshakes.tls().set(tls);
            }
        }
        if let (Some(admin), Some(tls)) = (&self.admin, &config.admin_tls) {
            admin.set(tls);
        }
        // Whoever looks after the files looks at once. While the relay is stopping, nobody does.
        self.servers.send_replace(plan::secured(config));
    }
}

/// Starts the admin address, and that of the probes. Returns the TLS of the former, if it has any.
pub(super) fn administer(config: &Config, shown: Shown) -> Result<(Admin, Option<Arc<ServerTls>>), AppError> {
    let tls = config.admin_tls.as_ref();
    let tls = tls.map(|tls| secure(&config.admin, tls, &[HTTP2, HTTP1])).transpose()?;
    let admin = Admin::start(&config.admin, tls.clone(), config.probes.as_ref(), shown)?;
    match admin.address() {
        // Whoever starts the relay at a terminal is told where to look.
        Address::Socket(address) if std::io::stderr().is_terminal() => {
            let scheme = if tls.is_some() { "https" } else { "http" };
            let page = format!("{scheme}://{}/", reached(*address));
            tracing::info!(%address, page, "admin address; open the page in a browser");
        }
        address @ (Address::Socket(_) | Address::Unix(_)) => tracing::info!(%address, "admin address"),
    }
    if let Some(address) = admin.probes() {
        tracing::info!(%address, "address of the probes");
    }
    if config.admin_is_open() {
        let open = "not on loopback, and without `admin.rules` or the `client_ca` of `admin.tls`: whoever reaches it can read \
                    everything there, and disconnect clients";
        tracing::warn!(admin = %admin.address(), "{open}");
    }
    Ok((admin, tls))
}

/// Returns the address under which this machine reaches its own one.
fn reached(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    address
}

fn bind(listener: &config::Listener) -> Result<(Listener, OpenListener), AppError> {
    let config::Listener {
        address,
        tls,
        file,
        proxies,
        requires_identity,
    } = listener;
    let tls = tls
        .as_ref()
        .map(|tls| secure(address, tls, &[HTTP2, HTTP1]))
        .transpose()?;
    let socket = match address {
        Address::Socket(socket) => Listener::tcp(*socket),
        Address::Unix(path) => Listener::unix(path, file),
    };
    let socket = socket.map_err(|source| AppError::Listen {
        address: address.clone(),
        source,
    })?;
    let address = socket.tcp_address().map_or_else(|| address.clone(), Address::Socket);
    let shown = address.to_string();
    tracing::info!(address = shown, tls = tls.is_some(), "listening for clients");
    let handshakes = tls.map(|tls| Handshakes::new(tls, plan::HANDSHAKES));
    let entrance = Arc::new(Entrance::new(handshakes, proxies.clone()));
    entrance.require_identity(*requires_identity);
    let bound = OpenListener {
        shown,
        address,
        entrance,
    };
    Ok((socket, bound))
}

fn secure(address: &Address, tls: &ListenerTls, protocols: Protocols) -> Result<Arc<ServerTls>, AppError> {
    let read = ServerTls::read(tls, protocols).map_err(|source| AppError::Tls {
        address: address.clone(),
        source,
    })?;
    for warning in read.warnings() {
        tracing::warn!(%address, "{warning}");
    }
    Ok(Arc::new(read))
}
