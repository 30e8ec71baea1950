// SPDX-License-Identifier: Apache-2.0
//! The state of every control plane, as text and as JSON.
//!
//! Owns the text of `/clusters`, and what its JSON says; the form of that is in `answers`. Does not collect the state: the caller
//! that starts the admin address supplies it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use crate::answers::{self, AuthorityRow, ServerRow};
use crate::census::{Cached, Standings};
use crate::clock::WallClock;
use crate::telemetry::Metrics;
use crate::xds::{TypeUrl, authority_label, printable, worded};

/// How many servers that were not reached are named in an answer of one line, and how much of the error of each.
const REASONS: usize = 3;
const REASON_CHARS: usize = 300;

/// All control planes: for each authority its servers, by priority.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    /// By the authority's name. The empty name stands for resource names that are not `xdstp`. A server in several lists shows the
    /// same resources in each.
    pub(crate) authorities: BTreeMap<String, Vec<ServerRow>>,
    /// The names of the servers that views have, by number.
    pub names: BTreeMap<usize, String>,
    /// What is wrong with the relay's own files now: its configuration, certificates, and keys for tokens.
    pub faults: Vec<String>,
}

worded! {
/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No client needs it.
    Unused = "unused",
    /// The relay is connecting to it.
    Connecting = "connecting",
    /// A stream is open, without a response yet.
    Connected = "connected",
    /// It responds.
    Answering = "answering",
    /// It cannot be reached.
    Unreachable = "unreachable",
}
}

/// How many names there are, by authority, by what the relay knows of them, and by type.
pub type NameCounts = BTreeMap<(String, Cached, TypeUrl), usize>;

/// Collects the current state.
#[derive(Clone)]
pub struct Overview {
    look: Arc<dyn Fn() -> Clusters + Send + Sync>,
    count: Arc<dyn Fn() -> NameCounts + Send + Sync>,
}

impl Overview {
    /// Creates an overview whose state `look` collects. `count` goes through all names: it takes longer the more there are.
    #[must_use]
    pub fn new(
        look: impl Fn() -> Clusters + Send + Sync + 'static,
        count: impl Fn() -> NameCounts + Send + Sync + 'static,
    ) -> Self {
        Self {
            look: Arc::new(look),
            count: Arc::new(count),
        }
    }

    /// Returns the current state.
    pub fn look(&self) -> Clusters {
        (self.look)()
    }

    /// Sets the metrics of names, which are only counted when somebody reads them.
    pub fn count_names(&self, metrics: &Metrics) {
        let names = (self.count)().into_iter();
        metrics
            .upstreams
            .show_names(names.map(|((authority, cached, name), count)| (authority, cached.word(), name, count)));
    }
}

impl Clusters {
    /// Returns why no server was reached for names without an authority, or none of a source, as far as it is known: the first of them
    /// with their errors. `missing` are the lists of which none was reached; without it, all are.
    pub(super) fn reasons(&self, missing: Option<&BTreeSet<String>>) -> Vec<String> {
        let needed = self.authorities.iter();
        let needed = needed.filter(|(name, _)| match missing {
            Some(missing) => missing.contains(*name),
            None => name.is_empty() || name.starts_with('#'),
        });
        let failed = needed
            .flat_map(|(_, servers)| servers)
            .filter_map(|server| Some((&server.server, server.last_error.as_ref()?)));
        let reason = |(uri, error): (&String, &String)| {
            let said: String = error.chars().take(REASON_CHARS).collect();
            printable(&format!("{uri}: {said}")).into_owned()
        };
        failed.take(REASONS).map(reason).collect()
    }

    /// Returns one line for each fact, in Envoy's form: `authority::server::key::value`.
    pub fn text(&self, clients: &Standings) -> String {
        let mut text = String::new();
        for (authority, servers) in &self.authorities {
            for (priority, server) in servers.iter().enumerate() {
                let name = authority_label(authority);
                let mut facts = vec![("priority".to_owned(), priority.to_string())];
                tell("", &json!(server), &mut facts);
                for (key, value) in facts {
                    let fact = format!("{name}::{}::{key}::{value}", server.server);
                    let _ = writeln!(text, "{}", printable(&fact));
                }
            }
        }
        for fault in &self.faults {
            let _ = writeln!(text, "#relay::fault::{}", printable(fault));
        }
        let _ = writeln!(text, "#relay::clients::{}", clients.words());
        text
    }

    /// Returns the same as JSON.
    pub fn json(&self, clock: WallClock, clients: &Standings) -> Value {
        let authorities = self.authorities.iter().map(|(name, servers)| AuthorityRow {
            name: name.clone(),
            servers: servers.clone(),
        });
        json!(answers::ClusterList {
            authorities: authorities.collect(),
            faults: self.faults.clone(),
            clients: Some(clients.answer(clock)),
        })
    }
}

/// Adds what is to be said of a server, as keys and values: what its answer says, but its names, and what it lacks, of which `why` tells.
fn tell(key: &str, value: &Value, facts: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match (key, name.as_str()) {
                    ("", "server" | "lacking") => {}
                    ("", "dialects") => tell("dialect", member, facts),
                    ("", "types") => {
                        let types = member.as_object().into_iter().flatten();
                        types.for_each(|(word, of)| tell(word, of, facts));
                    }
                    ("", name) => tell(name, member, facts),
                    (key, name) => tell(&format!("{key}::{name}"), member, facts),
                }
            }
        }
        Value::Null | Value::Array(_) => {}
        Value::String(text) => facts.push((key.to_owned(), text.clone())),
        Value::Bool(_) | Value::Number(_) => facts.push((key.to_owned(), value.to_string())),
    }
}

/// Returns the state of a server and its reasons, in one sentence: since when, and what it refused of how many streams.
pub(crate) fn why(server: &ServerRow, since: Option<Instant>, streams: usize, clock: WallClock) -> String {
    let mut why = format!("{} {}", server.server, server.state);
    if let Some(since) = since {
        let _ = write!(why, " since {}", clock.short(since));
    }
    if let Some(error) = &server.last_error {
        let _ = write!(why, " ({error})");
    }
    if server.refused > 0 {
        let _ = write!(
            why,
            "; {} of {} refused",
            server.refused,
            many(streams, "stream", "streams")
        );
    }
    let lacking = &server.lacking;
    if lacking.count > 0 {
        let sessions = many(lacking.sessions, "session needs", "sessions need");
        let resources = many(lacking.count, "resource", "resources");
        let _ = write!(
            why,
            "; {sessions} {resources} that it never sent: {}",
            lacking.some.join(", ")
        );
        if lacking.some.len() < lacking.count {
            let _ = write!(why, " and {} more", lacking.count - lacking.some.len());
        }
    } else if server.sessions > 0 {
        let (one, several) = (
            "session has everything that it needs",
            "sessions have everything that they need",
        );
        let _ = write!(why, "; {} from it", many(server.sessions, one, several));
    }
    if server.watching > 0 {
        let (one, several) = ("session waits for it and reads", "sessions wait for it and read");
        let _ = write!(why, "; {} another server", many(server.watching, one, several));
    }
    let restored = server.types.iter().filter(|(_, held)| held.restored);
    let restored: Vec<&str> = restored.map(|(name, _)| name.as_str()).collect();
    if !restored.is_empty() {
        let _ = write!(why, "; resources from a snapshot: {}", restored.join(", "));
    }
    why
}

fn many(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

#[cfg(test)]
mod tests;
