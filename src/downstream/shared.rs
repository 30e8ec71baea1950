// SPDX-License-Identifier: Apache-2.0
//! The state that all clients of the relay share.
//!
//! Owns nothing itself: it holds the parts together. Knows nothing of connections.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::admission::Admission;
use super::bearer::TokenLog;
use super::returns::Returns;
use super::settings::ConnectionSettings;
use crate::cache::{Library, Scopes};
use crate::census::ClientStatus;
use crate::json::Schemas;
use crate::telemetry::{Health, Metrics};
use crate::token::Tokens;
use crate::wire::Budget;

/// The state that all client streams of the relay share.
pub struct Shared {
    /// The views, and which clients share a view.
    pub scopes: Arc<Scopes>,
    /// The encoded responses that sessions at the same point share.
    pub library: Arc<Library>,
    /// The settings of the operator, for connections and streams that begin now. Those that are open keep
    /// what they began with, except for the rules, which they look up again.
    pub settings: ArcSwap<ConnectionSettings>,
    /// How many connections and streams there may be.
    pub admission: Arc<Admission>,
    /// The checks of tokens.
    pub tokens: Tokens,
    /// When refused tokens were last logged.
    pub token_log: TokenLog,
    /// The clients that came and went.
    pub returns: Arc<Returns>,
    /// The memory for unfinished requests.
    pub budget: Arc<Budget>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The status for health checks.
    pub health: Arc<Health>,
    /// The relay's own `control_plane.identifier`.
    pub identifier: String,
    /// The schemas of types, for clients that read JSON.
    pub schemas: Schemas,
    /// The answers to questions about clients.
    pub status: ClientStatus,
}
