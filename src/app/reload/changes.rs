// SPDX-License-Identifier: Apache-2.0
//! What differs between two configurations, and when each difference takes effect.
//!
//! Owns which keys are told together: a new section does not compile before it has a line here. When a key takes effect is in its row, and
//! what it does then in `live`.

use std::fmt::{self, Debug};

use crate::config::{Config, Effect, Limits, Listener, ListenerTls, Reference, Timers};

/// What differs, and when it takes effect.
#[derive(Debug, Default)]
pub(super) struct ChangedKeys {
    reference: Reference,
    all: Vec<ChangedKey>,
}

#[derive(Debug)]
struct ChangedKey {
    key: String,
    effect: Effect,
    /// The earlier and the new value, if they are short.
    values: Option<(String, String)>,
}

impl ChangedKeys {
    /// Returns what differs, and moves all that can change while the relay runs from `new` to `running`.
    pub(super) fn adopt(running: &mut Config, new: &Config) -> Self {
        let mut changes = Self::default();
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
        changes.compare("node", node, &new.node, false);
        changes.listeners(listeners, &new.listeners);
        changes.compare("jwt", issuers, &new.issuers, false);
        changes.compare("admin", admin, &new.admin, false);
        changes.tls("admin.tls", admin_tls, &new.admin_tls);
        changes.compare("admin.rules", admin_rules, &new.admin_rules, false);
        changes.compare("admin.hosts", admin_hosts, &new.admin_hosts, false);
        changes.compare("probes", probes, &new.probes, false);
        changes.compare("upstream", upstream, &new.upstream, false);
        changes.compare("classes", classes, &new.classes, false);
        changes.compare("rules or secrets", access, &new.access, false);
        changes.section("limits", limits, &new.limits, Limits::cells);
        changes.section("timers", timers, &new.timers, Timers::cells);
        changes.compare("guard", guard, &new.guard, false);
        changes.compare("chunk", chunk, &new.chunk, false);
        changes.compare("transport_v2", transport_v2, &new.transport_v2, true);
        changes.compare("anonymous", anonymous, &new.anonymous, true);
        changes.compare("types", types, &new.types, false);
        changes.compare("descriptors", descriptors, &new.descriptors, false);
        changes.compare("snapshot", snapshot, &new.snapshot, false);
        changes.compare("logging.level", log_filter, &new.log_filter, true);
        changes.compare("unknown_fields", lenient_files, &new.lenient_files, false);
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
            self.tls(&key("tls"), tls, &new.tls);
            self.compare(&key("proxy_protocol"), proxies, &new.proxies, false);
            let required = &new.requires_identity;
            self.compare(&key("require"), requires_identity, required, false);
            self.compare(&key("mode, owner or group"), file, &new.file, false);
        }
        if gone || !left.is_empty() {
            self.push("listeners", Effect::Restart, None);
        }
    }

    /// Compares the rows of a section, all of which can change while the relay runs.
    fn section<S: Clone>(
        &mut self,
        name: &str,
        running: &mut S,
        new: &S,
        cells: fn(&S) -> Vec<(&'static str, String)>,
    ) {
        for ((key, before), (_, after)) in cells(running).into_iter().zip(cells(new)) {
            if before != after {
                let key = format!("{name}.{key}");
                let effect = self.reference.effect(&key);
                self.push(&key, effect, Some((before, after)));
            }
        }
        running.clone_from(new);
    }

    /// Whether a listener has TLS cannot change, because its clients would have to change in the same moment.
    fn tls(&mut self, key: &str, running: &mut Option<ListenerTls>, new: &Option<ListenerTls>) {
        if running.is_some() == new.is_some() {
            self.compare(key, running, new, false);
        } else {
            self.push(key, Effect::Restart, None);
        }
    }

    fn compare<T: Clone + PartialEq + Debug>(&mut self, key: &str, running: &mut T, new: &T, shown: bool) {
        if running == new {
            return;
        }
        let effect = self.reference.effect(key);
        self.push(key, effect, shown.then(|| (format!("{running:?}"), format!("{new:?}"))));
        if effect != Effect::Restart {
            running.clone_from(new);
        }
    }

    fn push(&mut self, key: &str, effect: Effect, values: Option<(String, String)>) {
        self.all.push(ChangedKey {
            key: key.to_owned(),
            effect,
            values,
        });
    }

    /// Whether nothing differs.
    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether anything takes effect without a restart.
    pub(super) fn any_live(&self) -> bool {
        self.all.iter().any(|change| change.effect != Effect::Restart)
    }

    /// Returns the keys that wait for a restart.
    pub(super) fn waiting(&self) -> Vec<&str> {
        let waiting = self.all.iter().filter(|change| change.effect == Effect::Restart);
        waiting.map(|change| &*change.key).collect()
    }

    /// Returns the keys that differ.
    pub(super) fn keys(&self) -> Vec<&str> {
        self.all.iter().map(|change| &*change.key).collect()
    }
}

impl fmt::Display for ChangedKeys {
    /// Writes one line for each change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ChangedKey { key, effect, values } in &self.all {
            match values {
                Some((before, after)) => writeln!(f, "{key}: {before} -> {after} ({effect})")?,
                None => writeln!(f, "{key}: changed ({effect})")?,
            }
        }
        Ok(())
    }
}
