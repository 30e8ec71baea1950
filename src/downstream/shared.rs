//! What all clients of the relay share.
//!
//! Owns nothing itself: it brings the parts together. Refuses to know connections.

use std::sync::Arc;

use super::settings::ConnectionSettings;
use crate::cache::{Library, Scopes};
use crate::json::Schemas;
use crate::telemetry::{Health, Metrics};
use crate::wire::Budget;

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
