//! Validates the file's shape and the flags into a [`Config`]. Owns which values are allowed, and reports all problems
//! instead of only the first.

mod admin;
mod bootstrap;
mod credentials;
mod guard;
mod identity;
mod listeners;
mod node;
mod paths;
mod rules;
mod server;
mod sharing;
mod snapshot;
mod spiffe;
mod tokens;
mod upstream;
mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use node::host_name;

use super::document::Document;
use super::reading::{Scalar, Shape, ShapeFaults, Unknown};
use super::shape;
use super::{Address, Config, ConfigError, Flags, Limits, LogFilter, MemoryLimit, Timers, Written, defaults, quantity};
use crate::json::{Bounds, Place, Tree};

/// E-14: the first pause between two attempts.
const RECONNECT_LEAST: Duration = Duration::from_secs(1);

/// Real names, nodes and messages are larger than this, so smaller limits are mistakes, such as `16` for `16MiB`.
const NAME_LEAST: usize = 16;
const NODE_LEAST: usize = 64;
const MESSAGE_LEAST: usize = 1024;
const MEMORY_LEAST: usize = 16 << 20;

/// Returns the configuration, with defaults in place of bad values, and all problems.
pub(super) fn check(document: Document, flags: &Flags) -> Result<(Config, Vec<String>), ConfigError> {
    let written = Written::new(&document.text, flags);
    let mut check = Check {
        document,
        documents: 0,
        problems: Vec::new(),
        warnings: Vec::new(),
        unread: false,
        endpoint_socket: flags.endpoint_socket.clone(),
        variables: flags.variables.clone(),
    };
    let Some(file) = check.parse::<shape::File>() else {
        return Err(ConfigError::Invalid(in_order(check.problems)));
    };
    let listeners = check.listeners(file.listeners, &flags.listen);
    let (listeners, places): (Vec<_>, Vec<_>) = listeners.into_iter().unzip();
    let addresses: Vec<Address> = listeners.iter().map(|listener| listener.address.clone()).collect();
    let (admin, admin_tls) = check.admin(&file.admin, flags.admin.as_deref(), &addresses, &places);
    let probes = check.probes(file.probes.as_ref(), &addresses, &admin);
    let admin_rules = check.admin_rules(file.admin.rules);
    let admin_hosts = check.admin_hosts(file.admin.hosts.as_ref());
    let (upstream, bootstrap_node) = check.upstream(file.upstream, flags, &addresses);
    check.shown_to(&file.classes, &upstream);
    let node = check.node(file.node, bootstrap_node);
    let guard = check.guards(file.guard, &file.classes);
    let classes = check.classes(file.classes, &node.id, !upstream.authorities.is_empty());
    let secrets = check.secrets(file.secrets.as_ref(), flags.secrets.as_deref());
    let access = check.access(file.rules, secrets);
    let config = Config {
        node,
        listeners,
        issuers: check.issuers(file.jwt),
        admin,
        admin_tls,
        admin_rules,
        admin_hosts,
        probes,
        upstream,
        classes,
        access: Arc::new(access),
        limits: check.limits(&file.limits),
        timers: check.timers(&file.timers),
        guard,
        chunk: check.chunk(file.chunk.as_ref()),
        transport_v2: file.transport_v2.unwrap_or(defaults::TRANSPORT_V2),
        anonymous: file.anonymous.unwrap_or(defaults::ANONYMOUS),
        types: check.types(file.types),
        descriptors: check.descriptors(&file.descriptors),
        snapshot: check.snapshot(file.snapshot),
        log_filter: check.log_filter(file.logging.level.as_ref(), flags.log_level.as_deref()),
        lenient_files: check.lenient_files(file.unknown_fields.as_ref()),
        warnings: in_order(std::mem::take(&mut check.warnings)),
        written,
    };
    Ok((config, in_order(check.problems)))
}

/// The problems so far, one line each. A bad value is recorded and replaced by a good one, so that the check goes on.
struct Check {
    /// What is being checked.
    document: Document,
    /// How many documents were checked before.
    documents: usize,
    problems: Vec<Line>,
    warnings: Vec<Line>,
    /// Whether the document has unknown keys or wrong kinds of values, so that what seems to be missing may be there.
    unread: bool,
    /// Where the SPIFFE Workload API is, if the document does not say it.
    endpoint_socket: Option<String>,
    /// Which flags have their values from which environment variables.
    variables: BTreeMap<&'static str, &'static str>,
}

/// A problem or a warning.
struct Line {
    /// Where it stands among the others; what has no place stands behind.
    order: (usize, bool, Option<Place>),
    text: String,
}

/// Returns the lines in the order of the places that they are about.
fn in_order(mut lines: Vec<Line>) -> Vec<String> {
    lines.sort_by_key(|line| line.order);
    lines.into_iter().map(|line| line.text).collect()
}

impl Check {
    /// Reads the whole document. A text that is not YAML has no shape.
    fn parse<T: Shape>(&mut self) -> Option<T> {
        match Tree::yaml(&self.document.text, Bounds::FILE) {
            Ok(tree) => self.shape(&tree, ""),
            Err(fault) => {
                self.at(fault.place, "", fault.message);
                None
            }
        }
    }

    /// Reads the value of a key.
    fn shape<T: Shape>(&mut self, tree: &Tree, key: &str) -> Option<T> {
        let mut found = ShapeFaults::default();
        let shape = T::read(tree, key, &mut found);
        self.unread |= !found.problems.is_empty() || !found.unknown.is_empty() && !self.document.foreign;
        for problem in found.problems {
            self.at(Some(problem.place), problem.key, problem.message);
        }
        for unknown in found.unknown {
            self.unknown(&unknown);
        }
        shape
    }

    /// Does `work` on another document.
    fn within<T>(&mut self, document: Document, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.document, document);
        self.documents += 1;
        let done = work(self);
        self.documents -= 1;
        self.document = outer;
        done
    }

    fn line(&self, place: Option<Place>, key: &str, message: &str) -> Line {
        Line {
            order: (self.documents, place.is_none(), place),
            text: self.document.line(place, key, message),
        }
    }

    fn at(&mut self, place: Option<Place>, key: impl AsRef<str>, message: String) {
        let line = self.line(place, key.as_ref(), &message);
        self.problems.push(line);
    }

    fn warn(&mut self, place: Option<Place>, key: &str, message: &str) {
        let line = self.line(place, key, message);
        self.warnings.push(line);
    }

    /// Records a problem that is an error in the relay's own file but only a warning in a bootstrap, where gRPC clients ignore
    /// it.
    fn foreign(&mut self, place: Option<Place>, key: &str, message: String) {
        if self.document.foreign {
            self.warn(place, key, &format!("{message}; ignored"));
        } else {
            self.at(place, key, message);
        }
    }

    fn unknown(&mut self, unknown: &Unknown) {
        if self.document.foreign {
            let message = format!("unknown field `{}`; ignored", unknown.name);
            self.warn(Some(unknown.place), &unknown.key, &message);
        } else {
            self.at(Some(unknown.place), &unknown.key, unknown.message());
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
                self.at(Some(scalar.place), key, message);
                None
            }
        }
    }

    /// Parses the value of a flag.
    fn flag<T>(&mut self, flag: &str, text: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        parse(text)
            .map_err(|message| self.at(None, self.source(flag), message))
            .ok()
    }

    /// Returns the name of a flag, or of the variable that has its value.
    fn source<'a>(&self, flag: &'a str) -> &'a str {
        self.variables.get(flag).copied().unwrap_or(flag)
    }

    /// Returns what is logged. The file is checked although a flag overrides it.
    fn log_filter(&mut self, given: Option<&Scalar>, flag: Option<&str>) -> LogFilter {
        let given = self.read("logging.level", given, LogFilter::parse);
        let flag = flag.and_then(|text| self.flag("--log-level", text, LogFilter::parse));
        flag.or(given).unwrap_or_default()
    }

    fn chunk(&mut self, given: Option<&Scalar>) -> usize {
        match self.read("chunk", given, quantity::size) {
            Some(0) => usize::MAX,
            Some(bytes) => bytes,
            None => defaults::CHUNK,
        }
    }

    fn count(&mut self, name: &str, given: Option<&Scalar>, usual: usize) -> usize {
        let given = self.read(&format!("limits.{name}"), given, quantity::count);
        given.unwrap_or(usual)
    }

    /// Reads a size that is off, or at least `least`.
    fn size(&mut self, name: &str, given: Option<&Scalar>, usual: usize, least: usize) -> usize {
        let enough = |text: &str| match quantity::size(text)? {
            0 => Ok(0),
            bytes if bytes < least => Err(format!(
                "with {bytes} bytes no peer could be served; write a unit, or at least {least} (0 = off)"
            )),
            bytes => Ok(bytes),
        };
        let given = self.read(&format!("limits.{name}"), given, enough);
        given.unwrap_or(usual)
    }

    fn limits(&mut self, limits: &shape::LimitsShape) -> Limits {
        let usual = Limits::default();
        macro_rules! count {
            ($name:ident) => {
                self.count(stringify!($name), limits.$name.as_ref(), usual.$name)
            };
        }
        macro_rules! size {
            ($name:ident, $least:expr) => {
                self.size(stringify!($name), limits.$name.as_ref(), usual.$name, $least)
            };
        }
        let memory = self.read("limits.memory", limits.memory.as_ref(), memory);
        let memory = memory.unwrap_or(usual.memory);
        let subscriptions = self.read("limits.subscriptions", limits.subscriptions.as_ref(), subscriptions);
        let request = size!(request, MESSAGE_LEAST);
        self.fits(memory, request, limits.memory.as_ref());
        Limits {
            connections: count!(connections),
            connections_per_identity: count!(connections_per_identity),
            streams: count!(streams),
            streams_per_identity: count!(streams_per_identity),
            new_streams_per_second: count!(new_streams_per_second),
            subscriptions: subscriptions.unwrap_or(usual.subscriptions),
            streams_per_connection: count!(streams_per_connection),
            types_per_stream: count!(types_per_stream),
            names_per_stream: count!(names_per_stream),
            name_bytes: size!(name_bytes, NAME_LEAST),
            window_bytes: size!(window_bytes, 0),
            node_bytes: size!(node_bytes, NODE_LEAST),
            memory,
            request,
            upstream_message: size!(upstream_message, MESSAGE_LEAST),
            requests_per_second: count!(requests_per_second),
            handshakes: count!(handshakes),
            views: count!(views),
            names_per_view: count!(names_per_view),
            pinned_bytes_per_view: size!(pinned_bytes_per_view, 0),
        }
    }

    /// Warns if a few large requests take all memory that there may be.
    fn fits(&mut self, memory: MemoryLimit, request: usize, given: Option<&Scalar>) {
        let MemoryLimit::Bytes(bytes @ 1..) = memory else {
            return;
        };
        if request == 0 || request > bytes / 2 {
            let message = "two unfinished requests of the size in limits.request (0 = any) could take all of it; lower that limit";
            self.warn(given.map(|given| given.place), "limits.memory", message);
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
            move_after: read("move", &timers.move_after).unwrap_or(usual.move_after),
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
        }
    }
}

/// Reads `auto` or a size.
fn subscriptions(text: &str) -> Result<Option<usize>, String> {
    if text == "auto" {
        return Ok(None);
    }
    let count = quantity::count(text).map(Some);
    count.map_err(|message| message.replacen("write a", "write auto or a", 1))
}

fn memory(text: &str) -> Result<MemoryLimit, String> {
    if text == "auto" {
        return Ok(MemoryLimit::Auto);
    }
    match quantity::size(text) {
        Ok(bytes) if bytes > 0 && bytes < MEMORY_LEAST => Err(format!(
            "in {bytes} bytes the relay could not serve anybody; write auto, a unit, or at least {MEMORY_LEAST} (0 = off)"
        )),
        Ok(bytes) => Ok(MemoryLimit::Bytes(bytes)),
        Err(message) => Err(message.replacen("write bytes or", "write auto, bytes or", 1)),
    }
}
