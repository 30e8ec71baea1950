// SPDX-License-Identifier: Apache-2.0
//! Translates the configuration into the settings of each part.
//!
//! Owns the translation. Decides nothing: every default and every check is in `config`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cache::{Scopes, ViewSettings};
use crate::classes::{self, Class, CredentialFiles, Unfit};
use crate::config::{CertificateFiles, Config, Credentials, Limits, Reach, Tls};
use crate::json::{Schemas, Unknown};
use crate::protocol::{ClientSettings, Holds};
use crate::upstream::{ClassFiles, Dictionary};
use crate::xds::{GuardSettings, ServerFeatures, Types};
use crate::{downstream, protocol, upstream};

/// Stands for "forever" where a duration is added to a point in time.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What stands in the name of a class in place of its rule, if the rule was changed or removed while clients are connected.
const FORMER: &str = "a former rule";

/// The most bytes of encoded responses that are kept for sessions that reach the same point later.
pub(super) const LIBRARY_BYTES: u64 = 64 * 1024 * 1024;

/// TLS handshakes of one listener at the same time; the others wait, in order.
pub(super) const HANDSHAKES: usize = 64;

/// Bytes of outdated resources of a view that slow clients still hold; beyond it the streams of the slowest end.
const PINNED_BYTES: usize = 256 << 20;

/// The shortest interval of HTTP/2 pings to control planes: those of Envoy's world allow one every 30 seconds, and the network makes some
/// of them come a little early.
const PING_LEAST: Duration = Duration::from_secs(35);

/// Returns the settings for reading files of resources.
pub(super) fn dictionary(config: &Config, schemas: Schemas) -> Dictionary {
    Dictionary {
        schemas,
        unknown: if config.lenient_files {
            Unknown::Warn
        } else {
            Unknown::Deny
        },
        types: types(config),
    }
}

/// Returns the most bytes of unfinished requests over all clients: room for four of the largest.
pub(super) const fn reading_bytes(config: &Config) -> usize {
    unbounded(config.limits.request).saturating_mul(4)
}

/// Returns what waits in a new view of files: an operator who removes something from a file means it.
pub(super) fn quiet_alone(config: &Config) -> Holds {
    Holds::new(
        config.timers.removal_quiet,
        config.timers.order_gate,
        GuardSettings::OFF,
    )
}

/// Returns the most bytes of all files of one source. Together they are one state, like one message of a control plane.
pub(super) const fn file_bytes(config: &Config) -> usize {
    unbounded(config.limits.upstream_message)
}

pub(super) fn types(config: &Config) -> Types {
    Types::with(config.types.clone())
}

pub(super) fn downstream(config: &Config, mark: &str) -> downstream::ConnectionSettings {
    let (limits, timers) = (&config.limits, &config.timers);
    let protocol = protocol::StreamSettings {
        types: types(config),
        classes: config.classes.clone(),
        access: config.access.clone(),
        limits: protocol::StreamLimits {
            names_per_stream: limits.names_per_stream,
            ..protocol::StreamLimits::default()
        },
        timers: protocol::StreamTimers {
            order_gate: timers.order_gate,
            removal_quiet: timers.removal_quiet,
            unanswered: set(timers.unanswered).unwrap_or(FOR_EVER),
            ..protocol::StreamTimers::default()
        },
        anonymous: config.anonymous,
        relay_id: mark.to_owned(),
    };
    downstream::ConnectionSettings {
        protocol: Arc::new(protocol),
        transport_v2: config.transport_v2,
        limits: downstream::ConnectionLimits {
            request: unbounded(limits.request),
            requests_per_second: narrow(limits.requests_per_second),
            ..downstream::ConnectionLimits::default()
        },
        timers: downstream::ConnectionTimers {
            keepalive: set(timers.keepalive),
            stream_age: set(timers.stream_age),
            rest_poll: timers.rest_poll,
            ..downstream::ConnectionTimers::default()
        },
    }
}

pub(super) fn admission(limits: &Limits) -> downstream::AdmissionLimits {
    downstream::AdmissionLimits {
        connections: limits.connections,
        connections_per_identity: limits.connections_per_identity,
        streams: limits.streams,
        streams_per_identity: limits.streams_per_identity,
        new_streams_per_second: narrow(limits.new_streams_per_second),
        subscriptions: limits.subscriptions,
    }
}

/// Returns the control planes that are reached over TLS.
pub(super) fn secured(config: &Config) -> Vec<(String, Tls)> {
    let servers = config.upstream.servers.iter().enumerate();
    let secured = servers.filter_map(|(at, server)| {
        let credentials = match &server.reach {
            Reach::Grpc(grpc) => &grpc.credentials,
            Reach::Rest(rest) => &rest.credentials,
            Reach::Files(_) => return None,
        };
        match credentials {
            Credentials::Tls(tls) => Some((config.upstream.name(at), tls.clone())),
            Credentials::Insecure => None,
        }
    });
    secured.collect()
}

pub(super) fn upstream(config: &Config, mark: &str, features: ServerFeatures) -> upstream::UpstreamSettings {
    upstream::UpstreamSettings {
        client: Arc::new(ClientSettings {
            types: types(config),
            relay_id: mark.to_owned(),
            does_not_exist: set(config.timers.does_not_exist).unwrap_or(FOR_EVER),
            wildcard_quiet: ClientSettings::WILDCARD_QUIET,
            features,
        }),
        upstream_message: unbounded(config.limits.upstream_message),
        keepalive: config.timers.keepalive,
        ping: set(config.timers.keepalive).map_or(Duration::ZERO, |keepalive| keepalive.max(PING_LEAST)),
        idle: config.timers.linger,
        interval: config.timers.rest_interval,
        reconnect_max: config.timers.reconnect_max,
        removal_quiet: config.timers.removal_quiet,
        order_gate: config.timers.order_gate,
    }
}

/// Returns a readable name of a class of clients: what the control plane sees of it apart from the relay's own node. `-` for the class
/// of all clients.
pub(super) fn class(scopes: &Scopes, class: &Class) -> String {
    let presented = class.presented();
    let rule = class.rule.as_ref().map(|_| match scopes.rule(class) {
        Some(at) => format!("rule {at}"),
        None => FORMER.to_owned(),
    });
    let common = presented
        .common
        .iter()
        .map(|(field, value)| format!("{field}={value:?}"));
    let features = presented
        .endpoint_collections
        .then(|| "endpoint collections".to_owned());
    let node = [("id", &presented.id), ("cluster", &presented.cluster)].into_iter();
    let node = node.filter_map(|(key, value)| Some(format!("as {key} {:?}", value.as_ref()?)));
    // A server may send different resources for different certificates, so the name shows the files.
    let files = class.credentials().ok().flatten().unwrap_or_default();
    let files = files
        .identity
        .map(|(certificate, _)| certificate)
        .into_iter()
        .chain(files.token);
    let files = files.map(|file| format!("by {file:?}"));
    let parts = rule.into_iter().chain(common).chain(node).chain(features).chain(files);
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        "-".to_owned()
    } else {
        parts.join(", ")
    }
}

/// Returns the credentials of a class towards control planes, if it has credentials of its own.
pub(super) fn files(class: &Class) -> Result<Option<ClassFiles>, Unfit> {
    let files = class.credentials()?;
    Ok(files.map(|CredentialFiles { identity, token }| ClassFiles {
        identity: identity.map(|(certificate_file, private_key_file)| CertificateFiles {
            certificate_file,
            private_key_file,
        }),
        token,
    }))
}

/// Returns the current time, which is the time of receipt of what is read from disk.
#[expect(clippy::disallowed_methods, reason = "the wiring's one place to read the clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// K-25: returns the mark by which the relay recognizes itself in a chain. Its node id is not enough, because two tiers may have
/// the same configuration.
pub(super) fn mark(config: &Config) -> String {
    classes::mark(&config.node.id, rand::random::<u32>())
}

pub(super) const fn views(config: &Config) -> ViewSettings {
    ViewSettings {
        linger: config.timers.linger,
        names_per_view: config.limits.names_per_view,
        pinned_bytes_per_view: PINNED_BYTES,
        history_bytes: config.limits.history_bytes,
    }
}

/// Sets which removals are held.
pub(super) fn hold(scopes: &Scopes, config: &Config) {
    scopes.set_guards(config.guard.clone());
}

/// Returns the duration of a timer, or none for 0, which switches the timer off.
fn set(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}

/// Returns a limit, or the largest value for 0, which switches the limit off.
pub(super) const fn unbounded(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit }
}

fn narrow(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}
