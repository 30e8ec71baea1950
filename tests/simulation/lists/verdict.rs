// SPDX-License-Identifier: Apache-2.0
//! Judges, at rest, which servers the sessions of a world with lists of servers read: during an outage, and when everything has healed.
//!
//! Owns that judgement alone. Never waits.

use std::sync::Arc;
use std::time::Duration;

use cache::View;
use xds::ServerState;

use super::Mood;
use crate::origins::Origins;
use crate::stream::Stream;
use crate::tally::{Broken, Rule, Tally};
use crate::upstream::Wire;

impl Origins {
    /// Every session is where it should be: with the first server that answers, or when everything has `healed` with the first one.
    pub(crate) fn check_binding(
        &self,
        stream: &Stream,
        healed: bool,
        unanswered: Duration,
        now: Duration,
    ) -> Result<(), Broken> {
        let Some(lists) = &self.lists else { return Ok(()) };
        for (authority, server) in &stream.reads {
            let authority = authority.as_deref();
            let servers = lists.servers_of(stream, authority);
            // G-08: a session that holds something waits this long for a server that lacks what the session wants.
            let patience = unanswered + Duration::from_secs(1);
            let up = |server: &usize| lists.up_since.get(server).is_some_and(|since| *since + patience <= now);
            let first = servers.first().filter(|first| healed && *first != server);
            // A server that has answered any stream is there, whatever the relay makes of it, unless another one was opened just now.
            let there = |wire: &Wire| wire.is_answered() && !wire.may_be_answered(now.saturating_sub(patience));
            if first.is_some_and(|first| there(&self.zones[*first].wire)) {
                return broken!(G08, "{authority:?} is still read from {server}");
            }
            // G-10: a session leaves a server that fails, not one that is slow.
            let fails = |server: &&usize| self.zones[**server].writer.view.cut().server_state() == ServerState::Failing;
            let usual: Vec<usize> = servers.iter().copied().take_while(|other| other != server).collect();
            let leaving = stream.leaving.contains_key(&authority.map(str::to_owned));
            // Whether it has come to a server of the present list that it read before, nobody can see.
            let stays = servers.contains(server) && !usual.iter().any(up);
            let above: Vec<usize> = match leaving {
                true if stays => Vec::new(),
                // G-21: it waits for the first one that does not fail.
                true => servers
                    .iter()
                    .find(|server| !fails(server))
                    .filter(|first| *first != server)
                    .copied()
                    .into_iter()
                    .collect(),
                false => usual,
            };
            if let Some(better) = above.iter().find(|server| up(server)) {
                return broken!(G08, "{authority:?} is read from {server}, though {better} answers");
            }
            let cut = self.zones[*server].writer.view.cut();
            let plan = stream.plan.as_ref();
            let route = plan.and_then(|plan| plan.route(authority, stream.client));
            let knob = route.is_some_and(|route| route.reachability_only);
            let lacks = self.lacks_at(stream, authority, *server);
            let fine = servers.iter().find(|server| !fails(server)).is_some_and(up);
            if cut.server_state() == ServerState::Failing && (knob || lacks) && fine {
                return broken!(
                    G04,
                    "{authority:?} is read from {server}, which fails, though another one answers"
                );
            }
        }
        Ok(())
    }

    /// G-01: when everything has healed, only the first servers are asked for anything.
    pub(crate) fn check_firsts(&self, views: &[Arc<View>], tally: &mut Tally) -> Result<(), Broken> {
        let Some(lists) = &self.lists else { return Ok(()) };
        let firsts = lists.firsts();
        let all_fine = self.zones.iter().all(|zone| zone.mood == Mood::Fine);
        let up = |server: &usize| {
            let zone = &self.zones[*server];
            !zone.writer.attached || zone.writer.view.cut().server_state() == ServerState::Up
        };
        if !all_fine || !firsts.iter().all(up) {
            return Ok(());
        }
        let others: Vec<usize> = views
            .iter()
            .map(|view| self.zone_of(view, tally))
            .collect::<Result<_, _>>()?;
        let others: Vec<usize> = others.into_iter().filter(|server| !firsts.contains(server)).collect();
        tally.hit(Rule::G01);
        match others.as_slice() {
            [] => Ok(()),
            others => broken!(G01, "the servers {others:?} are still asked"),
        }
    }
}
