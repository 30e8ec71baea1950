//! The state of every control plane, as text and as JSON.
//!
//! Owns the text of `/clusters`, and what its JSON says; the form of that is in `answers`. Does not collect the state: the caller
//! that starts the admin address supplies it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use crate::answers::{self, Authority, OfType};
use crate::census::{Cached, Standings};
use crate::clock::WallClock;
use crate::telemetry::Metrics;
use crate::xds::{TypeUrl, authority_label, printable};

/// How many servers that were not reached are named in an answer of one line, and how much of the error of each.
const REASONS: usize = 3;
const REASON_CHARS: usize = 300;

/// All control planes: for each authority its servers, by priority.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    /// By the authority's name. The empty name stands for resource names that are not `xdstp`.
    pub authorities: BTreeMap<String, Vec<Server>>,
    /// The names of the servers that views have, by number.
    pub names: BTreeMap<usize, String>,
    /// What is wrong with the relay's own files now: its configuration, certificates, and keys for tokens.
    pub faults: Vec<String>,
}

/// The state of one server for one authority, over all views of it. A server in several lists shows the same resources in each.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its name in logs and metrics.
    pub uri: String,
    /// Its state.
    pub state: State,
    /// Since when it has that state.
    pub since: Option<Instant>,
    /// The last error, until the server answers again.
    pub last_error: Option<String>,
    /// The time of its last response. A control plane with streams responds only when something has changed.
    pub last_success: Option<Instant>,
    /// The time of the next attempt to connect.
    pub next_attempt: Option<Instant>,
    /// The number of open streams to it.
    pub streams: usize,
    /// The number of streams that it refused at the last attempt, and the number of all streams.
    pub refused: (usize, usize),
    /// The dialects used towards it.
    pub dialects: BTreeMap<&'static str, Spoken>,
    /// The types for which it ends streams, with its error texts. Each of them is requested on a stream of its own.
    pub suspected: BTreeMap<String, String>,
    /// The types that clients want but that are not requested from it, with the reasons.
    pub unserved: BTreeMap<String, String>,
    /// The number of sessions that get the authority's resources from it.
    pub sessions: usize,
    /// The number of sessions that get them from another server, and wait for this one.
    pub watching: usize,
    /// The resources that the relay holds from it, by type.
    pub types: BTreeMap<String, Held>,
    /// The resources that it has not sent.
    pub lacking: Lacking,
}

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No client needs it.
    Unused,
    /// The relay is connecting to it.
    Connecting,
    /// A stream is open, without a response yet.
    Connected,
    /// It responds.
    Answering,
    /// It cannot be reached.
    Unreachable,
}

/// The resources that the relay holds of one type.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// The number of resources.
    pub resources: usize,
    /// Whether some come from a snapshot, and the server has not confirmed them yet.
    pub restored: bool,
    /// Whether some are not confirmed: the server is away, or they come from a snapshot.
    pub stale: bool,
}

/// A dialect used towards a server.
#[derive(Clone, Debug, Default)]
pub struct Spoken {
    /// The number of open streams in this dialect.
    pub streams: usize,
    /// Why this dialect is used.
    pub reason: String,
}

/// The resources that sessions want and the server has not sent.
#[derive(Clone, Debug, Default)]
pub struct Lacking {
    /// The number of sessions that wait.
    pub sessions: usize,
    /// The number of names and wildcards.
    pub count: usize,
    /// Some of them.
    pub some: Vec<String>,
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
    #[must_use]
    pub fn look(&self) -> Clusters {
        (self.look)()
    }

    /// Sets the metrics of names, which are only counted when somebody reads them.
    pub fn count_names(&self, metrics: &Metrics) {
        let names = (self.count)().into_iter();
        metrics.show_names(names.map(|((authority, cached, name), count)| (authority, cached.word(), name, count)));
    }
}

impl std::fmt::Debug for Overview {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Overview")
    }
}

impl State {
    pub(super) const fn word(self) -> &'static str {
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
            .filter_map(|server| Some((&server.uri, server.last_error.as_ref()?)));
        let reason = |(uri, error): (&String, &String)| {
            let said: String = error.chars().take(REASON_CHARS).collect();
            printable(&format!("{uri}: {said}")).into_owned()
        };
        failed.take(REASONS).map(reason).collect()
    }

    /// Returns one line for each fact, in Envoy's form: `authority::server::key::value`.
    #[must_use]
    pub fn text(&self, clock: WallClock, clients: &Standings) -> String {
        let mut text = String::new();
        for (authority, servers) in &self.authorities {
            for (priority, server) in servers.iter().enumerate() {
                let name = authority_label(authority);
                for (key, value) in server.facts(priority, clock) {
                    let fact = format!("{name}::{}::{key}::{value}", server.uri);
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
    #[must_use]
    pub fn json(&self, clock: WallClock, clients: &Standings) -> Value {
        let authorities = self.authorities.iter().map(|(name, servers)| Authority {
            name: name.clone(),
            servers: servers.iter().map(|server| server.answer(clock)).collect(),
        });
        json!(answers::Clusters {
            authorities: authorities.collect(),
            faults: self.faults.clone(),
            clients: Some(clients.answer(clock)),
        })
    }
}

impl Server {
    fn facts(&self, priority: usize, clock: WallClock) -> Vec<(String, String)> {
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

    fn answer(&self, clock: WallClock) -> answers::Server {
        let time = |at: Option<Instant>| at.map(|at| clock.time(at));
        let types = self.types.iter().map(|(name, held)| {
            let (resources, stale) = (held.resources, held.stale);
            (name.clone(), OfType { resources, stale })
        });
        let dialects = self.dialects.iter().map(|(name, spoken)| {
            let (streams, reason) = (spoken.streams, spoken.reason.clone());
            ((*name).to_owned(), answers::Spoken { streams, reason })
        });
        answers::Server {
            server: self.uri.clone(),
            state: self.state.word().to_owned(),
            since: time(self.since),
            last_error: self.last_error.clone(),
            next_attempt: time(self.next_attempt),
            last_success: time(self.last_success),
            streams: self.streams,
            refused: self.refused.0,
            dialects: dialects.collect(),
            suspected: self.suspected.clone(),
            unserved: self.unserved.clone(),
            sessions: self.sessions,
            watching: self.watching,
            types: types.collect(),
            lacking: answers::Lacking {
                sessions: self.lacking.sessions,
                count: self.lacking.count,
                some: self.lacking.some.clone(),
            },
            why: self.why(clock),
        }
    }

    /// Returns the state and its reasons, in one sentence.
    #[must_use]
    pub fn why(&self, clock: WallClock) -> String {
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
            let (one, several) = (
                "session has everything that it needs",
                "sessions have everything that they need",
            );
            let _ = write!(why, "; {} from it", many(self.sessions, one, several));
        }
        if self.watching > 0 {
            let (one, several) = ("session waits for it and reads", "sessions wait for it and read");
            let _ = write!(why, "; {} another server", many(self.watching, one, several));
        }
        let restored: Vec<&str> = self
            .types
            .iter()
            .filter(|(_, held)| held.restored)
            .map(|(name, _)| name.as_str())
            .collect();
        if !restored.is_empty() {
            let _ = write!(why, "; resources from a snapshot: {}", restored.join(", "));
        }
        why
    }
}

fn many(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

#[cfg(test)]
mod tests;
