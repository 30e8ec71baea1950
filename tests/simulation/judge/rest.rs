// SPDX-License-Identifier: Apache-2.0
//! The oracle at rest: what each client holds is compared with the views that it reads, and these with their control planes.
//!
//! Owns the comparison of clients. Never waits.

use xds::{Dialect, Reason};

use super::{Moment, answers};
use crate::body::{Type, facts};
use crate::client::{Client, Persona};
use crate::names::is_collection;
use crate::reading::{Reading, Seen};
use crate::tally::{Broken, Rule, Tally};
use crate::world::World;

impl World {
    /// Judges all streams that were open by then. `quiet`: nothing is on its way anywhere.
    pub(crate) fn judge_rest(&mut self, settled: u64, quiet: bool) -> Result<(), Broken> {
        if quiet {
            self.judge.see(&Moment::Rest, &mut self.course.tally)?;
        }
        for stream in self.network.streams().filter(|stream| stream.id <= settled) {
            self.course.tally.hit(Rule::G18);
            self.check_forsaken(stream)?;
            let open = stream.at_client && stream.at_relay && stream.place.is_some() && stream.server.sent() > 0;
            if !open || self.clients[stream.client].persona == Persona::Hostile {
                continue;
            }
            let patience = self.relay.settings.timers.unanswered;
            let now = self.course.clock.now();
            self.origins.check_binding(stream, quiet, patience, now)?;
            // Resources with a time to live come and go at any time. What is on its way is not compared.
            if stream.up.is_empty() && stream.down.is_empty() && !self.judge.awaits(stream.id) {
                let (client, reading) = (&self.clients[stream.client], self.reading(stream));
                let judged = compare(client, stream.id, &reading, &mut self.course.tally);
                judged.map_err(|broken| broken.of("stream", stream.id))?;
            }
        }
        let here = |stream: &&u64| self.network.get(**stream).is_none();
        let lost = self
            .clients
            .iter()
            .find_map(|client| client.lines.keys().find(here).filter(|_| quiet));
        match lost {
            Some(stream) => broken!(Held, "a client is on stream {stream}, which is gone"),
            None => Ok(()),
        }
    }
}

fn compare(client: &Client, id: u64, reading: &Reading, tally: &mut Tally) -> Result<(), Broken> {
    let Some(line) = client.lines.get(&id) else {
        return Ok(());
    };
    for (kind, mux) in line.muxes.iter().filter(|(_, mux)| mux.is_started()) {
        let want = &mux.memory.want;
        // G-20: a full state waits for what it cannot leave out.
        let unknown = |name: &String| reading.seen(*kind, name, want) == Seen::Unknown;
        let waits = want.names.iter().any(unknown) || want.wildcard && !reading.is_certain(*kind);
        if client.is_full(*kind) && waits {
            tally.hit(Rule::G20);
            continue;
        }
        // B-22: what the view has and the client rejects, it lacks, and with it what came in the same response. B-16, G-20: so does it
        // while the view knows nothing of what it rejects: a full state can neither repeat that nor leave it out.
        let stuck = mux.memory.refused.iter().any(|(name, refused)| {
            let found = reading.resource(*kind, name).map(|found| facts(&found.body()));
            let unknown = matches!(
                reading.seen(*kind, name, want),
                Seen::Unknown | Seen::Absent(Reason::TimedOut)
            );
            unknown || matches!(found, Some(Ok(facts)) if facts.bad && refused.contains(&facts.revision))
        });
        if stuck {
            tally.hit(Rule::B22);
        }
        let mut names = reading.wanted(*kind, want);
        for name in &names {
            let held = client.held(*kind).get(name).map(|held| held.revision);
            let lacks = matches!(reading.seen(*kind, name, want), Seen::Present(revision)
                if held != Some(revision) && !mux.memory.had(name, revision));
            if stuck && lacks && !is_collection(name) {
                return broken!(
                    K37,
                    "{kind:?} {name}: it was not sent what the view has, and holds {held:?}"
                );
            }
        }
        if stuck && client.is_full(*kind) {
            continue;
        }
        answers::check(client, *kind, mux, reading, tally)?;
        if *kind == Type::Eds {
            answers::check_warming(client, mux, reading, tally)?;
        }
        names.extend(client.held(*kind).keys().cloned());
        names.retain(|name| !is_collection(name));
        for name in names {
            tally.hit(Rule::Held);
            let seen = reading.seen(*kind, &name, want);
            let rejected = matches!(seen, Seen::Present(revision) if mux.memory.refuses(&name, revision));
            if stuck && rejected {
                continue;
            }
            if !agrees(client, (*kind, &name), seen, reading) {
                let held = client.held(*kind).get(&name).map(|held| held.revision);
                return broken!(
                    Held,
                    "{kind:?} {name}: the view has {seen:?}, and the client holds {held:?}"
                );
            }
        }
    }
    Ok(())
}

/// Whether a client holds what its view has of one name.
fn agrees(client: &Client, (kind, name): (Type, &str), seen: Seen, reading: &Reading) -> bool {
    let held = client.held(kind).get(name).map(|held| held.revision);
    match seen {
        // A resource with a time to live may have come back this very moment, before the session could send it.
        Seen::Present(_) if held.is_none() && reading.expiry(kind, name).is_some() => true,
        Seen::Present(revision) => held == Some(revision),
        // K-16: a name that only got no answer in time is not certain either.
        Seen::Absent(Reason::TimedOut) | Seen::Unknown | Seen::Unwanted => true,
        Seen::Uncovered | Seen::Absent(_) => {
            held.is_none() || !(client.is_full(kind) || client.dialect == Dialect::Delta)
        }
    }
}
