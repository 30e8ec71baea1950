//! The counters of what clients show before they are served.
//!
//! Owns their names and what they mean. Decides nothing.

use prometheus_client::registry::Registry;

use super::labels::WordCounters;

const PROXY_HEADERS: [&str; 7] = [
    "good",
    "missing",
    "malformed",
    "too_long",
    "timeout",
    "closed",
    "stranger",
];
const TOKENS: [&str; 13] = [
    "good",
    "malformed",
    "several",
    "issuer",
    "key",
    "signature",
    "expired",
    "early",
    "audience",
    "claim",
    "unreadable",
    "ambiguous",
    "unchecked",
];
/// Kinds of names in certificates, and what else an identity may lack.
const IDENTITIES: [&str; 6] = ["spiffe", "uri", "dns", "subject", "unread", "missing"];

/// The counters of what clients show before they are served.
#[derive(Clone, Debug)]
pub struct ArrivalMetrics {
    proxy_headers: WordCounters,
    tokens: WordCounters,
    refused_identities: WordCounters,
    key_reloads: WordCounters,
}

impl ArrivalMetrics {
    #[rustfmt::skip]
    pub(super) fn register(own: &mut Registry) -> Self {
        Self {
            proxy_headers: WordCounters::new("result", &PROXY_HEADERS).register(own, "proxy_headers", "Connections that began with a PROXY header, and those with a fault in it"),
            tokens: WordCounters::new("result", &TOKENS).register(own, "tokens", "Calls with a token, and those that were refused for it"),
            refused_identities: WordCounters::new("reason", &IDENTITIES).register(own, "refused_identities", "Calls that were refused because the client's identity is missing, or cannot be read as far as the configuration names it"),
            key_reloads: WordCounters::new("result", &["used", "bad"]).register(own, "jwks_reloads", "Times that the keys of an issuer had changed, and whether they could be used"),
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

    /// Counts a file of keys that has changed. `result` is one of a few words.
    pub fn keys(&self, result: &'static str) {
        self.key_reloads.of(result).inc();
    }
}
