// SPDX-License-Identifier: Apache-2.0
//! The wiring: from a checked configuration to running parts. Owns only what is connected to what.

mod descriptors;
mod feed;
mod fleet;
mod handing;
mod inspection;
mod introduced;
mod leaving;
mod listening;
mod memory;
mod neighbours;
mod overload;
mod overview;
mod plan;
mod received;
mod reload;
mod schemas;
mod taking;
mod view_log;
mod warm;

pub use inspection::Inspection;
pub use reload::Origin;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use fleet::Fleet;
use leaving::Leaving;
use listening::Listening;
use overload::Overload;
use overview::Overview;
use reload::{Live, Reload};
use schemas::IdleSchemas;
use view_log::ViewLog;
use warm::Warm;

use crate::admin::{self, AdminError, DrainOrder, Guard, Logging, Process, ReloadOrder, Shown};
use crate::cache::{Library, Scopes, View};
use crate::census::{Census, ClientStatus};
use crate::clock;
use crate::config::{Address, Config};
use crate::downstream::{Admission, Shared, TokenLog};
use crate::json::{SchemaError, Schemas};
use crate::otlp::{self, Export};
use crate::shutdown::{self, DrainTrigger, Hangups, OtherSignals, StopSignals};
use crate::supervisor::Supervisor;
use crate::telemetry::{COMMIT, Health, Metrics, ProcessLog, RelayStatus, TurnTimes, VERSION};
use crate::tls::{BadFile, InUse, Renewal};
use crate::token::{BadKeys, KeyRenewal, Tokens};
use crate::wire::Budget;

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
pub async fn run(config: Config, origin: Origin, log: ProcessLog) -> Result<(), AppError> {
    begin(&config, &origin);
    descriptors::raise();
    let supervisor = Arc::new(Supervisor::of_environment());
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
    plan::hold(&scopes, &config);
    let overview = Overview::new(&fleet, &scopes, &metrics.faults);
    let in_use = Arc::new(InUse::default());
    let guard = guard(&config)?;
    let status = ClientStatus::new(Census::new(scopes.clone()), config.node.clone(), schemas.clone());
    let log = Arc::new(log);
    let process = process(&config, &origin, &log);
    let (mut shown, orders, reload_orders) = shown(&metrics, &health, &overview, &in_use, &guard, &status, &process);
    shown.snapshots = handing::snapshots(&fleet, &scopes, &schemas);
    let _export = export(&shown);
    let (_admin, admin_tls) = listening::administer(&config, shown)?;

    let shared = share(&config, &mark, scopes.clone(), &metrics, &health, status, &guard.tokens);
    let warm = Warm::new(&config, &fleet, &scopes, &metrics);
    let (trigger, drain) = shutdown::drain();
    // Clients come as soon as they can, and bring tokens along.
    let mut keys = KeyRenewal::new(&shared.tokens, &metrics);
    keys.begin().await;
    let (listening, servers) = Listening::begin(&config, admin_tls, &shared, &drain)?;
    // Nobody else sets it.
    let _ = process.listeners.set(listening.addresses());
    supervisor.ready();
    let renewal = Renewal::new(listening.secured(), servers, &in_use, &metrics);
    let [mut of_certificates, mut of_keys] = hangups()?;

    // Draining ends when the last holder drops it, so only listeners and clients may hold it.
    drop(drain);
    let live = Arc::new(Live {
        config: process.config,
        mark,
        shared: shared.clone(),
        fleet: fleet.clone(),
        guard,
        listening,
        log,
    });
    let reload = Reload::new(
        origin,
        reload_orders,
        live.clone(),
        metrics.clone(),
        health.clone(),
        supervisor.clone(),
    );
    let leaving = Leaving::new(signals, orders, health, metrics, live.clone(), supervisor.clone());
    // The other tasks run until the relay has stopped.
    let all = Box::pin(async {
        tokio::select! {
            () = leave(leaving, &trigger, warm.as_ref()) => {}
            () = feed::feed(&live, &fleet, &shared, warm.as_ref(), &overview) => {}
            () = clock::keep(|stalls| shared.metrics.overload.stalled(stalls.count, stalls.stood)) => {}
            () = renewal.run(async || of_certificates.next().await) => {}
            () = keys.run(async || of_keys.next().await) => {}
            () = look_after(&shared, &live, &fleet, &supervisor) => {}
            () = reload.run() => {}
        }
    });
    shared.metrics.turns.other.of(all).await;
    Ok(())
}

/// Listens for the signal to read files again: for certificates, and for keys.
fn hangups() -> Result<[Hangups; 2], AppError> {
    let listen = || Hangups::listen().map_err(AppError::Signals);
    Ok([listen()?, listen()?])
}

/// Logs what begins to run.
fn begin(config: &Config, origin: &Origin) {
    let servers = (0..config.upstream.servers.len()).map(|at| config.upstream.name(at));
    let servers: Vec<String> = servers.collect();
    tracing::info!(
        version = VERSION,
        commit = COMMIT,
        configuration = origin.name(),
        servers = servers.join(" "),
        "the relay starts"
    );
}

/// Returns what the admin address shows, and where its orders arrive.
fn shown(
    metrics: &Arc<Metrics>,
    health: &Arc<Health>,
    overview: &Arc<Overview>,
    in_use: &Arc<InUse>,
    guard: &Guard,
    status: &ClientStatus,
    process: &Process,
) -> (Shown, mpsc::Receiver<DrainOrder>, mpsc::Receiver<ReloadOrder>) {
    let (order, orders) = mpsc::channel(1);
    let (reload, reload_orders) = mpsc::channel(1);
    let (looked, counted) = (overview.clone(), overview.clone());
    let shown = Shown {
        metrics: metrics.clone(),
        status: status.clone(),
        certificates: in_use.clone(),
        overview: admin::Overview::new(move || looked.look(), move || counted.count()),
        health: health.clone(),
        order,
        reload,
        guard: guard.clone(),
        process: process.clone(),
        history: admin::History::default(),
        snapshots: admin::Snapshots::default(),
    };
    (shown, orders, reload_orders)
}

/// Exports metrics and traces to where the environment says, if it says so. The relay serves without it.
fn export(shown: &Shown) -> Option<Export> {
    let refreshed = shown.clone();
    let read = otlp::reader(shown.metrics.clone(), async move || refreshed.refresh().await);
    let started = Export::start(|name| std::env::var(name).ok(), read, &shown.metrics.traces);
    started.unwrap_or_else(|error| {
        tracing::error!(%error, "cannot start the thread that exports metrics and traces");
        None
    })
}

/// Returns what the process is, for the admin address.
fn process(config: &Config, origin: &Origin, log: &Arc<ProcessLog>) -> Process {
    let (filter, set) = (log.clone(), log.clone());
    let set = move |filter: &str| set.set(filter).map_err(|error| error.to_string());
    let logging = Logging::new(move || filter.filter(), set);
    Process::new(config.clone(), origin.file.clone(), logging)
}

/// Creates the state that all clients share.
fn share(
    config: &Config,
    mark: &str,
    scopes: Arc<Scopes>,
    metrics: &Arc<Metrics>,
    health: &Arc<Health>,
    status: ClientStatus,
    tokens: &Tokens,
) -> Arc<Shared> {
    Arc::new(Shared {
        scopes,
        library: Arc::new(Library::new(plan::LIBRARY_BYTES, config.chunk).reading(status.schemas().clone())),
        settings: ArcSwap::from_pointee(plan::downstream(config, mark)),
        admission: Arc::new(Admission::new(plan::admission(&config.limits), clock::now())),
        tokens: tokens.clone(),
        token_log: TokenLog::default(),
        returns: Arc::default(),
        budget: Arc::new(Budget::new(plan::reading_bytes(config))),
        metrics: metrics.clone(),
        health: health.clone(),
        identifier: format!("distributary/{}", config.node.id),
        schemas: status.schemas().clone(),
        status,
    })
}

/// Returns what decides about visitors of the admin address. The keys of those who issue tokens are read for it.
fn guard(config: &Config) -> Result<Guard, AppError> {
    let tokens = Tokens::read(&config.issuers)?;
    tokens.name(config.named());
    for warning in tokens.warnings() {
        tracing::warn!("jwt: {warning}");
    }
    let guard = Guard::new(tokens);
    guard.set(config);
    Ok(guard)
}

/// Waits until the relay must leave, lets all clients go, and writes the last snapshots.
async fn leave(mut leaving: Leaving, trigger: &DrainTrigger, warm: Option<&Arc<Warm>>) {
    tokio::select! {
        () = leaving.announced() => {}
        () = keep(warm.map(Arc::as_ref)) => {}
    }
    leaving.left(trigger, last(warm)).await;
}

/// Writes snapshots if they are configured; otherwise waits forever.
async fn keep(warm: Option<&Warm>) {
    match warm {
        Some(warm) => warm.keep().await,
        None => std::future::pending().await,
    }
}

/// Writes the last snapshots if they are configured.
async fn last(warm: Option<&Arc<Warm>>) {
    if let Some(warm) = warm {
        warm.clone().last().await;
    }
}

/// Sweeps the views, and updates metrics, the log and what the service manager knows, once per [`SWEEP`].
async fn look_after(shared: &Arc<Shared>, live: &Live, fleet: &Arc<Fleet>, supervisor: &Supervisor) {
    let mut overload = Overload::new(shared);
    let mut schemas = IdleSchemas::new(clock::now());
    let mut view_log = ViewLog::new(&shared.scopes, fleet);
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = None;
    loop {
        ticks.tick().await;
        supervisor.alive();
        let status = match shared.health.status() {
            RelayStatus::Starting => shared.health.not_reached(),
            RelayStatus::Ready => "clients are served".to_owned(),
            RelayStatus::Draining => "not ready for clients: draining, or an operator says so".to_owned(),
        };
        if told.as_ref() != Some(&status) {
            supervisor.status(&status);
            told = Some(status);
        }
        overload.look(live.config().limits.memory);
        schemas.look(clock::now());
        for type_url in shared.returns.sweep(clock::now()) {
            shared.metrics.of(&type_url).returned_without.inc();
        }
        shared.scopes.sweep(clock::now());
        shared.library.purge();
        let views = shared.scopes.all();
        fleet.purge(&views.iter().map(|view| view.server()).collect(), clock::now());
        show(&views, fleet, &shared.metrics);
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        shared.metrics.tasks.set(i64::try_from(tasks).unwrap_or(i64::MAX));
        shared
            .metrics
            .show_reading(shared.budget.bytes(), shared.budget.take_refused());
        view_log.say(clock::now());
    }
}

fn show(views: &[Arc<View>], fleet: &Fleet, metrics: &Metrics) {
    metrics.views.set(i64::try_from(views.len()).unwrap_or(i64::MAX));
    let mut stale: BTreeMap<String, usize> = BTreeMap::new();
    for view in views {
        // A view that no client reads serves nobody: its clients get everything from another server.
        let types = view.head().stale().len();
        if types > 0
            && view.demand().readers().0 > 0
            && let Some(member) = fleet.get(view.server())
        {
            *stale.entry(member.name.clone()).or_default() += types;
        }
    }
    metrics.upstreams.show_stale(&stale);
    metrics.show_cache(views.iter().flat_map(|view| view.summary().types));
}

#[expect(clippy::disallowed_methods, reason = "this is the wiring")]
fn spawn(turns: &TurnTimes, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let (turns, task) = (turns.clone(), Box::pin(task));
    tokio::spawn(async move { turns.of(task).await })
}
