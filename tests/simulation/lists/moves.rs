// SPDX-License-Identifier: Apache-2.0
//! Which servers a session reads in a world with lists of them, and why it moved.
//!
//! Owns the judgement of moves. Never moves a session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xds::ServerState;

use super::Plan;
use crate::client::Persona;
use crate::judge::Moment;
use crate::origins::Origins;
use crate::reading::Reading;
use crate::stream::Stream;
use crate::tally::{Broken, Rule};
use crate::world::World;
use crate::zone::Zone;

impl Zone {
    /// G-12: another server stands in for this one.
    fn stand_in(&mut self) {
        let legs = self.wire.legs.iter_mut();
        legs.for_each(|leg| leg.stood_in = leg.stood_in.or(Some(false)));
    }
}

/// An owner, and the server of the present list to which a session has moved for it.
type Left = (Option<&'static str>, usize);
/// An owner, from where and to where a session has moved within its list, and what comes before that.
type Move = (Option<&'static str>, usize, usize, Vec<usize>);

impl World {
    /// G-03, G-04, G-08: no session moves without need, and never to a server that does not answer.
    pub(crate) fn see_moves(&mut self, id: u64, stream: &mut Stream) -> Result<(), Broken> {
        let (Some(place), Some(lists)) = (&stream.place, &self.origins.lists) else {
            return Ok(());
        };
        let wrong = |broken: Broken| broken.of("stream", id);
        let (mut moves, mut left) = (Vec::new(), Vec::new());
        let rerouted = stream.plan.as_ref().is_none_or(|plan| !Arc::ptr_eq(plan, &lists.plan));
        let earlier: BTreeSet<usize> = stream.reads.values().copied().collect();
        let mut earlier_plan = None;
        if rerouted {
            self.course.log(|| format!("stream {id}: takes up the present lists"));
            earlier_plan = stream.plan.replace(lists.plan.clone());
            stream.reads.retain(|owner, _| place.server(owner.as_deref()).is_some());
            stream.leaving.retain(|owner, _| stream.reads.contains_key(owner));
        }
        for authority in lists.plan.owners() {
            let Some(server) = place.server(authority) else {
                continue;
            };
            let (server, servers) = (
                lists.zone(stream.class, authority, server),
                lists.servers_of(stream, authority),
            );
            let at = |server: usize| servers.iter().position(|other| *other == server);
            let before = stream.reads.insert(authority.map(str::to_owned), server);
            // G-21: it reads the view as before until another one can serve it, also for what has another owner now.
            let owner = authority.map(str::to_owned);
            if rerouted && earlier.contains(&server) && before.is_none_or(|before| before == server) {
                self.course.tally.hit(Rule::G21);
                let list = |plan: &Plan| plan.route(authority, stream.client).cloned();
                let same = earlier_plan.as_deref().and_then(list) == list(&lists.plan);
                match at(server) {
                    // It goes on as before.
                    Some(_) if same && before.is_some() => {}
                    Some(0) => drop(stream.leaving.remove(&owner)),
                    Some(_) | None => drop(stream.leaving.insert(owner, server)),
                }
                continue;
            }
            let leaves = stream.leaving.get(&owner).copied();
            if leaves == Some(server) {
                continue;
            }
            // What has another owner now was read elsewhere before, and perhaps has moved on at once.
            let parted = before.is_some() || at(server) != Some(0);
            if at(server).is_some() && (leaves.is_some() || rerouted && parted) {
                stream.leaving.remove(&owner);
                left.push((authority, server));
                continue;
            }
            let before = before.or(servers.first().copied());
            let (Some(from), Some(to)) = (before.and_then(at), at(server)) else {
                let what = format!("{authority:?} is read from {server}, which is not one of {servers:?}");
                return Err(wrong(Broken::new(Rule::F11, what)));
            };
            if from != to {
                moves.push((authority, servers[from], servers[to], servers[..to].to_vec()));
            }
        }
        if !moves.is_empty() || !left.is_empty() || rerouted {
            let client = &self.clients[stream.client];
            self.judge.see(&Moment::Moved(client), &mut self.course.tally)?;
        }
        self.judge_moves(stream, left, moves).map_err(wrong)?;
        self.check_seats(stream).map_err(wrong)
    }

    /// Judges moves to servers of the present list, and those within one list.
    fn judge_moves(&mut self, stream: &Stream, left: Vec<Left>, moves: Vec<Move>) -> Result<(), Broken> {
        let id = stream.id;
        for (authority, to) in left {
            self.course
                .log(|| format!("stream {id}: {authority:?} to server {to}, of the present list"));
            self.check_arrival(authority, to, Rule::G21)?;
        }
        for (authority, from, to, above) in moves {
            self.course
                .log(|| format!("stream {id}: {authority:?} from server {from} to {to}"));
            self.check_move(stream, authority, from, to, !above.contains(&from))?;
            if above.contains(&from) {
                above.iter().for_each(|server| self.origins[*server].stand_in());
            }
        }
        Ok(())
    }

    fn check_move(
        &mut self,
        stream: &Stream,
        authority: Option<&str>,
        from: usize,
        to: usize,
        home: bool,
    ) -> Result<(), Broken> {
        let plan = stream.plan.as_ref();
        let route = plan.and_then(|plan| plan.route(authority, stream.client));
        let knob = route.is_some_and(|route| route.reachability_only);
        let rule = match (home, knob) {
            (true, _) => Rule::G08,
            (false, true) => Rule::G04,
            (false, false) => Rule::G03,
        };
        self.check_arrival(authority, to, rule)?;
        if home || self.clients[stream.client].persona == Persona::Hostile {
            return Ok(());
        }
        let left = self.origins[from].writer.view.cut();
        let lacks = self.origins.lacks_at(stream, authority, from);
        if left.server_state() != ServerState::Failing || !knob && !lacks {
            return broken!(
                G03,
                "{authority:?} left {from}, {:?}, lacks {lacks}",
                left.server_state()
            );
        }
        Ok(())
    }

    /// No session moves to a server that does not answer.
    fn check_arrival(&mut self, authority: Option<&str>, to: usize, rule: Rule) -> Result<(), Broken> {
        self.course.tally.hit(rule);
        let server_state = self.origins[to].writer.view.cut().server_state();
        if server_state == ServerState::Up {
            return Ok(());
        }
        let what = format!("{authority:?} is read from {to}, which is {server_state:?}");
        Err(Broken::new(rule, what))
    }

    /// F-11: each session has one reading seat for each of its authorities; all other seats only watch.
    fn check_seats(&mut self, stream: &Stream) -> Result<(), Broken> {
        self.course.tally.hit(Rule::F11);
        let others = self.network.streams();
        let sessions = others.chain([stream]).filter(|stream| stream.place.is_some());
        let authorities = |stream: &Stream| {
            let place = stream.place.as_ref();
            let owners = stream.plan.iter().flat_map(|plan| plan.owners());
            owners
                .filter(|name| place.is_some_and(|place| place.server(*name).is_some()))
                .count()
        };
        let expected: usize = sessions.map(authorities).sum();
        let zones = self.origins.iter().enumerate().filter(|(_, zone)| zone.below.is_none());
        let views = zones.filter(|(_, zone)| zone.writer.attached);
        let readers: BTreeMap<usize, usize> = views
            .map(|(at, zone)| (at, zone.writer.view.demand().readers().0))
            .collect();
        if readers.values().sum::<usize>() != expected {
            return broken!(F11, "{expected} authorities of sessions are read at {readers:?}");
        }
        Ok(())
    }
}

impl Origins {
    /// Whether a server knows nothing of something that a stream wants of an authority (G-03).
    pub(super) fn lacks_at(&self, stream: &Stream, authority: Option<&str>, server: usize) -> bool {
        let cut = self.zones[server].writer.view.cut();
        let reading = Reading {
            sourced: stream
                .plan
                .as_ref()
                .map(|plan| plan.sourced.clone())
                .unwrap_or_default(),
            reads: [(authority.map(str::to_owned), (server, cut))].into(),
            permitted: None,
        };
        reading.lacks(&stream.wants, |other| other == authority)
    }
}
