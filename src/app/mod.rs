//! The wiring: from a checked configuration to running parts. Owns only what is connected to what.

mod census;
mod descriptors;
mod feed;
mod fleet;
mod inspection;
mod introduced;
mod leaving;
mod memory;
mod overload;
mod overview;
mod plan;
mod reload;
mod warm;

pub use inspection::Inspection;
pub use reload::Origin;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use fleet::Fleet;
use leaving::Leaving;
use overload::Overload;
use overview::Overview;
use reload::{Live, Reload};
use warm::Warm;

use crate::admin::{self, Admin, AdminError, DrainOrder, Guard, ReloadOrder, Shown};
use crate::cache::{Library, Scopes, View};
use crate::clock;
use crate::config::{self, Address, Config, ListenerTls};
use crate::downstream::{self, Admission, Entrance, Handshakes, Shared};
use crate::json::{SchemaError, Schemas};
use crate::shutdown::{self, Drain, Hangups, OtherSignals, StopSignals};
use crate::telemetry::{Health, Metrics};
use crate::tls::{BadFile, HTTP1, HTTP2, InUse, Protocols, Renewal, ServerTls};
use crate::token::{BadKeys, KeyRenewal, Tokens};
use crate::wire::{Budget, Listener};

/// Why the relay does not run.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The admin address cannot be bound.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// A file of descriptors cannot be used.
    #[error("descriptors: {0}")]
    Schemas(#[from] SchemaError),
    /// A listener cannot be bound.
    #[error("listeners: cannot listen on {address}: {source}; choose another with --listen")]
    Listen {
        /// The address as configured.
        address: Address,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The keys of an issuer of tokens cannot be used.
    #[error("jwt: {0}")]
    Keys(#[from] BadKeys),
    /// A listener or the admin address has no usable certificate.
    #[error("tls of {address}: {source}")]
    Tls {
        /// The address as configured.
        address: Address,
        /// The file, and what is wrong with it.
        source: BadFile,
    },
    /// The signal handlers cannot be installed.
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
}

/// How often views are swept: laggards are handled, unused parts removed, and metrics updated.
const SWEEP: Duration = Duration::from_secs(1);

/// Keeps the signals that mean "reload" or "reopen the logs" from killing the program. Returns those that mean "reload", and a
/// future that logs the others. To be called within a runtime.
pub fn signals() -> Result<(Hangups, impl Future<Output = ()> + use<>), AppError> {
    let others = OtherSignals::listen().map_err(AppError::Signals)?;
    Ok((Hangups::listen().map_err(AppError::Signals)?, others.run()))
}

/// Runs the relay until it is told to stop. Reads the configuration again from its origin.
pub async fn run(config: Config, origin: Origin) -> Result<(), AppError> {
    descriptors::raise();
    let signals = StopSignals::listen().map_err(AppError::Signals)?;
    let metrics = Metrics::new(config.types.keys().map(String::as_str));
    let health = Arc::new(Health::new());
    let mark = plan::mark(&config);
    let schemas = Schemas::with_files(&config.descriptors)?;
    let fleet = Fleet::new(&metrics, schemas.clone(), &mark);
    let scopes = Arc::new(Scopes::new(
        config.classes.clone(),
        fleet.take(&config, clock::now()),
        plan::views(&config),
        config.limits.views,
    ));
    let overview = Overview::new(&fleet, &scopes);
    let in_use = Arc::new(InUse::default());
    let guard = guard(&config)?;
    let (shown, orders, reload_orders) = shown(&metrics, &health, &overview, &in_use, &guard);
    let (_admin, admin_tls) = administer(&config, shown)?;

    let shared = share(
        &config,
        &mark,
        scopes.clone(),
        &metrics,
        &health,
        schemas,
        &guard.tokens,
    );
    let warm = Warm::new(&config, &fleet, &scopes, &metrics);
    if let Some(warm) = &warm {
        drop(spawn(warm.clone().look(health.clone())));
    }
    let (trigger, drain) = shutdown::drain();
    let mut secured = listen(&config, &shared, &drain)?;
    secured.extend(admin_tls.map(|tls| ("admin".to_owned(), tls)));
    let renewal = Renewal::new(secured, plan::secured(&config), &in_use, metrics.certificates());
    let keys = KeyRenewal::new(&shared.tokens, metrics.arrivals.clone());
    let hangups = || Hangups::listen().map_err(AppError::Signals);
    let (mut of_certificates, mut of_keys) = (hangups()?, hangups()?);

    // Draining ends when the last holder drops it, so only listeners and clients may hold it.
    drop(drain);
    let live = Live::new(config, mark, shared.clone(), fleet.clone(), guard.rules);
    let reload = Reload::new(origin, reload_orders, live.clone(), metrics.clone(), health.clone());
    let mut leaving = Leaving::new(signals, orders, health, metrics, live.clone());
    let leave = async {
        tokio::select! {
            () = leaving.announced() => {}
            () = keep(warm.as_deref()) => {}
        }
        let last = async {
            if let Some(warm) = &warm {
                warm.clone().last().await;
            }
        };
        leaving.left(&trigger, last).await;
    };
    // The other tasks run until the relay has stopped.
    tokio::select! {
        () = leave => {}
        () = feed::feed(&live, &fleet, &shared, warm.as_ref(), &overview) => {}
        () = clock::keep() => {}
        () = renewal.run(async || of_certificates.next().await) => {}
        () = keys.run(async || of_keys.next().await) => {}
        () = look_after(&shared, &overview, &live, &fleet) => {}
        () = reload.run() => {}
    }
    Ok(())
}

/// Returns what the admin address shows, and where its orders arrive.
fn shown(
    metrics: &Arc<Metrics>,
    health: &Arc<Health>,
    overview: &Arc<Overview>,
    in_use: &Arc<InUse>,
    guard: &Guard,
) -> (Shown, mpsc::Receiver<DrainOrder>, mpsc::Receiver<ReloadOrder>) {
    let (order, orders) = mpsc::channel(1);
    let (reload, reload_orders) = mpsc::channel(1);
    let overview = overview.clone();
    let shown = Shown {
        metrics: metrics.clone(),
        certificates: in_use.clone(),
        overview: admin::Overview::new(move || overview.look()),
        health: health.clone(),
        order,
        reload,
        guard: guard.clone(),
    };
    (shown, orders, reload_orders)
}

/// Starts the admin address. Returns its TLS, if it has any.
fn administer(config: &Config, shown: Shown) -> Result<(Admin, Option<Arc<ServerTls>>), AppError> {
    let tls = config.admin_tls.as_ref();
    let tls = tls.map(|tls| secure(&config.admin, tls, &[HTTP1])).transpose()?;
    let admin = Admin::start(&config.admin, tls.clone(), shown)?;
    tracing::info!(address = %admin.address(), "admin address");
    if config.admin_is_open() {
        let open = "not on loopback, and without `admin.rules` or the `client_ca` of `admin.tls`: whoever reaches it can read \
                    everything there, and disconnect clients";
        tracing::warn!(admin = %admin.address(), "{open}");
    }
    Ok((admin, tls))
}

/// Creates the state that all clients share.
fn share(
    config: &Config,
    mark: &str,
    scopes: Arc<Scopes>,
    metrics: &Arc<Metrics>,
    health: &Arc<Health>,
    schemas: Schemas,
    tokens: &Tokens,
) -> Arc<Shared> {
    Arc::new(Shared {
        scopes,
        library: Arc::new(Library::new(plan::LIBRARY_BYTES, config.chunk)),
        settings: ArcSwap::from_pointee(plan::downstream(config, mark)),
        admission: Arc::new(Admission::new(plan::admission(&config.limits), clock::now())),
        tokens: tokens.clone(),
        returns: Arc::default(),
        budget: Arc::new(Budget::new(plan::reading_bytes(config))),
        metrics: metrics.clone(),
        health: health.clone(),
        identifier: format!("distributary/{}", config.node.id),
        schemas,
    })
}

/// Binds all listeners before the first client is served. Returns the TLS of those that have it.
fn listen(config: &Config, shared: &Arc<Shared>, drain: &Drain) -> Result<Vec<(String, Arc<ServerTls>)>, AppError> {
    let (mut bound, mut secured) = (Vec::new(), Vec::new());
    let handshakes_max = plan::unbounded(config.limits.handshakes);
    for config::Listener {
        address,
        tls,
        file,
        proxies,
    } in &config.listeners
    {
        let tls = tls
            .as_ref()
            .map(|tls| secure(address, tls, &[HTTP2, HTTP1]))
            .transpose()?;
        let listener = match address {
            Address::Socket(socket) => Listener::tcp(*socket),
            Address::Unix(path) => Listener::unix(path, file),
        };
        let listener = listener.map_err(|source| AppError::Listen {
            address: address.clone(),
            source,
        })?;
        let shown = listener
            .tcp_address()
            .map_or_else(|| address.to_string(), |bound| bound.to_string());
        tracing::info!(address = shown, tls = tls.is_some(), "listening for clients");
        let handshakes = tls.clone().map(|tls| Handshakes::new(tls, handshakes_max));
        let entrance = Entrance {
            tls: handshakes,
            proxies: proxies.clone(),
        };
        bound.push((listener, entrance));
        secured.extend(tls.map(|tls| (shown, tls)));
    }
    for (listener, entrance) in bound {
        let serving = downstream::serve(listener, entrance, shared.clone(), drain.clone());
        drop(spawn(serving));
    }
    Ok(secured)
}

/// Reads the keys of those who issue tokens.
fn guard(config: &Config) -> Result<Guard, AppError> {
    let tokens = Tokens::read(&config.issuers)?;
    for warning in tokens.warnings() {
        tracing::warn!("jwt: {warning}");
    }
    let rules = Arc::new(ArcSwap::from_pointee(config.admin_rules.clone()));
    Ok(Guard { rules, tokens })
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

/// Writes snapshots if they are configured; otherwise waits forever.
async fn keep(warm: Option<&Warm>) {
    match warm {
        Some(warm) => warm.keep().await,
        None => std::future::pending().await,
    }
}

/// Sweeps the views, and updates metrics and the log, once per [`SWEEP`].
async fn look_after(shared: &Arc<Shared>, overview: &Overview, live: &Live, fleet: &Fleet) {
    let mut overload = Overload::new(shared);
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        overload.look(live.config().limits.memory);
        for type_url in shared.returns.sweep(clock::now()) {
            shared.metrics.of(&type_url).returned_without.inc();
        }
        shared.scopes.sweep(clock::now());
        shared.library.purge();
        let views = shared.scopes.all();
        fleet.purge(&views.iter().map(|view| view.server()).collect(), clock::now());
        show(&views, &shared.metrics);
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        shared.metrics.tasks.set(i64::try_from(tasks).unwrap_or(i64::MAX));
        shared
            .metrics
            .show_reading(shared.budget.bytes(), shared.budget.take_refused());
        overview.say();
    }
}

fn show(views: &[Arc<View>], metrics: &Metrics) {
    metrics.views.set(i64::try_from(views.len()).unwrap_or(i64::MAX));
    let stale: usize = views.iter().map(|view| view.stale().len()).sum();
    metrics.stale_serving.set(i64::try_from(stale).unwrap_or(i64::MAX));
    metrics.show_cache(views.iter().flat_map(|view| view.summary().types));
}

#[expect(clippy::disallowed_methods, reason = "this is the wiring")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(task)
}
