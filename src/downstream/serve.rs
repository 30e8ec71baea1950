//! A listener and its connections.
//!
//! Owns the accept loop. Refuses to stop for one connection that fails.

use std::sync::Arc;
use std::time::Duration;

use super::connection::{self, Connection};
use super::handshakes::Handshakes;
use super::service::Calls;
use super::settings::ConnectionSettings;
use crate::cache::{Library, Scopes};
use crate::clock;
use crate::json::Schemas;
use crate::shutdown::Drain;
use crate::telemetry::{Health, Metrics};
use crate::wire::{Budget, Listener};

/// What all client streams of the relay share.
pub struct Shared {
    /// Which clients share a view, and the views.
    pub scopes: Arc<Scopes>,
    /// What sessions at the same point share.
    pub library: Arc<Library>,
    /// What the operator decided.
    pub settings: ConnectionSettings,
    /// What is held of requests on their way in.
    pub budget: Arc<Budget>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What health checks are told.
    pub health: Arc<Health>,
    /// Who answers, in `control_plane.identifier`.
    pub identifier: String,
    /// What is known of types, for clients that read JSON.
    pub schemas: Schemas,
}

/// What an accept loop waits when the kernel has no connection to give, so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves clients until it is time to stop. The connections end by themselves then, each holding a [`Drain`].
pub async fn serve(listener: Listener, tls: Option<Handshakes>, shared: Arc<Shared>, drain: Drain) {
    let tls = tls.map(Arc::new);
    let calls = Arc::new(Calls::new(shared, drain.clone()));
    let mut stop = drain.clone();
    let mut draining = std::pin::pin!(stop.draining());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut draining => return,
        };
        match accepted {
            Ok((socket, peer)) => connection::start(Connection {
                calls: calls.clone(),
                socket,
                peer,
                tls: tls.clone(),
                drain: drain.clone(),
            }),
            Err(error) => {
                calls.not_accepted(&error);
                clock::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
