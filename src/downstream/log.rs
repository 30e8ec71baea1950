// SPDX-License-Identifier: Apache-2.0
//! The log lines about clients.
//!
//! Owns one line for each rejection, each stream that ends with an error, each connection that fails to begin or to be accepted,
//! each connection and stream that is refused, each node that reports its health, each certificate that is no SPIFFE identity, each
//! node that may not have what it asks for, and each node and type with a faulty name; and a limit on the rate of these lines: what fails
//! in the same way for the same address at each attempt has one a minute. Does not act on these events (K-07).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tonic::{Code, Status};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::connection::HeaderFault;
use super::full::LimitReached;
use super::handshakes::HandshakeFault;
use crate::classes::Node;
use crate::identity::{Identity, SvidFault};
use crate::protocol::{self, NameFault};
use crate::telemetry::LinePaces;
use crate::wire::Peer;
use crate::xds::{Objection, TypeUrl};

/// The lines of one listener's clients.
#[derive(Debug, Default)]
pub(super) struct ClientLog {
    nacks: LinePace,
    given_up: LinePace,
    ends: LinePace,
    /// Connections that fail to begin.
    handshakes: LinePaces,
    identities: LinePace,
    /// The certificates with a bad SPIFFE name.
    not_spiffe: Once,
    accepts: LinePace,
    full: LinePaces,
    reports: LinePace,
    /// The nodes that have reported their health.
    reported: Once,
    names: LinePace,
    /// The nodes, types and kinds of fault of names that something was wrong with.
    faulty: Once,
    denials: LinePace,
    /// The nodes that were refused, and why.
    denied: Once,
    /// Whether clients say that they are relays, of which no rule speaks.
    unnamed_relays: Once,
}

/// Lines of one kind: at most [`LINES_MAX`] in a second.
#[derive(Debug, Default)]
struct LinePace(Mutex<Second>);

#[derive(Debug, Default)]
struct Second {
    begun: Option<Instant>,
    lines: u32,
    suppressed: u64,
}

const LINES_MAX: u32 = 20;
/// Hashes of what was logged once and is not logged again.
#[derive(Debug, Default)]
struct Once(Mutex<BTreeSet<u64>>);

/// How many lines of one kind are remembered as written; after that, none is written.
const ONCE_MAX: usize = 16_384;

impl ClientLog {
    /// Logs that a client has rejected a response of a type, and why, in its words.
    pub(super) fn nack(
        &self,
        (node, peer): (&Node, &Peer),
        (type_url, nonce): (&TypeUrl, &[u8]),
        (response, objection): (&protocol::RejectedResponse, &Objection),
        now: Instant,
    ) {
        let Some(suppressed) = self.nacks.admit(now) else {
            return;
        };
        let nonce: String = String::from_utf8_lossy(nonce).chars().take(40).collect();
        let (response, reason) = (response.to_string(), objection.in_full().into_owned());
        tracing::warn!(
            node = %node.id, %peer, r#type = %type_url, nonce, response, reason, suppressed,
            "a client rejected a response"
        );
    }

    /// B-22: logs that a client has rejected so much in a row that the relay holds back the rest, too.
    pub(super) fn given_up(&self, node: &Node, type_url: &TypeUrl, names: usize, now: Instant) {
        let Some(suppressed) = self.given_up.admit(now) else {
            return;
        };
        tracing::warn!(
            node = %node.id, r#type = %type_url, names, suppressed,
            "a client rejects whatever is tried; what is left is held back until it changes or the client reconnects"
        );
    }

    /// Logs once for each node that it reports its health, because the report goes no further.
    pub(super) fn health_report(&self, node: &Node, now: Instant) {
        let news = self.reported.is_news(&[&node.id]);
        if let Some(suppressed) = news.then(|| self.reports.admit(now)).flatten() {
            tracing::info!(
                node = %node.id,
                suppressed,
                "the client reports its health (istio.v1.HealthInformation); the relay does not pass these reports on to the \
                 control plane"
            );
        }
    }

    /// K-25: logs once that clients say that they are relays, and no rule says which of them are.
    pub(super) fn unnamed_relay(&self, node: &Node, identity: &Identity) {
        if self.unnamed_relays.is_news(&[]) {
            tracing::warn!(
                node = %node.id, %identity,
                "a client says that it is a relay, and no rule has `relay`, so the control plane is told what any client says; write \
                 `relay: true` in the rule of the relays below this one"
            );
        }
    }

    /// B-32: logs once for each node and type that something is wrong with a name that it asks for. `name` is its beginning.
    pub(super) fn name_fault(&self, node: &str, type_url: &TypeUrl, fault: NameFault, name: &str, now: Instant) {
        let news = self.faulty.is_news(&[node, type_url.url(), fault.word()]);
        let Some(suppressed) = news.then(|| self.names.admit(now)).flatten() else {
            return;
        };
        let answer = match fault {
            NameFault::Empty => "an empty name: there is no such resource",
            NameFault::Malformed => {
                "a name that is no valid xdstp name of the type: it is asked for by its text; an Envoy rejects such names"
            }
            NameFault::Long => "a name of more than 4096 bytes: not answered",
            NameFault::Denied if type_url.kind().is_secret() => {
                "a secret that no rule allows it: for this client it does not exist (without rules for it, `secrets: allow` serves secrets)"
            }
            NameFault::Denied => "a name that no rule allows it: for this client it does not exist",
        };
        tracing::warn!(node, r#type = %type_url, name, suppressed, "a client asks for {answer}; its other names are served");
    }

    /// Logs that a TLS handshake failed.
    pub(super) fn handshake(&self, peer: &Peer, fault: &HandshakeFault, now: Instant) {
        if !fault.is_news() {
            return tracing::debug!(%peer, "no TLS connection: {fault}");
        }
        let said = fault.to_string();
        if let Some(suppressed) = self.handshakes.admit(&[&host(peer), &said], now) {
            tracing::warn!(%peer, reason = fault.reason(), suppressed, "no TLS connection: {said}");
        }
    }

    /// Logs that a connection lacks a good PROXY header, or has one that it may not have.
    pub(super) fn not_proxied(&self, peer: &Peer, fault: &HeaderFault, now: Instant) {
        let said = fault.to_string();
        if let Some(suppressed) = self.handshakes.admit(&[&host(peer), &said], now) {
            tracing::warn!(%peer, reason = fault.reason(), suppressed, "a connection is closed: {said}");
        }
    }

    /// Logs once for each certificate that it has a SPIFFE name and yet is no SPIFFE identity.
    pub(super) fn not_spiffe(&self, identity: &Identity, texts: &[String], fault: &SvidFault, now: Instant) {
        let mut certificate: Vec<&str> = texts.iter().map(String::as_str).collect();
        let said = fault.to_string();
        certificate.push(&said);
        let news = self.not_spiffe.is_news(&certificate);
        if let Some(suppressed) = news.then(|| self.identities.admit(now)).flatten() {
            tracing::warn!(%identity, suppressed, "a client has no SPIFFE identity: {fault}");
        }
    }

    /// Logs that a connection or a stream is refused because there are too many.
    pub(super) fn not_admitted(&self, peer: &Peer, full: &LimitReached, now: Instant) {
        if let Some(suppressed) = self.full.admit(&[&host(peer), full.limit], now) {
            tracing::warn!(%peer, limit = full.limit, suppressed, "a connection or stream is refused: {full}");
        }
    }

    /// Logs that a stream may not have more names for now.
    pub(super) fn not_grown(&self, node: &str, peer: &Peer, full: &LimitReached, now: Instant) {
        if let Some(suppressed) = self.full.admit(&[&host(peer), node, full.limit], now) {
            tracing::warn!(node, %peer, limit = full.limit, suppressed, "a stream that asks for more names waits or ends: {full}");
        }
    }

    /// Logs that a connection cannot be accepted. At most one line per second, because every attempt fails for the same reason.
    pub(super) fn not_accepted(&self, error: &std::io::Error, now: Instant) {
        if let Some(suppressed) = self.accepts.admit_of(1, now) {
            tracing::warn!(%error, suppressed, "cannot accept a connection");
        }
    }

    /// Logs that a stream is ended because its client does not read this many bytes.
    pub(super) fn stalled(&self, node: &str, peer: &Peer, bytes: u64, now: Instant) {
        if let Some(suppressed) = self.ends.admit(now) {
            tracing::warn!(node, %peer, bytes, suppressed, "a client does not read; its stream is ended");
        }
    }

    /// Logs that a stream is ended because its client does not answer pings.
    pub(super) fn silent(&self, node: &str, peer: &Peer, now: Instant) {
        if let Some(suppressed) = self.ends.admit(now) {
            tracing::warn!(node, %peer, suppressed, "a client does not answer pings: it hangs, or is gone; its stream is ended");
        }
    }

    /// Logs that the relay ends a stream.
    pub(super) fn end(&self, node: Option<&Node>, status: &Status, now: Instant) {
        let node = node.map_or("", |node| &*node.id);
        if status.code() == Code::Ok {
            return;
        }
        if status.code() == Code::PermissionDenied {
            // Such clients come back again and again.
            let news = self.denied.is_news(&[node, status.message()]);
            if let Some(suppressed) = news.then(|| self.denials.admit(now)).flatten() {
                tracing::warn!(node, suppressed, "a stream is refused: {}", status.message());
            }
            return;
        }
        if let Some(suppressed) = self.ends.admit(now) {
            tracing::info!(node, code = ?status.code(), suppressed, "a stream has ended: {}", status.message());
        }
    }
}

impl Once {
    /// Returns whether nothing was logged of these texts before.
    fn is_news(&self, texts: &[&str]) -> bool {
        let hash = texts
            .iter()
            .fold(0, |hash, text| xxh3_64_with_seed(text.as_bytes(), hash));
        let mut known = self.0.lock();
        known.len() < ONCE_MAX && known.insert(hash)
    }
}

impl LinePace {
    /// Returns none if no line may be written now, and otherwise how many lines were suppressed since the last one.
    fn admit(&self, now: Instant) -> Option<u64> {
        self.admit_of(LINES_MAX, now)
    }

    fn admit_of(&self, lines_max: u32, now: Instant) -> Option<u64> {
        let mut second = self.0.lock();
        let over = second
            .begun
            .is_none_or(|begun| now.saturating_duration_since(begun) >= Duration::from_secs(1));
        if over {
            second.begun = Some(now);
            second.lines = 0;
        }
        if second.lines >= lines_max {
            second.suppressed += 1;
            return None;
        }
        second.lines += 1;
        Some(std::mem::take(&mut second.suppressed))
    }
}

/// Returns the address of a peer without its port, which is another one with each attempt.
fn host(peer: &Peer) -> String {
    match peer {
        Peer::Tcp(address) => address.ip().to_string(),
        Peer::Unix => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that tries again and again is another one with each attempt, by its port alone.
    #[test]
    fn attempts_are_of_one_address() {
        let peer = |text: &str| host(&Peer::Tcp(text.parse().unwrap()));
        assert_eq!(peer("10.0.0.7:1000"), peer("10.0.0.7:1001"));
        assert_ne!(peer("10.0.0.7:1000"), peer("10.0.0.8:1000"));
    }

    #[test]
    fn a_storm_is_counted_instead_of_written() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let lines = LinePace::default();
        let written = (0..1000).filter(|_| lines.admit(start).is_some()).count();
        assert_eq!(written, LINES_MAX as usize);
        let later = start + Duration::from_secs(1);
        assert_eq!(lines.admit(later), Some(1000 - u64::from(LINES_MAX)));
        assert_eq!(lines.admit(later), Some(0));
    }
}
