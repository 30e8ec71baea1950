// SPDX-License-Identifier: Apache-2.0
//! Which of an authority's servers one session reads: A71 and A95, decided for each session by itself (G-17).
//!
//! Owns the choice and its reasons. Knows nothing of views and streams: the state of each server comes in as a [`Look`].

use std::time::{Duration, Instant};

use xds::ServerState;

/// The fallback of one session within one authority: the servers that it watches, and the one that it is bound to.
///
/// Servers are numbered by priority. The session watches all servers from the first to the last watched one: higher ones so that
/// it can return (G-07), lower ones so that it can move once they hold what it wants.
///
/// - A, facts: `bound`, `watched`, `at_rest`.
/// - B, inputs: `handle_looks`, to be called until it returns `None`.
/// - D, outputs: `poll_timeout`.
#[derive(Clone, Debug)]
pub struct Fallback {
    servers: usize,
    reachability_only: bool,
    /// Whether the first server does not count any more: the session reads it only until another one can serve it.
    leaving: bool,
    patience: Duration,
    bound: usize,
    watched: usize,
    /// Since when another server answers, which does not hold everything that the session wants.
    since: Option<Instant>,
}

/// What a session sees of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The state of the server.
    pub server_state: ServerState,
    /// Whether the session wants anything that the server's view does not know.
    pub lacks: bool,
    /// Whether the server has answered for every type that the session wants, on its present stream.
    pub fresh: bool,
}

impl Look {
    /// What counts for a server that the session must leave.
    pub const LEFT: Self = Self {
        server_state: ServerState::Failing,
        lacks: true,
        fresh: false,
    };
}

/// What the session does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// From now on the session watches this many servers, from the first.
    Watch(usize),
    /// From now on the session reads this server's view.
    Bind(usize),
}

impl Fallback {
    /// G-01: creates a fallback over this many servers, bound to the first. With `reachability_only`, a failure is enough to
    /// leave a server (G-04). `patience`: if a server answers but lacks something for this long, the session moves to it anyway.
    #[must_use]
    pub const fn new(servers: usize, reachability_only: bool, patience: Duration) -> Self {
        Self {
            servers,
            reachability_only,
            leaving: false,
            patience,
            bound: 0,
            watched: 1,
            since: None,
        }
    }

    /// G-21: from now on the first server, which the session reads, counts as failed and without content. The others follow by
    /// priority.
    #[must_use]
    pub const fn leave_first(mut self) -> Self {
        self.leaving = true;
        self
    }

    /// Whether the first server does not count any more.
    pub const fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// The session has left the first server: there is one less.
    pub const fn drop_first(&mut self) {
        self.leaving = false;
        self.servers -= 1;
        self.bound -= 1;
        self.watched -= 1;
    }

    /// Returns whether a failure is enough to leave a server (G-04).
    pub const fn reachability_only(&self) -> bool {
        self.reachability_only
    }

    /// Returns how long the session waits for a server that answers but lacks something; then it moves to it anyway.
    pub const fn patience(&self) -> Duration {
        self.patience
    }

    /// Returns the server whose view the session reads.
    pub const fn bound(&self) -> usize {
        self.bound
    }

    /// Returns how many servers the session watches.
    pub const fn watched(&self) -> usize {
        self.watched
    }

    /// Returns whether only a failure of the first server can change anything.
    pub const fn at_rest(&self) -> bool {
        self.watched == 1 && !self.leaving
    }

    /// Returns what to do next, given one look at each watched server. `delivered`: whether the client was sent anything.
    pub fn handle_looks(&mut self, looks: &[Look], delivered: bool, now: Instant) -> Option<Step> {
        debug_assert!(!self.leaving || looks.first() == Some(&Look::LEFT));
        let here = *looks.get(self.bound)?;
        // G-03, G-04: after a failure, a session that lacks nothing stays, unless only reachability counts. What it received
        // stays valid (G-09).
        let leaves = here.server_state == ServerState::Failing && (self.reachability_only || here.lacks);
        if let Some(other) = self.other(looks, leaves, delivered, now) {
            (self.bound, self.since) = (other, None);
            return Some(Step::Bind(other));
        }
        if !leaves {
            return self.watch(self.bound + 1);
        }
        // G-10: the session watches one more server only if the lowest watched one fails. G-06: a known failure counts at once.
        let lowest = looks.get(self.watched - 1)?;
        let deeper = usize::from(lowest.server_state == ServerState::Failing && self.watched < self.servers);
        self.watch(self.watched + deeper)
    }

    /// Returns when `handle_looks` is due again even if nothing happens.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.since?.checked_add(self.patience)
    }

    /// Returns a server of higher priority that answers again and holds everything that the session wants (G-08), or if it `leaves` the
    /// present one, a lower server that does. If the client holds nothing yet that could become inconsistent, or if the patience is over, the
    /// first server that answers is enough.
    fn other(&mut self, looks: &[Look], leaves: bool, delivered: bool, now: Instant) -> Option<usize> {
        let bound = self.bound;
        let others = looks.iter().enumerate();
        let others = others.filter(move |(at, _)| *at < bound || leaves && *at > bound);
        let mut others = others.filter(|(_, look)| look.server_state == ServerState::Up);
        let Some((first, _)) = others.clone().next() else {
            self.since = None;
            return None;
        };
        let is_ready = |(at, look): &(usize, &Look)| !look.lacks && (look.fresh || *at > bound);
        let ready = others.find(is_ready).map(|(at, _)| at);
        let begun = *self.since.get_or_insert(now);
        let waited = !delivered || now >= begun + self.patience;
        ready.or(waited.then_some(first))
    }

    fn watch(&mut self, watched: usize) -> Option<Step> {
        (std::mem::replace(&mut self.watched, watched) != watched).then_some(Step::Watch(watched))
    }
}
