//! Which of an authority's servers one session reads: A71 and A95, decided for each session by itself (G-17).
//!
//! Owns the choice and its reasons. Refuses to know views and streams: how each server stands comes in as a [`Look`].

use std::time::{Duration, Instant};

use crate::xds::ServerState;

/// One authority of one session: the servers that it watches, and the one that it is bound to.
///
/// Servers are numbered by priority. Those from the first to the last watched one are all watched: higher ones so that the
/// session can return (G-07), lower ones so that it can move once they hold what it wants.
///
/// - A, facts: `bound`, `watched`, `at_rest`.
/// - B, inputs: `handle_looks`, until it says that there is nothing to do.
/// - D, outputs: `poll_timeout`.
#[derive(Clone, Debug)]
pub struct Fallback {
    servers: usize,
    reachability_only: bool,
    patience: Duration,
    bound: usize,
    watched: usize,
    /// Since when a better server answers again without holding all that the session wants.
    better_since: Option<Instant>,
    /// Since when a lower server answers without holding all that the session wants.
    other_since: Option<Instant>,
}

/// What a session sees of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// How it stands with the server.
    pub server_state: ServerState,
    /// Whether the session wants anything of which the server's view knows nothing.
    pub lacks: bool,
    /// Whether the server has answered on its present stream for every type that the session wants.
    pub fresh: bool,
}

/// What follows from the looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The first so many servers are watched from now on.
    Watch(usize),
    /// The session reads this server's view from now on.
    Bind(usize),
}

impl Fallback {
    /// G-01: bound to the first of so many servers. With `reachability_only` a failure is enough to leave a server (G-04).
    /// `patience` is how long a server that answers may lack something before a session moves there all the same.
    #[must_use]
    pub const fn new(servers: usize, reachability_only: bool, patience: Duration) -> Self {
        Self {
            servers,
            reachability_only,
            patience,
            bound: 0,
            watched: 1,
            better_since: None,
            other_since: None,
        }
    }

    /// How long a server that answers may lack something before a session moves there all the same.
    #[must_use]
    pub const fn patience(&self) -> Duration {
        self.patience
    }

    /// The server whose view is read.
    #[must_use]
    pub const fn bound(&self) -> usize {
        self.bound
    }

    /// How many servers are watched.
    #[must_use]
    pub const fn watched(&self) -> usize {
        self.watched
    }

    /// Whether only a failure of the first server can change anything.
    #[must_use]
    pub const fn at_rest(&self) -> bool {
        self.watched == 1
    }

    /// What to do next, given one look at each watched server. `delivered`: whether the client was sent anything.
    pub fn handle_looks(&mut self, looks: &[Look], delivered: bool, now: Instant) -> Option<Step> {
        let here = *looks.get(self.bound)?;
        if let Some(better) = self.better(looks, delivered, now) {
            return Some(self.bind(better));
        }
        // G-03, G-04: a failure alone moves nobody who lacks nothing, unless reachability is all that counts. What was
        // received stays good (G-09).
        if here.server_state != ServerState::Failing || !(self.reachability_only || here.lacks) {
            self.other_since = None;
            return self.watch(self.bound + 1);
        }
        if let Some(other) = self.other(looks, delivered, now) {
            return Some(self.bind(other));
        }
        // G-10: only the failure of the lowest watched server leads further down. G-06: one that is known to fail does at once.
        let lowest = looks.get(self.watched - 1)?;
        let deeper = usize::from(lowest.server_state == ServerState::Failing && self.watched < self.servers);
        self.watch(self.watched + deeper)
    }

    /// When `handle_looks` is due again, whatever happens.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let since = self.better_since.into_iter().chain(self.other_since);
        since.min().and_then(|since| since.checked_add(self.patience))
    }

    /// G-08: a server of higher priority that answers again and holds all that the session wants, or has had its time.
    fn better(&mut self, looks: &[Look], delivered: bool, now: Instant) -> Option<usize> {
        let above = looks.get(..self.bound)?;
        let ready = |look: &Look| look.server_state == ServerState::Up && look.fresh && !look.lacks;
        choose(above, ready, &mut self.better_since, self.patience, delivered, now)
    }

    /// A lower server that holds all that the session wants, or has had its time.
    fn other(&mut self, looks: &[Look], delivered: bool, now: Instant) -> Option<usize> {
        let below = looks.get(self.bound + 1..)?;
        let ready = |look: &Look| look.server_state == ServerState::Up && !look.lacks;
        let chosen = choose(below, ready, &mut self.other_since, self.patience, delivered, now)?;
        Some(self.bound + 1 + chosen)
    }

    fn bind(&mut self, server: usize) -> Step {
        self.bound = server;
        self.better_since = None;
        self.other_since = None;
        Step::Bind(server)
    }

    fn watch(&mut self, watched: usize) -> Option<Step> {
        (std::mem::replace(&mut self.watched, watched) != watched).then_some(Step::Watch(watched))
    }
}

/// The first server that is ready; or the first that answers, if the client holds nothing yet that could be torn, or `patience`
/// is over.
fn choose(
    looks: &[Look],
    ready: impl Fn(&Look) -> bool,
    since: &mut Option<Instant>,
    patience: Duration,
    delivered: bool,
    now: Instant,
) -> Option<usize> {
    let Some(answers) = looks.iter().position(|look| look.server_state == ServerState::Up) else {
        *since = None;
        return None;
    };
    let begun = *since.get_or_insert(now);
    let waited = !delivered || now >= begun + patience;
    looks.iter().position(ready).or(waited.then_some(answers))
}
