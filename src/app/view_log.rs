// SPDX-License-Identifier: Apache-2.0
//! The log lines about views: a server is lost or back, and sessions move to a lower server.
//!
//! Owns how often a view has a line, so that a server that comes and goes each second fills no log. Decides nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fleet::Fleet;
use super::plan;
use crate::cache::{Scopes, View};
use crate::classes::Class;
use crate::xds::ServerState;

/// What was logged of all views.
pub(super) struct ViewLog {
    scopes: Arc<Scopes>,
    fleet: Arc<Fleet>,
    views: BTreeMap<(Class, usize), ViewCourse>,
}

/// The state of one view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ViewState {
    failing: bool,
    /// How many sessions read it, if its server is nowhere the first choice: they have fallen back to it.
    fallen: usize,
}

/// The states of one view, one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct ViewCourse {
    last: ViewState,
    logged: ViewState,
    /// When the present minute began, and how often a line was written in it.
    begun: Option<Instant>,
    lines: u32,
    /// The changes that were not logged since the last line.
    suppressed: u64,
}

/// How many lines a view has in [`MINUTE`] at most: the server is lost, sessions move, it is back, they return. The state after them
/// is logged once the time is over.
const LINES_MAX: u32 = 4;
const MINUTE: Duration = Duration::from_secs(60);

impl ViewLog {
    pub(super) fn new(scopes: &Arc<Scopes>, fleet: &Arc<Fleet>) -> Self {
        Self {
            scopes: scopes.clone(),
            fleet: fleet.clone(),
            views: BTreeMap::new(),
        }
    }

    /// Logs what has changed since the last call: one line for each view, however many sessions it has.
    pub(super) fn say(&mut self, now: Instant) {
        let views = self.scopes.all();
        let exists = |(class, server): &(Class, usize)| {
            let is = |view: &Arc<View>| (view.class(), view.server()) == (class, *server);
            views.iter().any(is)
        };
        self.views.retain(|key, _| exists(key));
        let rows = self.fleet.rows();
        for view in &views {
            let first = rows.values().any(|row| row.servers.first() == Some(&view.server()));
            let seen = ViewState {
                failing: view.cut().server_state() == ServerState::Failing,
                fallen: if first { 0 } else { view.demand().readers().0 },
            };
            let course = self.views.entry((view.class().clone(), view.server())).or_default();
            if let Some((before, suppressed)) = course.note(seen, now) {
                self.tell(view, before, seen, suppressed);
            }
        }
    }

    fn tell(&self, view: &View, before: ViewState, now: ViewState, suppressed: u64) {
        let member = self.fleet.get(view.server());
        let server = member.as_ref().map_or("", |member| &member.name);
        let class = plan::class(&self.scopes, view.class());
        let (sessions, watching) = view.demand().readers();
        if now.failing != before.failing {
            if now.failing {
                let lacking = view.lacking().len();
                tracing::warn!(server, class, sessions, watching, lacking, suppressed, "server lost");
            } else {
                tracing::info!(server, class, sessions, watching, suppressed, "server back");
            }
        }
        if now.fallen != before.fallen {
            let (from, to) = (before.fallen, now.fallen);
            tracing::info!(
                server,
                class,
                from,
                to,
                watching,
                suppressed,
                "sessions on a lower-priority server"
            );
        }
    }
}

impl ViewCourse {
    /// Notes a state. If a line may be written about it, returns the state that was logged last, and how many changes were not logged
    /// since.
    fn note(&mut self, seen: ViewState, now: Instant) -> Option<(ViewState, u64)> {
        let changes = u64::from(std::mem::replace(&mut self.last, seen) != seen);
        let over = |begun| now.saturating_duration_since(begun) >= MINUTE;
        if self.begun.is_none_or(over) {
            self.begun = Some(now);
            self.lines = 0;
        }
        if seen == self.logged || self.lines >= LINES_MAX {
            self.suppressed += changes;
            return None;
        }
        self.lines += 1;
        let before = std::mem::replace(&mut self.logged, seen);
        Some((before, std::mem::take(&mut self.suppressed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that comes and goes each second has four lines in the first minute, and at last the state that stays.
    #[test]
    fn a_server_that_flaps() {
        let start = plan::now();
        let mut course = ViewCourse::default();
        let seen = |failing| ViewState { failing, fallen: 0 };
        let mut written = Vec::new();
        for second in 0..120 {
            // It flaps for 50 s, and is lost then.
            let failing = second >= 50 || second % 2 == 1;
            let noted = course.note(seen(failing), start + Duration::from_secs(second));
            written.extend(noted.map(|(before, suppressed)| (second, before.failing, failing, suppressed)));
        }
        let wanted = [
            (1, false, true, 0),
            (2, true, false, 0),
            (3, false, true, 0),
            (4, true, false, 0),
            (60, false, true, 45),
        ];
        assert_eq!(written, wanted);
    }
}
