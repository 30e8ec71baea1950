//! Validates the file's shape and the flags into a [`Config`]. Owns which values are allowed, and reports all problems
//! instead of only the first.

mod bootstrap;
mod credentials;
mod identity;
mod listeners;
mod node;
mod server;
mod sharing;
mod upstream;

use std::time::Duration;

pub use node::host_name;

use serde::de::DeserializeOwned;
use serde_saphyr::Location;

use super::bootstrap::Unknown;
use super::document::Document;
use super::scalar::Scalar;
use super::shape::{self, Problem};
use super::{Address, Config, ConfigError, Flags, Limits, Snapshot, Timers, defaults, quantity};

/// E-14: the first pause between two attempts.
const RECONNECT_LEAST: Duration = Duration::from_secs(1);

pub(super) fn check(document: Document, flags: &Flags) -> Result<Config, ConfigError> {
    let mut check = Check {
        document,
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    let Some(file) = check.parse::<shape::File>() else {
        return Err(ConfigError::Invalid(check.problems));
    };
    let listeners = check.listeners(file.listeners, &flags.listen);
    let admin = check.admin(file.admin, flags.admin.as_deref());
    let addresses: Vec<Address> = listeners.iter().map(|listener| listener.address.clone()).collect();
    if addresses.contains(&admin) && !matches!(&admin, Address::Socket(address) if address.port() == 0) {
        check.at(
            None,
            "admin.address",
            format!("{admin} is also a listener; give the admin its own address"),
        );
    }
    let (upstream, bootstrap_node) = check.upstream(file.upstream, flags, &addresses);
    check.shown_to(&file.classes, &upstream);
    let node = check.node(file.node, bootstrap_node);
    let classes = check.classes(file.classes, &node.id, !upstream.authorities.is_empty());
    let config = Config {
        node,
        listeners,
        admin,
        upstream,
        classes,
        limits: check.limits(&file.limits),
        timers: check.timers(&file.timers),
        chunk: check.chunk(file.chunk.as_ref()),
        transport_v2: file.transport_v2.unwrap_or(defaults::TRANSPORT_V2),
        anonymous: file.anonymous.unwrap_or(defaults::ANONYMOUS),
        types: check.types(file.types),
        descriptors: check.descriptors(&file.descriptors),
        snapshot: check.snapshot(file.snapshot),
        lenient_files: check.lenient_files(file.unknown_fields.as_ref()),
        warnings: std::mem::take(&mut check.warnings),
    };
    if check.problems.is_empty() {
        Ok(config)
    } else {
        Err(ConfigError::Invalid(check.problems))
    }
}

/// The problems so far, one line each. A bad value is recorded and replaced by a good one, so that the check goes on.
struct Check {
    /// What is being checked.
    document: Document,
    problems: Vec<String>,
    warnings: Vec<String>,
}

impl Check {
    fn parse<T: DeserializeOwned>(&mut self) -> Option<T> {
        shape::parse(&self.document.text)
            .map_err(|Problem { place, key, message }| self.problems.push(self.document.line(place, &key, &message)))
            .ok()
    }

    /// Does `work` on another document.
    fn within<T>(&mut self, document: Document, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.document, document);
        let done = work(self);
        self.document = outer;
        done
    }

    fn at(&mut self, place: Option<Location>, key: impl AsRef<str>, message: String) {
        let place = place.map(|place| (place.line(), place.column()));
        self.problems.push(self.document.line(place, key.as_ref(), &message));
    }

    fn warn(&mut self, place: Option<Location>, key: &str, message: &str) {
        let place = place.map(|place| (place.line(), place.column()));
        self.warnings.push(self.document.line(place, key, message));
    }

    /// Records a problem that is an error in the relay's own file but only a warning in a bootstrap, where gRPC clients ignore
    /// it.
    fn foreign(&mut self, place: Option<Location>, key: &str, message: String) {
        if self.document.foreign {
            self.warn(place, key, &format!("{message}; ignored"));
        } else {
            self.at(place, key, message);
        }
    }

    fn unknown(&mut self, within: &str, unknown: &[Unknown]) {
        for Unknown { key, value, expected } in unknown {
            let place = Some(self.document.key(key, (value.line(), value.column())));
            let path = if within.is_empty() {
                key.clone()
            } else {
                format!("{within}.{key}")
            };
            let message = format!("unknown field `{key}`");
            if self.document.foreign {
                let message = format!("{message}; ignored");
                self.warnings.push(self.document.line(place, &path, &message));
            } else {
                let message = format!("{message}, expected one of {}", expected.join(", "));
                self.problems.push(self.document.line(place, &path, &message));
            }
        }
    }

    /// Parses a scalar; returns `None` if it is missing or bad.
    fn read<T>(
        &mut self,
        key: &str,
        scalar: Option<&Scalar>,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let scalar = scalar?;
        match parse(&scalar.value) {
            Ok(value) => Some(value),
            Err(message) => {
                self.at(Some(scalar.referenced), key, message);
                None
            }
        }
    }

    /// Parses the value of a flag.
    fn flag<T>(&mut self, flag: &str, text: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        parse(text).map_err(|message| self.at(None, flag, message)).ok()
    }

    fn chunk(&mut self, given: Option<&Scalar>) -> usize {
        match self.read("chunk", given, quantity::size) {
            Some(0) => usize::MAX,
            Some(bytes) => bytes,
            None => defaults::CHUNK,
        }
    }

    fn snapshot(&mut self, given: Option<shape::Snapshot>) -> Option<Snapshot> {
        let given = given?;
        let dir = self.read("snapshot.dir", Some(&given.dir), |text| match text {
            "" => Err("it is empty; write a directory such as /var/lib/distributary".to_owned()),
            dir => Ok(dir.into()),
        });
        let interval = self.read(
            "snapshot.interval",
            given.interval.as_ref(),
            |text| match quantity::duration(text)? {
                Duration::ZERO => Err("0 would write without end; leave `snapshot` out to write nothing".to_owned()),
                interval => Ok(interval),
            },
        );
        Some(Snapshot {
            dir: dir?,
            interval: interval.unwrap_or(defaults::SNAPSHOT_INTERVAL),
            include_secrets: given.include_secrets.unwrap_or(false),
        })
    }

    fn limits(&mut self, limits: &shape::LimitsShape) -> Limits {
        let usual = Limits::default();
        let mut count = |name: &str, scalar: &Option<Scalar>, usual: usize| {
            self.read(&format!("limits.{name}"), scalar.as_ref(), quantity::count)
                .unwrap_or(usual)
        };
        let streams_per_connection = count(
            "streams_per_connection",
            &limits.streams_per_connection,
            usual.streams_per_connection,
        );
        let types_per_stream = count("types_per_stream", &limits.types_per_stream, usual.types_per_stream);
        let names_per_stream = count("names_per_stream", &limits.names_per_stream, usual.names_per_stream);
        let requests_per_second = count(
            "requests_per_second",
            &limits.requests_per_second,
            usual.requests_per_second,
        );
        let handshakes = count("handshakes", &limits.handshakes, usual.handshakes);
        let views = count("views", &limits.views, usual.views);
        let names_per_view = count("names_per_view", &limits.names_per_view, usual.names_per_view);
        let mut size = |name: &str, scalar: &Option<Scalar>, usual: usize| {
            self.read(&format!("limits.{name}"), scalar.as_ref(), quantity::size)
                .unwrap_or(usual)
        };
        Limits {
            streams_per_connection,
            types_per_stream,
            names_per_stream,
            name_bytes: size("name_bytes", &limits.name_bytes, usual.name_bytes),
            node_bytes: size("node_bytes", &limits.node_bytes, usual.node_bytes),
            request: size("request", &limits.request, usual.request),
            upstream_message: size("upstream_message", &limits.upstream_message, usual.upstream_message),
            requests_per_second,
            handshakes,
            views,
            names_per_view,
            pinned_bytes_per_view: size(
                "pinned_bytes_per_view",
                &limits.pinned_bytes_per_view,
                usual.pinned_bytes_per_view,
            ),
        }
    }

    fn timers(&mut self, timers: &shape::TimersShape) -> Timers {
        let usual = Timers::default();
        let unanswered = self.read(
            "timers.unanswered",
            timers.unanswered.as_ref(),
            |text| match quantity::duration(text)? {
                Duration::ZERO => {
                    Err("0 would make clients wait forever; write the longest wait, such as 8s".to_owned())
                }
                wait => Ok(wait),
            },
        );
        let unanswered = unanswered.unwrap_or(usual.unanswered);
        let interval = |text: &str| match quantity::duration(text)? {
            Duration::ZERO => Err("0 would poll without a pause; write the pause, such as 5s".to_owned()),
            pause => Ok(pause),
        };
        let rest_interval = self.read("timers.rest_interval", timers.rest_interval.as_ref(), interval);
        let rest_interval = rest_interval.unwrap_or(usual.rest_interval);
        let pause = |text: &str| match quantity::duration(text)? {
            pause if pause < RECONNECT_LEAST => {
                Err("the first pause is already 1s; write a longest pause of at least that, such as 30s".to_owned())
            }
            pause => Ok(pause),
        };
        let reconnect_max = self.read("timers.reconnect_max", timers.reconnect_max.as_ref(), pause);
        let reconnect_max = reconnect_max.unwrap_or(usual.reconnect_max);
        let jitter = timers.stream_age_jitter.as_ref();
        let jitter = self.read("timers.stream_age_jitter", jitter, quantity::percent);
        let mut read = |name: &str, scalar: &Option<Scalar>| {
            self.read(&format!("timers.{name}"), scalar.as_ref(), quantity::duration)
        };
        Timers {
            linger: read("linger", &timers.linger).unwrap_or(usual.linger),
            does_not_exist: read("does_not_exist", &timers.does_not_exist).unwrap_or(usual.does_not_exist),
            unanswered,
            wildcard_quiet: read("wildcard_quiet", &timers.wildcard_quiet).unwrap_or(usual.wildcard_quiet),
            order_gate: read("order_gate", &timers.order_gate).unwrap_or(usual.order_gate),
            removal_quiet: read("removal_quiet", &timers.removal_quiet).unwrap_or(usual.removal_quiet),
            write_stall: read("write_stall", &timers.write_stall).unwrap_or(usual.write_stall),
            keepalive: read("keepalive", &timers.keepalive).unwrap_or(usual.keepalive),
            stream_age: read("stream_age", &timers.stream_age).unwrap_or(usual.stream_age),
            stream_age_jitter: jitter.unwrap_or(usual.stream_age_jitter),
            rest_poll: read("rest_poll", &timers.rest_poll).unwrap_or(usual.rest_poll),
            rest_interval,
            reconnect_max,
            drain_announce: read("drain_announce", &timers.drain_announce).unwrap_or(usual.drain_announce),
            drain: read("drain", &timers.drain).unwrap_or(usual.drain),
            pace: read("pace", &timers.pace).unwrap_or(usual.pace),
        }
    }
}
