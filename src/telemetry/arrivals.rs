//! The counters of what clients show before they are served.
//!
//! Owns what they mean; `families` owns their names. Decides nothing.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// The counters of what clients show before they are served.
#[derive(Clone, Debug, Default)]
pub struct ArrivalMetrics {
    pub(super) proxy_headers: Family<[(&'static str, String); 1], Counter>,
    pub(super) tokens: Family<[(&'static str, String); 1], Counter>,
    pub(super) key_reloads: Family<[(&'static str, String); 1], Counter>,
}

impl ArrivalMetrics {
    /// Counts a connection that began with a PROXY header, or should have. `result` is one of a few words.
    pub fn proxy_header(&self, result: &'static str) {
        self.proxy_headers.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// Counts a call with a token. `result` is one of a few words.
    pub fn token(&self, result: &'static str) {
        self.tokens.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// Counts a file of keys that has changed. `result` is one of a few words.
    pub fn keys(&self, result: &'static str) {
        self.key_reloads.get_or_create(&[("result", result.to_owned())]).inc();
    }
}
