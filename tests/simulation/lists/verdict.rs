//! Judges worlds with lists of servers at rest: during an outage, and when everything has healed.
//!
//! Owns the comparison of clients with the views that they read, and at the end with their first servers. Never waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use xds::{Dialect, Reason, ServerState};

use super::follower::Seen;
use super::{Lists, Mood};
use crate::body::{Content, Type};
use crate::client::{Mux, Persona};
use crate::names::{authority, canonical, covers, is_collection};
use crate::quiet::{is_whole, timed_out};
use crate::reading::Reading;
use crate::relay::Stream;
use crate::tally::{Broken, Rule};
use crate::world::World;

impl World {
    /// In an outage: every session is where it should be, and holds what it reads there.
    pub(super) fn judge_lull(&mut self, settled: u64) -> Result<(), Broken> {
        let ids: Vec<u64> = self.streams.keys().copied().filter(|id| *id <= settled).collect();
        for id in ids {
            self.check_forsaken(id)?;
            let stream = &self.streams[&id];
            let hostile = stream.follower.hostile;
            let open =
                !hostile && stream.at_client && stream.at_relay && stream.place.is_some() && stream.follower.sent > 0;
            if !open {
                continue;
            }
            let bound = self.judge_binding(stream);
            // Resources with a time to live come and go in a lull as well. While anything is on its way, nothing is compared.
            let answered = stream.follower.tracks.values().all(|track| track.open.is_none());
            let still = answered && stream.up.is_empty() && stream.down.is_empty();
            let judged = bound.and_then(|()| {
                if still {
                    self.judge_held(id, stream)
                } else {
                    Ok(Vec::new())
                }
            });
            let rules = judged.map_err(|broken| Broken::new(broken.rule, format!("stream {id}: {}", broken.what)))?;
            rules.into_iter().for_each(|rule| self.tally.hit(rule));
        }
        Ok(())
    }

    fn judge_binding(&self, stream: &Stream) -> Result<(), Broken> {
        let Some(lists) = &self.lists else { return Ok(()) };
        for (authority, server) in &stream.follower.reads {
            let authority = authority.as_deref();
            let servers = lists.servers_of(stream.follower.class, authority);
            // G-08: a session that holds something waits this long for a server that lacks what the session wants.
            let patience = self.settings.timers.unanswered + Duration::from_secs(1);
            let up = |server: &usize| {
                lists
                    .up_since
                    .get(server)
                    .is_some_and(|since| *since + patience <= self.now)
            };
            let above: Vec<usize> = servers.iter().copied().take_while(|other| other != server).collect();
            if let Some(better) = above.iter().find(|server| up(server)) {
                let what = format!("{authority:?} is read from {server}, though {better} answers");
                return Err(Broken::new(Rule::G08, what));
            }
            let cut = self.zones[*server].view.cut();
            let knob = lists
                .routes
                .route(authority)
                .is_some_and(|route| route.reachability_only);
            let lacks = Reading::lacks(&stream.follower.tracks, authority, &cut);
            // G-10: a session leaves a server that fails, not one that is slow.
            let fails = |server: &&usize| self.zones[**server].view.cut().server_state() == ServerState::Failing;
            let fine = servers.iter().find(|server| !fails(server)).is_some_and(up);
            if cut.server_state() == ServerState::Failing && (knob || lacks) && fine {
                let what = format!("{authority:?} is read from {server}, which fails, though another one answers");
                return Err(Broken::new(Rule::G04, what));
            }
        }
        Ok(())
    }

    /// G-17: a session holds exactly its view, and what it held before that its view does not know.
    fn judge_held(&self, id: u64, stream: &Stream) -> Result<Vec<Rule>, Broken> {
        let client = &self.clients[stream.client];
        let Some(line) = client.lines.get(&id) else {
            return Ok(Vec::new());
        };
        let reading = self.reading(&stream.follower);
        let none = BTreeMap::new();
        let mut rules = Vec::new();
        for (kind, mux) in line.muxes.iter().filter(|(_, mux)| mux.is_started()) {
            let Some(track) = stream.follower.tracks.get(kind) else {
                continue;
            };
            let holds = client.holds.get(kind).unwrap_or(&none);
            let whole = |name: &String| reading.seen(*kind, name, track) != Seen::Unknown;
            let full = client.dialect == Dialect::Sotw && kind.full_state();
            let complete = reading.is_complete(*kind);
            // G-20: a full state waits for what it cannot leave out.
            if full && !(mux.names.iter().all(whole) && (complete || !mux.wildcard)) {
                continue;
            }
            let plain = || mux.names.iter().filter(|name| authority(name).is_none());
            let unsure: BTreeSet<&String> = plain().filter(|name| !whole(name)).collect();
            // K-16: a name that only got no answer in time is not certain either.
            let silent = |name: &String| reading.seen(*kind, name, track) == Seen::Absent(Reason::TimedOut);
            let open = |name: &String| unsure.contains(name) || mux.names.contains(name) && silent(name);
            let lens = reading.lens(*kind);
            let ends = |name: &str| {
                [None, client.own]
                    .into_iter()
                    .any(|whom| lens.expiry(name, whom).is_some())
            };
            let may_be = |name: &String| match track.sent.get(name) {
                Some(sent) => sent.aliases.iter().any(open),
                None => plain().any(open),
            };
            let mut wanted: Vec<String> = mux.names.iter().cloned().collect();
            if mux.wildcard {
                wanted.extend(reading.covered(*kind).into_iter().map(|(name, _)| name));
            }
            let collections = mux.names.iter().filter(|name| is_collection(name));
            wanted.extend(
                collections
                    .flat_map(|collection| reading.members(*kind, collection).0)
                    .map(|(name, _)| name),
            );
            wanted.extend(holds.keys().cloned());
            for name in wanted {
                let by_alias = || holds.iter().find(|(_, holding)| holding.aliases.contains(&name));
                let found = holds.get_key_value(&name).or_else(by_alias);
                let held = found.map(|(_, holding)| holding.revision);
                let seen = reading.seen(*kind, &name, track);
                // C-20: if an alias is gone, the wildcard may still have its resource, as long as that is unknown.
                let perhaps_covered = || found.is_some_and(|(own, _)| *own != name && !whole(own));
                let wrong = match &seen {
                    // A resource with a time to live may have come back this very moment, before the session could send it.
                    Seen::Present(_) if held.is_none() && ends(&name) => false,
                    Seen::Present(revision) => held != Some(*revision),
                    // C-20: it may be the resource of an alias that the client asks for and that is still unknown.
                    Seen::Uncovered if may_be(&name) => false,
                    Seen::Absent(_) if perhaps_covered() => false,
                    Seen::Absent(Reason::Said | Reason::Expired) | Seen::Uncovered => {
                        held.is_some() && (full || client.dialect == Dialect::Delta)
                    }
                    Seen::Absent(Reason::TimedOut) | Seen::Unknown | Seen::Unwanted => false,
                };
                rules.push(Rule::Held);
                if wrong {
                    let what = format!("{kind:?} {name}: its view has {seen:?}, and it holds {held:?}");
                    return Err(Broken::new(Rule::Held, what));
                }
            }
        }
        Ok(rules)
    }

    /// When all has healed a client reads its first servers, and holds what they have.
    pub(crate) fn compare_lists(&mut self, id: usize) -> Result<(), Broken> {
        let client = &self.clients[id];
        let mut rules = Vec::new();
        for (stream, line) in client.lines.iter().filter(|_| client.persona != Persona::Hostile) {
            let Some(follower) = self.streams.get(stream).map(|stream| &stream.follower) else {
                let what = format!("client {id} is on stream {stream}, which is gone");
                return Err(Broken::new(Rule::Held, what));
            };
            let mut home: BTreeMap<Option<String>, usize> = BTreeMap::new();
            for (authority, server) in &follower.reads {
                let lists = self.lists.as_ref();
                let servers = |lists: &Lists| lists.servers_of(follower.class, authority.as_deref());
                let first = lists.and_then(|lists| servers(lists).first().copied());
                let up = first.is_some_and(|first| self.zones[first].view.cut().server_state() == ServerState::Up);
                if first == Some(*server) {
                    home.insert(authority.clone(), *server);
                } else if up {
                    let what = format!("stream {stream}: {authority:?} is still read from {server}");
                    return Err(Broken::new(Rule::G08, what));
                }
            }
            for (kind, mux) in line.muxes.iter().filter(|(_, mux)| mux.is_started()) {
                let none = BTreeMap::new();
                let holds = client.holds.get(kind).unwrap_or(&none);
                let held = |name: &str| holds.get(name).map(|holding| holding.revision);
                let expected = self.expected_of(*kind, mux, &home, client.own);
                for (name, revision) in &expected {
                    rules.push(Rule::Held);
                    let hides = home.get(&authority(name)).is_some_and(|at| {
                        let mut views = [*at, self.origin(*at)].into_iter();
                        views.any(|at| self.zones[at].hides(*kind, &canonical(name)))
                            || self.zones[*at].cannot_say(*kind)
                    });
                    if held(name) != Some(*revision) && !hides {
                        let what = format!("client {id} on stream {stream}: {kind:?} {name} is @{revision}");
                        return Err(Broken::new(
                            Rule::Held,
                            format!("{what}, and it holds {:?}", held(name)),
                        ));
                    }
                }
                let expressible = client.dialect == Dialect::Delta || kind.full_state();
                let others = holds
                    .iter()
                    .filter(|(name, _)| expressible && !expected.contains_key(*name));
                for (name, holding) in others {
                    let Some(server) = home.get(&authority(name)) else {
                        continue;
                    };
                    // K-16: nothing is removed from a collection that is not known as a whole.
                    let cuts = [*server, self.origin(*server)].map(|zone| self.zones[zone].view.cut());
                    let whole = |collection: &&String| cuts.iter().all(|cut| is_whole(cut, *kind, collection));
                    let mut collections = mux.names.iter().filter(|collection| covers(collection, name));
                    let open = collections.any(|collection| !whole(&collection));
                    // C-20: it may be held by another name.
                    let aliases = holding.aliases.iter().filter(|alias| mux.names.contains(*alias));
                    let mut called = std::iter::once(name).chain(aliases);
                    let silent = called.any(|name| self.is_silent(*server, *kind, name));
                    if self.zones[*server].says_gone(*kind) && !open && !silent {
                        let what = format!("client {id} on stream {stream}: {kind:?} {name} is still held");
                        return Err(Broken::new(Rule::Held, what));
                    }
                }
            }
        }
        rules.into_iter().for_each(|rule| self.tally.hit(rule));
        Ok(())
    }

    /// What the first servers have of what is wanted.
    fn expected_of(
        &self,
        kind: Type,
        mux: &Mux,
        home: &BTreeMap<Option<String>, usize>,
        own: Option<&str>,
    ) -> BTreeMap<String, u64> {
        let mut expected = BTreeMap::new();
        for (authority, server) in home {
            let (zone, truth) = (&self.zones[*server], &self.zones[*server].truth);
            let ours = |name: &&String| crate::names::authority(name) == *authority;
            let found = |name: &String| Some((name.clone(), truth.find_for(kind, &canonical(name), own)?));
            let named = mux.names.iter().filter(ours).filter_map(found);
            // The resource of an alias is held under its own name, or under the client's spelling of that.
            let written = |own: &String| mux.names.iter().any(|text| canonical(text) == *own);
            let called = |(name, it): (String, &Arc<Content>)| match it.aliases.contains(&name) {
                true if written(&it.name) => None,
                true => Some((it.name.clone(), it.revision)),
                false => Some((name, it.revision)),
            };
            let collections: Vec<&String> = mux
                .names
                .iter()
                .filter(ours)
                .filter(|name| is_collection(name))
                .collect();
            let of_some = |it: &&Arc<Content>| collections.iter().any(|collection| covers(collection, &it.name));
            let members = truth.of_for(kind, own).filter(of_some);
            let covered = truth
                .of_for(kind, own)
                .filter(|it| mux.wildcard && authority.is_none() && zone.covers(it));
            expected.extend(named.filter_map(called));
            expected.extend(covered.chain(members).map(|it| (it.name.clone(), it.revision)));
        }
        expected
    }

    /// K-16: what a server never reported as gone may stay.
    fn is_silent(&self, server: usize, kind: Type, name: &str) -> bool {
        let silent = |zone: usize| timed_out(&self.zones[zone].view.cut(), kind, &canonical(name));
        silent(server) || silent(self.origin(server))
    }

    /// G-01: when everything has healed, only the first servers are asked for anything.
    pub(crate) fn check_firsts(&mut self) -> Result<(), Broken> {
        let Some(lists) = &self.lists else { return Ok(()) };
        let firsts = lists.firsts();
        let all_fine = lists.moods.iter().all(|mood| *mood == Mood::Fine);
        let up = |server: &usize| {
            let zone = &self.zones[*server];
            !zone.attached || zone.view.cut().server_state() == ServerState::Up
        };
        if !all_fine || !firsts.iter().all(up) {
            return Ok(());
        }
        let views = self.scopes.all().into_iter();
        let others: Vec<usize> = views.map(|view| self.zone_of(&view)).collect::<Result<_, _>>()?;
        let others: Vec<usize> = others.into_iter().filter(|server| !firsts.contains(server)).collect();
        self.tally.hit(Rule::G01);
        match others.as_slice() {
            [] => Ok(()),
            others => Err(Broken::new(
                Rule::G01,
                format!("the servers {others:?} are still asked"),
            )),
        }
    }
}
