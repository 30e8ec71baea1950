//! How it stands with every control plane, in words and as JSON.
//!
//! Owns the form of `/clusters`. Refuses to find anything out: whoever starts the admin address says what to show.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::cached::Cached;
use super::clock::Clock;
use crate::xds::TypeUrl;

/// All control planes: for each authority its servers, by priority.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    /// By the authority's name; the empty one is that of names of old style.
    pub authorities: BTreeMap<String, Vec<Server>>,
    /// How many names there are in each state, of each type under each authority.
    pub resources: BTreeMap<(String, Cached, TypeUrl), usize>,
}

/// One server as it stands for one authority, over all views of it. One of several lists shows the same resources in each.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its name in logs and metrics.
    pub uri: String,
    /// How it stands with it.
    pub state: State,
    /// Since when.
    pub since: Option<Instant>,
    /// What went wrong last, until it answers.
    pub last_error: Option<String>,
    /// When it last answered; a control plane that streams only does so when there is news.
    pub last_success: Option<Instant>,
    /// When it is tried again.
    pub next_attempt: Option<Instant>,
    /// How many streams to it are open.
    pub streams: usize,
    /// How many streams it refused the last time, and of how many.
    pub refused: (usize, usize),
    /// The dialects that it is asked in.
    pub dialects: BTreeMap<&'static str, Spoken>,
    /// The types for which it ends streams, and in what words; each is asked for apart from the others.
    pub suspected: BTreeMap<String, String>,
    /// The types that clients want and that it is not asked for, and why.
    pub unserved: BTreeMap<String, String>,
    /// How many sessions read what it says of the authority's names.
    pub sessions: usize,
    /// How many sessions read another server for them, and wait for this one.
    pub watching: usize,
    /// What is held of it, by type.
    pub types: BTreeMap<String, Held>,
    /// What it has not said.
    pub lacking: Lacking,
}

/// How it stands with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody wants anything of it.
    Unused,
    /// It is being tried.
    Connecting,
    /// There is a stream, without an answer yet.
    Connected,
    /// It answers.
    Answering,
    /// It cannot be reached.
    Unreachable,
}

/// What is held of one type.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// How many resources.
    pub resources: usize,
    /// Whether it is what a snapshot said, on which the server has not spoken yet.
    pub stale: bool,
}

/// A dialect that a server is asked in.
#[derive(Clone, Debug, Default)]
pub struct Spoken {
    /// On how many open streams.
    pub streams: usize,
    /// Why it is this one.
    pub reason: String,
}

/// What sessions want and nobody has said.
#[derive(Clone, Debug, Default)]
pub struct Lacking {
    /// How many sessions.
    pub sessions: usize,
    /// How many names and wildcards.
    pub count: usize,
    /// Some of them.
    pub some: Vec<String>,
}

/// Finds out how it stands now.
#[derive(Clone)]
pub struct Overview(Arc<dyn Fn() -> Clusters + Send + Sync>);

impl Overview {
    /// What this finds out.
    #[must_use]
    pub fn new(look: impl Fn() -> Clusters + Send + Sync + 'static) -> Self {
        Self(Arc::new(look))
    }

    /// How it stands now.
    #[must_use]
    pub fn look(&self) -> Clusters {
        (self.0)()
    }
}

impl std::fmt::Debug for Overview {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Overview")
    }
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Answering => "answering",
            Self::Unreachable => "unreachable",
        }
    }
}

impl Clusters {
    /// One line for each fact, as Envoy has them: `authority::server::key::value`.
    #[must_use]
    pub fn text(&self, clock: Clock) -> String {
        let mut text = String::new();
        for (authority, servers) in &self.authorities {
            for (priority, server) in servers.iter().enumerate() {
                let name = if authority.is_empty() { OLD_STYLE } else { authority };
                for (key, value) in server.facts(priority, clock) {
                    let _ = writeln!(text, "{name}::{}::{key}::{value}", server.uri);
                }
            }
        }
        text
    }

    /// The same for programs.
    #[must_use]
    pub fn json(&self, clock: Clock) -> Value {
        let authorities = self.authorities.iter().map(|(name, servers)| {
            let servers: Vec<Value> = servers.iter().map(|server| server.json(clock)).collect();
            json!({"name": name, "servers": servers})
        });
        json!({"authorities": authorities.collect::<Vec<_>>()})
    }
}

/// What stands for the authority of names that have none, as in gRPC's metrics.
pub(super) const OLD_STYLE: &str = "#old";

impl Server {
    fn facts(&self, priority: usize, clock: Clock) -> Vec<(String, String)> {
        let time = |at: Option<Instant>| at.map(|at| clock.time(at));
        let facts = [
            ("priority", Some(priority.to_string())),
            ("state", Some(self.state.word().to_owned())),
            ("since", time(self.since)),
            ("last_error", self.last_error.clone()),
            ("next_attempt", time(self.next_attempt)),
            ("last_success", time(self.last_success)),
            ("streams", Some(self.streams.to_string())),
            ("refused", Some(self.refused.0.to_string())),
            ("sessions", Some(self.sessions.to_string())),
            ("watching", Some(self.watching.to_string())),
        ];
        let facts = facts
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let dialects = self.dialects.iter().flat_map(|(name, spoken)| {
            [
                (format!("dialect::{name}::streams"), spoken.streams.to_string()),
                (format!("dialect::{name}::reason"), spoken.reason.clone()),
            ]
        });
        let types = self.types.iter().flat_map(|(name, held)| {
            [
                (format!("{name}::resources"), held.resources.to_string()),
                (format!("{name}::stale"), held.stale.to_string()),
            ]
        });
        let why = ("why".to_owned(), self.why(clock));
        let said = |key: &'static str, types: &BTreeMap<String, String>| {
            let said = |(name, words): (&String, &String)| (format!("{key}::{name}"), words.clone());
            types.iter().map(said).collect::<Vec<_>>()
        };
        facts
            .chain(dialects)
            .chain(said("suspected", &self.suspected))
            .chain(said("unserved", &self.unserved))
            .chain(types)
            .chain([why])
            .collect()
    }

    fn json(&self, clock: Clock) -> Value {
        let time = |at: Option<Instant>| at.map(|at| clock.time(at));
        let types = self.types.iter().map(|(name, held)| {
            let held = json!({"resources": held.resources, "stale": held.stale});
            (name.clone(), held)
        });
        let dialects = self.dialects.iter().map(|(name, spoken)| {
            let spoken = json!({"streams": spoken.streams, "reason": spoken.reason});
            ((*name).to_owned(), spoken)
        });
        json!({
            "server": self.uri,
            "state": self.state.word(),
            "since": time(self.since),
            "last_error": self.last_error,
            "next_attempt": time(self.next_attempt),
            "last_success": time(self.last_success),
            "streams": self.streams,
            "refused": self.refused.0,
            "dialects": dialects.collect::<serde_json::Map<_, _>>(),
            "suspected": self.suspected,
            "unserved": self.unserved,
            "sessions": self.sessions,
            "watching": self.watching,
            "types": types.collect::<serde_json::Map<_, _>>(),
            "lacking": {
                "sessions": self.lacking.sessions,
                "count": self.lacking.count,
                "some": self.lacking.some,
            },
            "why": self.why(clock),
        })
    }

    /// Why it is as it is, in one sentence.
    #[must_use]
    pub fn why(&self, clock: Clock) -> String {
        let mut why = format!("{} {}", self.uri, self.state.word());
        if let Some(since) = self.since {
            let _ = write!(why, " since {}", clock.short(since));
        }
        if let Some(error) = &self.last_error {
            let _ = write!(why, " ({error})");
        }
        if let (refused @ 1.., all) = self.refused {
            let _ = write!(why, "; {refused} of {} refused", many(all, "stream", "streams"));
        }
        let lacking = &self.lacking;
        if lacking.count > 0 {
            let _ = write!(
                why,
                "; {} that it never sent: {}",
                many(lacking.sessions, "session needs", "sessions need")
                    + &format!(" {}", many(lacking.count, "resource", "resources")),
                lacking.some.join(", ")
            );
            if lacking.some.len() < lacking.count {
                let _ = write!(why, " and {} more", lacking.count - lacking.some.len());
            }
        } else if self.sessions > 0 {
            let reads = many(self.sessions, "session has", "sessions have");
            let _ = write!(why, "; {reads} all that they want of it");
        }
        if self.watching > 0 {
            let waits = many(self.watching, "session waits", "sessions wait");
            let _ = write!(why, "; {waits} for it and read another server");
        }
        let stale: Vec<&str> = self
            .types
            .iter()
            .filter(|(_, held)| held.stale)
            .map(|(name, _)| name.as_str())
            .collect();
        if !stale.is_empty() {
            let _ = write!(why, "; what is served of {} is from a snapshot", stale.join(", "));
        }
        why
    }
}

fn many(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

#[cfg(test)]
mod tests;
