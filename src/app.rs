//! The wiring: from a checked configuration to running parts. It owns what is connected to what, and nothing else.

use std::sync::Arc;

use crate::admin::{Admin, AdminError, Shown};
use crate::config::Config;
use crate::shutdown::{self, StopSignals};
use crate::telemetry::{Health, Metrics, Status};

/// Why the relay does not run.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The admin address is not there.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The signals cannot be heard.
    #[error("cannot listen for SIGTERM: {0}")]
    Signals(std::io::Error),
}

/// Runs the relay until it is told to stop.
pub async fn run(config: Config) -> Result<(), AppError> {
    let mut signals = StopSignals::listen().map_err(AppError::Signals)?;
    let metrics = Metrics::new(config.types.keys().map(String::as_str));
    let health = Arc::new(Health::new());
    let admin = Admin::start(
        &config.admin,
        Shown {
            metrics,
            health: Arc::clone(&health),
        },
    )?;
    tracing::info!(address = %admin.address(), "admin address");
    let (trigger, drain) = shutdown::drain();
    signals.next().await;
    tracing::info!(within = ?config.timers.drain, "draining");
    health.advance(Status::Draining);
    let deadline = shutdown::after(config.timers.drain);
    trigger.begin(deadline);
    drop(drain);
    tokio::select! {
        finished = trigger.finished(deadline) => tracing::info!(finished, "stopped"),
        () = signals.next() => tracing::warn!("stopped at once by a second signal"),
    }
    Ok(())
}
