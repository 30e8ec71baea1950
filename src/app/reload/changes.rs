//! What differs between two configurations, and when each difference takes effect.
//!
//! Owns this for every key: a new key does not compile before it has a line here. What a key does when it takes effect is in
//! `live`.

use std::borrow::Cow;
use std::fmt::{self, Debug};

use crate::config::{Config, Limits, Listener, ListenerTls, Timers};

/// What differs, and when it takes effect.
#[derive(Debug, Default)]
pub(super) struct Changes(Vec<Change>);

#[derive(Debug)]
struct Change {
    key: Cow<'static, str>,
    effect: Effect,
    /// The earlier and the new value, if they are short.
    values: Option<(String, String)>,
}

/// When a changed setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// As soon as it is read.
    Now,
    /// For connections and streams of clients that begin after it was read.
    Next,
    /// When the relay starts again.
    Restart,
}

use Effect::{Next, Now, Restart};

macro_rules! compare {
    ($changes:ident, $name:literal: $($effect:ident { $($key:ident)* })*) => {
        $($($changes.compare(concat!($name, ".", stringify!($key)), $effect, $key.0, $key.1, true);)*)*
    };
}

impl Changes {
    /// Returns what differs, and moves all that can change while the relay runs from `new` to `running`.
    pub(super) fn adopt(running: &mut Config, new: &Config) -> Self {
        let mut changes = Self::default();
        // Every key has its effect here.
        let Config {
            node,
            listeners,
            issuers,
            admin,
            admin_tls,
            admin_rules,
            admin_hosts,
            probes,
            upstream,
            classes,
            access,
            limits,
            timers,
            guard,
            verdict_after,
            chunk,
            transport_v2,
            anonymous,
            types,
            descriptors,
            snapshot,
            lenient_files,
            log_filter,
            warnings: _,
            written,
        } = running;
        // It is only shown.
        written.clone_from(&new.written);
        changes.compare("node", Restart, node, &new.node, false);
        changes.listeners(listeners, &new.listeners);
        changes.compare("jwt", Next, issuers, &new.issuers, false);
        changes.compare("admin", Restart, admin, &new.admin, false);
        changes.compare(
            "admin.tls",
            of_tls(admin_tls, &new.admin_tls),
            admin_tls,
            &new.admin_tls,
            false,
        );
        changes.compare("admin.rules", Now, admin_rules, &new.admin_rules, false);
        changes.compare("admin.hosts", Now, admin_hosts, &new.admin_hosts, false);
        changes.compare("probes", Restart, probes, &new.probes, false);
        changes.compare("upstream", Now, upstream, &new.upstream, false);
        changes.compare("classes", Next, classes, &new.classes, false);
        changes.compare("rules or secrets", Now, access, &new.access, false);
        changes.limits(limits, &new.limits);
        changes.timers(timers, &new.timers);
        changes.compare("guard", Now, guard, &new.guard, false);
        changes.compare("verdicts", Now, verdict_after, &new.verdict_after, true);
        changes.compare("chunk", Now, chunk, &new.chunk, false);
        changes.compare("transport_v2", Restart, transport_v2, &new.transport_v2, true);
        changes.compare("anonymous", Next, anonymous, &new.anonymous, true);
        changes.compare("types", Restart, types, &new.types, false);
        changes.compare("descriptors", Restart, descriptors, &new.descriptors, false);
        changes.compare("snapshot", Restart, snapshot, &new.snapshot, false);
        changes.compare("logging.level", Now, log_filter, &new.log_filter, true);
        changes.compare("unknown_fields", Restart, lenient_files, &new.lenient_files, false);
        changes
    }

    /// Compares the listeners by address. What is bound stays; all else changes for those that connect from now on.
    fn listeners(&mut self, running: &mut [Listener], new: &[Listener]) {
        let mut left: Vec<&Listener> = new.iter().collect();
        let mut gone = false;
        for (number, listener) in running.iter_mut().enumerate() {
            let Some(at) = left.iter().position(|new| new.address == listener.address) else {
                gone = true;
                continue;
            };
            let new = left.remove(at);
            let Listener {
                address: _,
                tls,
                file,
                proxies,
                requires_identity,
            } = listener;
            let key = |part: &str| format!("listeners[{number}].{part}");
            self.compare(key("tls"), of_tls(tls, &new.tls), tls, &new.tls, false);
            self.compare(key("proxy_protocol"), Next, proxies, &new.proxies, false);
            let required = &new.requires_identity;
            self.compare(key("require"), Next, requires_identity, required, false);
            self.compare(key("mode, owner or group"), Restart, file, &new.file, false);
        }
        if gone || !left.is_empty() {
            self.0.push(Change {
                key: "listeners".into(),
                effect: Restart,
                values: None,
            });
        }
    }

    #[rustfmt::skip]
    fn limits(&mut self, running: &mut Limits, new: &Limits) {
        macro_rules! both {
            ($($key:ident)*) => {
                let Limits { $($key,)* } = running;
                $(let $key = ($key, &new.$key);)*
            };
        }
        both!(connections connections_per_identity streams streams_per_identity new_streams_per_second subscriptions
            streams_per_connection types_per_stream names_per_stream name_bytes window_bytes node_bytes memory request upstream_message
            requests_per_second handshakes views names_per_view pinned_bytes_per_view
            history_bytes);
        compare!(self, "limits":
            Now { connections connections_per_identity streams streams_per_identity new_streams_per_second subscriptions memory views
                names_per_view pinned_bytes_per_view history_bytes }
            Next { handshakes streams_per_connection types_per_stream names_per_stream name_bytes window_bytes node_bytes request requests_per_second
                upstream_message });
    }

    #[rustfmt::skip]
    fn timers(&mut self, running: &mut Timers, new: &Timers) {
        macro_rules! both {
            ($($key:ident)*) => {
                let Timers { $($key,)* } = running;
                $(let $key = ($key, &new.$key);)*
            };
        }
        both!(linger does_not_exist unanswered move_after wildcard_quiet order_gate removal_quiet write_stall keepalive stream_age
            stream_age_jitter rest_poll rest_interval reconnect_max drain_announce drain);
        self.compare("timers.move", Next, move_after.0, move_after.1, true);
        compare!(self, "timers":
            Now { drain_announce drain }
            Next { linger does_not_exist unanswered wildcard_quiet order_gate removal_quiet write_stall keepalive stream_age
                stream_age_jitter rest_poll rest_interval reconnect_max });
    }

    fn compare<T: Clone + PartialEq + Debug>(
        &mut self,
        key: impl Into<Cow<'static, str>>,
        effect: Effect,
        running: &mut T,
        new: &T,
        shown: bool,
    ) {
        if running == new {
            return;
        }
        self.0.push(Change {
            key: key.into(),
            effect,
            values: shown.then(|| (format!("{running:?}"), format!("{new:?}"))),
        });
        if effect != Restart {
            running.clone_from(new);
        }
    }

    /// Whether nothing differs.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether anything takes effect without a restart.
    pub(super) fn any_live(&self) -> bool {
        self.0.iter().any(|change| change.effect != Restart)
    }

    /// Returns the keys that wait for a restart.
    pub(super) fn waiting(&self) -> Vec<&str> {
        let waiting = self.0.iter().filter(|change| change.effect == Restart);
        waiting.map(|change| &*change.key).collect()
    }

    /// Returns the keys that differ.
    pub(super) fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|change| &*change.key).collect()
    }
}

/// Whether a listener has TLS cannot change, because its clients would have to change in the same moment.
const fn of_tls(running: &Option<ListenerTls>, new: &Option<ListenerTls>) -> Effect {
    if running.is_some() == new.is_some() {
        Next
    } else {
        Restart
    }
}

impl fmt::Display for Changes {
    /// Writes one line for each change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Change { key, effect, values } in &self.0 {
            let when = match effect {
                Now => "at once",
                Next => "for new connections and streams",
                Restart => "needs a restart",
            };
            match values {
                Some((before, after)) => writeln!(f, "{key}: {before} -> {after} ({when})")?,
                None => writeln!(f, "{key}: changed ({when})")?,
            }
        }
        Ok(())
    }
}
