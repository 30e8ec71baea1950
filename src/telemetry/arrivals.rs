// SPDX-License-Identifier: Apache-2.0
//! The counters of what clients show before they are served.
//!
//! Owns their names and what they mean. Decides nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{Labels, WordCounters, register};
use super::upstream::seconds_since_1970;

const PROXY_HEADERS: &str = "good missing malformed too_long timeout closed stranger";
const TOKENS: &str = "good malformed several issuer key no_keys signature expired early audience claim unreadable ambiguous \
    unchecked";
/// Kinds of names in certificates, and what else an identity may lack.
const IDENTITIES: &str = "spiffe uri dns subject unread missing";

/// The counters of what clients show before they are served.
#[derive(Clone, Debug)]
pub struct ArrivalMetrics {
    proxy_headers: WordCounters,
    tokens: WordCounters,
    refused_identities: WordCounters,
    key_reloads: WordCounters,
    fetched: Family<Labels<1>, Gauge>,
    /// Whose keys are fetched.
    issuers: Arc<Mutex<BTreeSet<String>>>,
}

impl ArrivalMetrics {
    #[rustfmt::skip]
    pub(super) fn register(own: &mut Registry) -> Self {
        Self {
            proxy_headers: WordCounters::new("result", PROXY_HEADERS).register(own, "proxy_headers", "Connections that began with a PROXY header, and those with a fault in it"),
            tokens: WordCounters::new("result", TOKENS).register(own, "tokens", "Calls with a token, and those that were refused for it"),
            refused_identities: WordCounters::new("reason", IDENTITIES).register(own, "refused_identities", "Calls that were refused because the client's identity is missing, or cannot be read as far as the configuration names it"),
            key_reloads: WordCounters::new("result", "used bad").register(own, "jwks_reloads", "Times that the keys of an issuer had changed, and whether they could be used"),
            fetched: register(own, "jwks_fetched_timestamp_seconds", "When the keys of an issuer were last fetched, in seconds since 1970; 0 before the first time", Family::default()),
            issuers: Arc::default(),
        }
    }

    /// Counts a connection that began with a PROXY header, or should have. `result` is one of a few words.
    pub fn proxy_header(&self, result: &'static str) {
        self.proxy_headers.of(result).inc();
    }

    /// Counts a call with a token. `result` is one of a few words.
    pub fn token(&self, result: &'static str) {
        self.tokens.of(result).inc();
    }

    /// Counts a call that was refused for the client's identity. `reason` is one of a few words.
    pub fn identity(&self, reason: &'static str) {
        self.refused_identities.of(reason).inc();
    }

    /// These are the issuers whose keys are fetched.
    pub fn fetch_keys_of<'a>(&self, issuers: impl Iterator<Item = &'a str>) {
        let issuers: BTreeSet<&str> = issuers.collect();
        let mut shown = self.issuers.lock();
        for gone in shown.iter().filter(|shown| !issuers.contains(shown.as_str())) {
            self.fetched.remove(&[("issuer", gone.clone())]);
        }
        for issuer in &issuers {
            drop(self.fetched.get_or_create(&[("issuer", (*issuer).to_owned())]));
        }
        *shown = issuers.into_iter().map(str::to_owned).collect();
    }

    /// Notes that the keys of an issuer were fetched just now.
    pub fn keys_fetched(&self, issuer: &str) {
        let gauge = self.fetched.get_or_create(&[("issuer", issuer.to_owned())]);
        gauge.set(seconds_since_1970());
    }

    /// Counts a file of keys that has changed. `result` is one of a few words.
    pub fn keys(&self, result: &'static str) {
        self.key_reloads.of(result).inc();
    }
}
