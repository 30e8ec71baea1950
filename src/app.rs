//! The wiring: from a checked configuration to running parts. It owns what is connected to what, and nothing else.

mod plan;
mod warm;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use warm::Warm;

use crate::admin::{Admin, AdminError, Shown};
use crate::cache::{Library, Scopes, View};
use crate::config::{Address, Config, Source};
use crate::downstream::{self, Shared};
use crate::json::{SchemaError, Schemas};
use crate::protocol::come_through;
use crate::shutdown::{self, Drain, StopSignals};
use crate::telemetry::{Health, Metrics, Status};
use crate::upstream::{self, Target, Writer};
use crate::wire::Listener;

/// Why the relay does not run.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The admin address is not there.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// A file of descriptors cannot be used.
    #[error("descriptors: {0}")]
    Schemas(#[from] SchemaError),
    /// A listener cannot be bound.
    #[error("listeners: cannot listen on {address}: {source}; choose another with --listen")]
    Listen {
        /// As it was configured.
        address: Address,
        /// What the system said.
        source: std::io::Error,
    },
    /// The signals cannot be heard.
    #[error("cannot listen for SIGTERM: {0}")]
    Signals(std::io::Error),
}

/// How often views are looked after: who lags too far behind, what nobody uses, what is shown.
const SWEEP: Duration = Duration::from_secs(1);

/// Runs the relay until it is told to stop.
pub async fn run(config: Config) -> Result<(), AppError> {
    let mut signals = StopSignals::listen().map_err(AppError::Signals)?;
    let metrics = Metrics::new(config.types.keys().map(String::as_str));
    let health = Arc::new(Health::new());
    let shown = Shown {
        metrics: metrics.clone(),
        health: health.clone(),
    };
    let admin = Admin::start(&config.admin, shown)?;
    tracing::info!(address = %admin.address(), "admin address");

    let mark = plan::mark(&config);
    let scopes = Arc::new(Scopes::new(
        config.classes.clone(),
        plan::routes(&config),
        plan::views(&config),
        config.limits.views,
    ));
    let library = Arc::new(Library::new(plan::LIBRARY_BYTES, config.chunk));
    let schemas = Schemas::with_files(&config.descriptors)?;
    let shared = Arc::new(Shared {
        scopes: scopes.clone(),
        library: library.clone(),
        settings: plan::downstream(&config, &mark),
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
    listen(&config, &shared, &drain)?;

    tokio::select! {
        () = signals.next() => {}
        () = feed(&config, &mark, &scopes, &metrics, &health, warm.as_ref()) => {}
        () = look_after(&scopes, &library, &metrics) => {}
        () = keep(warm.as_deref()) => {}
    }
    tracing::info!(within = ?config.timers.drain, "draining");
    health.advance(Status::Draining);
    let deadline = shutdown::after(config.timers.drain);
    let last = warm.map(Warm::last);
    trigger.begin(deadline);
    drop((drain, shared));
    let last = async {
        if let Some(last) = last {
            last.await;
        }
    };
    tokio::select! {
        (finished, ()) = async { tokio::join!(trigger.finished(deadline), last) } => tracing::info!(finished, "stopped"),
        () = signals.next() => tracing::warn!("stopped at once by a second signal"),
    }
    Ok(())
}

/// Binds all listeners before the first client is served.
fn listen(config: &Config, shared: &Arc<Shared>, drain: &Drain) -> Result<(), AppError> {
    let mut bound = Vec::new();
    for address in &config.listeners {
        let listener = match address {
            Address::Socket(socket) => Listener::tcp(*socket),
            Address::Unix(path) => Listener::unix(path),
        };
        let listener = listener.map_err(|source| AppError::Listen {
            address: address.clone(),
            source,
        })?;
        let shown = listener
            .tcp_address()
            .map_or_else(|| address.to_string(), |bound| bound.to_string());
        tracing::info!(address = shown, "listening for clients");
        bound.push(listener);
    }
    for listener in bound {
        spawn(downstream::serve(listener, shared.clone(), drain.clone()));
    }
    Ok(())
}

/// Gives every new view its writer.
async fn feed(
    config: &Config,
    mark: &str,
    scopes: &Scopes,
    metrics: &Metrics,
    health: &Arc<Health>,
    warm: Option<&Arc<Warm>>,
) {
    let servers: Vec<_> = config
        .upstream
        .servers
        .iter()
        .enumerate()
        .map(|(at, server)| match &server.source {
            Source::Grpc(grpc) => {
                let name = config.upstream.name(at);
                let target = Target::new(&name, grpc.clone(), metrics.upstream(&name));
                Some((target, Arc::new(plan::upstream(config, mark, server.features))))
            }
            Source::Files(_) | Source::Rest(_) => None,
        })
        .collect();
    let top = config
        .upstream
        .top
        .iter()
        .filter_map(|at| servers.get(*at).cloned().flatten());
    let (reached, health) = (upstream::reach(top.collect()), health.clone());
    spawn(async move {
        reached.await;
        health.advance(Status::Ready);
    });
    loop {
        for view in scopes.take_created() {
            if let Some(Some((target, settings))) = servers.get(view.server()) {
                let node = scopes.presented(view.class()).over(&config.node);
                let node = come_through(node, scopes.relays(&view));
                let (writer, warm) = (Writer::new(view.clone(), &node, target, settings), warm.cloned());
                spawn(async move {
                    if let Some(warm) = warm {
                        warm.load(&view).await;
                    }
                    writer.run().await;
                });
            }
        }
        scopes.changed().await;
    }
}

/// Writes snapshots, if any are asked for.
async fn keep(warm: Option<&Warm>) {
    match warm {
        Some(warm) => warm.keep().await,
        None => std::future::pending().await,
    }
}

/// Looks after the views, and shows what they hold.
async fn look_after(scopes: &Scopes, library: &Library, metrics: &Metrics) {
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = ticks.tick().await;
        scopes.sweep(now.into_std());
        library.purge();
        show(&scopes.all(), metrics);
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
