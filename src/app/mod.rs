//! The wiring: from a checked configuration to running parts. Owns only what is connected to what.

mod census;
mod descriptors;
mod inspection;
mod introduced;
mod leaving;
mod memory;
mod overload;
mod overview;
mod plan;
mod warm;

pub use inspection::Inspection;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use introduced::Introduced;
use leaving::Leaving;
use overload::Overload;
use overview::Overview;
use warm::Warm;

use crate::admin::{self, Admin, AdminError, Shown};
use crate::cache::{Library, Scopes, View};
use crate::clock;
use crate::config::{self, Address, Config, ListenerTls, MemoryLimit, Source};
use crate::downstream::{self, Admission, Entrance, Handshakes, Shared};
use crate::json::{SchemaError, Schemas};
use crate::shutdown::{self, Drain, Hangups, OtherSignals, StopSignals};
use crate::telemetry::{Health, Metrics, Status};
use crate::tls::{BadFile, HTTP1, HTTP2, InUse, Protocols, Renewal, ServerTls};
use crate::upstream::{self, FileWriter, Files, Polling, RestServer, Talk, Target, Writer};
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

/// Keeps the signals that mean "reload" to other programs from killing this one; the future logs them. To be called within a
/// runtime.
pub fn other_signals() -> Result<impl Future<Output = ()> + use<>, AppError> {
    Ok(OtherSignals::listen().map_err(AppError::Signals)?.run())
}

/// Runs the relay until it is told to stop.
pub async fn run(config: Config) -> Result<(), AppError> {
    descriptors::raise();
    let signals = StopSignals::listen().map_err(AppError::Signals)?;
    let metrics = Metrics::new(config.types.keys().map(String::as_str));
    let health = Arc::new(Health::new());
    let mark = plan::mark(&config);
    let scopes = Arc::new(Scopes::new(
        config.classes.clone(),
        plan::routes(&config),
        plan::views(&config),
        config.limits.views,
    ));
    let overview = Overview::new(&config, &scopes);
    let looked_at = overview.clone();
    let (order, orders) = mpsc::channel(1);
    let in_use = Arc::new(InUse::default());
    let shown = Shown {
        metrics: metrics.clone(),
        certificates: in_use.clone(),
        overview: admin::Overview::new(move || looked_at.look()),
        health: health.clone(),
        order,
    };
    let (_admin, admin_tls) = administer(&config, shown)?;

    let schemas = Schemas::with_files(&config.descriptors)?;
    let shared = Arc::new(Shared {
        scopes: scopes.clone(),
        library: Arc::new(Library::new(plan::LIBRARY_BYTES, config.chunk)),
        settings: plan::downstream(&config, &mark),
        admission: Arc::new(Admission::new(plan::admission(&config.limits), clock::now())),
        returns: Arc::default(),
        budget: Arc::new(Budget::new(plan::reading_bytes(&config))),
        metrics: metrics.clone(),
        health: health.clone(),
        identifier: format!("distributary/{}", config.node.id),
        schemas,
    });
    let warm = Warm::new(&config, &scopes, &metrics);
    if let Some(warm) = &warm {
        spawn(warm.clone().look(health.clone()));
    }
    let (trigger, drain) = shutdown::drain();
    let mut secured = listen(&config, &shared, &drain)?;
    secured.extend(admin_tls.map(|tls| ("admin".to_owned(), tls)));
    let renewal = Renewal::new(secured, plan::secured(&config), &in_use, metrics.certificates());
    let mut hangups = Hangups::listen().map_err(AppError::Signals)?;

    // Draining ends when the last holder drops it, so only listeners and clients may hold it.
    drop(drain);
    let mut leaving = Leaving::new(signals, orders, health, metrics, &config.timers);
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
        () = feed(&config, &mark, &shared, warm.as_ref(), &overview) => {}
        () = clock::keep() => {}
        () = renewal.run(async || hangups.next().await) => {}
        () = look_after(&shared, &overview, config.limits.memory) => {}
    }
    Ok(())
}

/// Starts the admin address. Returns its TLS, if it has any.
fn administer(config: &Config, shown: Shown) -> Result<(Admin, Option<Arc<ServerTls>>), AppError> {
    let tls = config.admin_tls.as_ref();
    let tls = tls.map(|tls| secure(&config.admin, tls, &[HTTP1])).transpose()?;
    let admin = Admin::start(&config.admin, tls.clone(), shown)?;
    tracing::info!(address = %admin.address(), "admin address");
    if config.admin_is_open() {
        let open = "not on loopback, and without `admin.tls` and its `client_ca`: whoever reaches it can read everything there, and \
                    disconnect clients";
        tracing::warn!(admin = %admin.address(), "{open}");
    }
    Ok((admin, tls))
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
        spawn(downstream::serve(listener, entrance, shared.clone(), drain.clone()));
    }
    Ok(secured)
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

/// Gives every new view its writer.
async fn feed(config: &Config, mark: &str, shared: &Shared, warm: Option<&Arc<Warm>>, overview: &Overview) {
    let (scopes, metrics) = (&shared.scopes, &shared.metrics);
    let mut servers: Vec<Fed> = Vec::new();
    for (at, server) in config.upstream.servers.iter().enumerate() {
        let name = config.upstream.name(at);
        servers.push(match &server.source {
            Source::Grpc(grpc) => {
                let target = Target::new(&name, grpc.clone(), metrics.upstream(&name));
                Fed::Grpc(target, Arc::new(plan::upstream(config, mark, server.features)))
            }
            Source::Rest(rest) => {
                let target = RestServer::new(&name, rest.clone(), metrics.upstream(&name));
                let polling = plan::polling(config, mark, server.features, shared.schemas.clone());
                Fed::Rest(target, Arc::new(polling))
            }
            Source::Files(path) => {
                let files = Files::new(&name, path, metrics.files(&name));
                let dictionary = plan::dictionary(config, shared.schemas.clone());
                let shown = files.clone();
                overview.source(at, move || shown.status().as_stream());
                spawn(files.clone().run(plan::file_bytes(config), dictionary));
                Fed::Files(files)
            }
        });
    }
    let top = config.upstream.top.iter().filter_map(|at| servers.get(*at).cloned());
    let reached = reach(top.collect(), config.classes.have_credentials());
    let health = shared.health.clone();
    spawn(async move {
        reached.await;
        health.advance(Status::Ready);
    });
    let mut introduced = Introduced::new(scopes, metrics, &config.node);
    loop {
        for view in scopes.take_created() {
            let mut node = || introduced.node(&view, &config.upstream.name(view.server()));
            let files = match plan::files(scopes, view.class()) {
                Ok(files) => files,
                Err(error) => {
                    // No client can use such a view.
                    tracing::error!(%error, "a view has no usable credentials and gets no resources");
                    continue;
                }
            };
            match servers.get(view.server()) {
                Some(Fed::Grpc(target, settings)) => {
                    let node = node();
                    let writer = Writer::new(view.clone(), &node, target, files, settings);
                    fill(writer, view, warm.cloned(), overview);
                }
                Some(Fed::Rest(server, polling)) => {
                    let node = node();
                    let writer = Writer::polling(view.clone(), &node, server, files, polling);
                    fill(writer, view, warm.cloned(), overview);
                }
                Some(Fed::Files(files)) => {
                    spawn(FileWriter::new(view, files, plan::departures(config)).run());
                }
                None => {}
            }
        }
        scopes.changed().await;
    }
}

/// The source of a view's resources.
#[derive(Clone)]
enum Fed {
    Grpc(Arc<Target>, Arc<upstream::UpstreamSettings>),
    Rest(Arc<RestServer>, Arc<Polling>),
    Files(Arc<Files>),
}

/// Waits until one of the servers was reached once. Files count as reached once they were read without errors.
async fn reach(servers: Vec<Fed>, by_class: bool) {
    let mut targets = Vec::new();
    let mut others: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
    for server in servers {
        match server {
            Fed::Grpc(target, settings) => targets.push((target, settings)),
            Fed::Rest(server, polling) => {
                others.push(Box::pin(async move { server.reached(&polling, by_class).await }))
            }
            Fed::Files(source) => others.push(Box::pin(async move { source.reached().await })),
        }
    }
    tokio::select! {
        Some(()) = others.next() => {}
        () = upstream::reach(targets, by_class) => {}
    }
}

/// Writes snapshots if they are configured; otherwise waits forever.
async fn keep(warm: Option<&Warm>) {
    match warm {
        Some(warm) => warm.keep().await,
        None => std::future::pending().await,
    }
}

/// Fills a view: first from its snapshot, if there is one, then from the server.
fn fill<L: Talk + 'static>(writer: Writer<L>, view: Arc<View>, warm: Option<Arc<Warm>>, overview: &Overview) {
    overview.add(&view, writer.statuses());
    spawn(async move {
        if let Some(warm) = warm {
            warm.load(&view).await;
        }
        writer.run().await;
    });
}

/// Sweeps the views, and updates metrics and the log, once per [`SWEEP`].
async fn look_after(shared: &Arc<Shared>, overview: &Overview, memory: MemoryLimit) {
    let mut overload = Overload::new(shared, memory);
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        overload.look();
        for type_url in shared.returns.sweep(clock::now()) {
            shared.metrics.of(&type_url).returned_without.inc();
        }
        shared.scopes.sweep(clock::now());
        shared.library.purge();
        show(&shared.scopes.all(), &shared.metrics);
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
fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(task));
}
