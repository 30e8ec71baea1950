// SPDX-License-Identifier: Apache-2.0
//! What the relay has learned about one control plane while it runs, whether that is streamed from or polled.
//!
//! Owns the rule that what happens to many views makes one log line: a type that is left out, a fault once a minute. Knows nothing of
//! streams and polls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use super::access::ServerAccess;
use super::away::Away;
use super::clock::now;
use super::contact::Contact;
use super::failure::Failure;
use super::status::{Board, StreamStatus};
use super::target::UpstreamSettings;
use crate::telemetry::{LinePaces, UpstreamMetrics};
use crate::xds::TypeUrl;

/// A control plane, as all views see it.
#[derive(Debug)]
pub struct ServerRecord {
    uri: String,
    /// The credentials for classes of clients that have none of their own.
    pub(super) access: Arc<ServerAccess>,
    pub(super) metrics: Arc<UpstreamMetrics>,
    pub(super) away: Away,
    contact: Contact,
    refusals: LinePaces,
    /// Why the last rejected response of each type was rejected. Only types that the relay has asked for are here.
    last_refused: Mutex<BTreeMap<String, String>>,
    /// The types that it is not asked for and that were logged.
    left_out: Mutex<BTreeSet<TypeUrl>>,
    /// Settings that are newer than those with which its writers were created.
    newer: ArcSwapOption<UpstreamSettings>,
}

/// Clients can invent types, so at most this many are logged.
const TYPES_MAX: usize = 64;

impl ServerRecord {
    /// Nothing is known yet.
    pub(super) fn new(uri: &str, access: Arc<ServerAccess>, metrics: Arc<UpstreamMetrics>) -> Self {
        Self {
            uri: uri.to_owned(),
            access,
            metrics,
            away: Away::default(),
            contact: Contact::new(),
            refusals: LinePaces::default(),
            last_refused: Mutex::default(),
            left_out: Mutex::default(),
            newer: ArcSwapOption::empty(),
        }
    }

    /// Returns its URI as configured.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Replaces the settings of all streams and polls that begin from now on.
    pub fn set(&self, settings: UpstreamSettings) {
        self.newer.store(Some(Arc::new(settings)));
    }

    /// Returns the settings for a new stream or poll of a writer that has these.
    pub(super) fn settings(&self, earlier: &Arc<UpstreamSettings>) -> Arc<UpstreamSettings> {
        self.newer.load_full().unwrap_or_else(|| earlier.clone())
    }

    /// A response of this type was rejected, for this reason.
    pub(super) fn refuse(&self, type_url: &str, fault: &str) {
        self.metrics.nacks.inc();
        self.last_refused.lock().insert(type_url.to_owned(), fault.to_owned());
        if let Some(suppressed) = self.refusals.admit(&[type_url, fault], now()) {
            let (server, r#type) = (self.uri(), type_url);
            tracing::warn!(server, r#type, reason = fault, suppressed, "response refused");
        }
    }

    /// Returns why its last rejected response of each type was rejected.
    #[must_use]
    pub fn last_refused(&self) -> BTreeMap<String, String> {
        self.last_refused.lock().clone()
    }

    /// It is not asked for these types, each with the reason. Returns them, if they have changed.
    pub(super) fn leave_out(&self, unserved: BTreeMap<TypeUrl, Arc<str>>, board: &Board) -> Vec<TypeUrl> {
        if !board.leave_out(&unserved) {
            return Vec::new();
        }
        let mut said = self.left_out.lock();
        for (type_url, reason) in &unserved {
            if said.len() < TYPES_MAX && said.insert(type_url.clone()) {
                tracing::warn!(
                    server = self.uri, r#type = %type_url, %reason,
                    "the server is not asked for this type; clients are told so"
                );
            }
        }
        unserved.into_keys().collect()
    }

    /// It is asked for all types again.
    pub(super) fn leave_out_nothing(&self) {
        self.left_out.lock().clear();
    }

    /// It answered.
    pub(super) fn answered(&self) {
        if let Some(away) = self.away.over(now()) {
            tracing::info!(server = self.uri, ?away, "control plane is back");
        }
        self.contact.reached();
    }

    /// Connects in this way again and again until one connection succeeds (G-01).
    pub(super) async fn meet<F: Future<Output = Result<(), Failure>>>(
        &self,
        settings: &UpstreamSettings,
        meet: impl Fn() -> F,
    ) {
        let told = (&self.away, &*self.metrics);
        self.contact.make(&self.uri, told, settings.reconnect_max, meet).await;
    }

    /// Waits until an attempt to reach it has failed; for ever if one succeeds before.
    pub async fn not_reached(&self) {
        self.contact.failed().await;
    }

    /// Returns the state of the attempts to reach it, until one succeeds.
    #[must_use]
    pub fn contact(&self) -> Option<StreamStatus> {
        self.contact.status()
    }
}
