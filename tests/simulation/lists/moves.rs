//! A session's turn in a world with lists of servers: which server it reads, why it moved, and what it sends then.
//!
//! Owns the judgement of moves. Never moves a session.

use std::collections::BTreeMap;

use xds::ServerState;

use super::follower::Follower;
use crate::feed::Zone;
use crate::reading::Reading;
use crate::relay::Stream;
use crate::tally::{Broken, Rule};
use crate::witness::Scene;
use crate::world::World;

impl Zone {
    /// G-12: another server stands in for this one.
    fn stand_in(&mut self) {
        let legs = self.wire.iter_mut().flat_map(|wire| &mut wire.legs);
        legs.for_each(|leg| leg.stood_in = leg.stood_in.or(Some(false)));
        if let Some(polled) = self.source.as_mut().and_then(super::Source::polled) {
            polled.stand_in();
        }
    }
}

impl World {
    /// What the session sends, after it has chosen what to read.
    pub(crate) fn follow(&mut self, id: u64, stream: &mut Stream, loose: bool) -> Result<(), Broken> {
        let wrong = |broken: Broken| Broken::new(broken.rule, format!("stream {id}: {}", broken.what));
        self.see_views()?;
        self.check_moves(id, stream).map_err(wrong)?;
        self.check_seats(stream).map_err(wrong)?;
        let Some(place) = &stream.place else { return Ok(()) };
        let sight = place.sight();
        let now = self.instant();
        let contents = {
            let reading = self.reading(&stream.follower);
            if stream.room > 0 {
                stream.witness.look(&Scene {
                    reading: &reading,
                    alone: false,
                    now,
                    expired: false,
                    unanswered: self.settings.timers.unanswered,
                });
            }
            stream.follower.contents(&reading)
        };
        // `said_all` counts only while the session can still read the same.
        stream.follower.said_all.take_if(|said| *said != contents);
        while stream.room > 0 {
            let gates = stream.server.expired_gates();
            let Some(answer) = self.next_response(stream, &sight)? else {
                let waits = stream.follower.waits(&self.reading(&stream.follower));
                if stream.server.poll_timeout().is_none() && !waits {
                    stream.follower.said_all = Some(contents);
                }
                break;
            };
            self.log(|| format!("stream {id}: relay -> {}", answer.brief()));
            let mut tally = std::mem::take(&mut self.tally);
            let judged = {
                let reading = self.reading(&stream.follower);
                let scene = Scene {
                    reading: &reading,
                    alone: false,
                    now,
                    expired: loose || stream.server.expired_gates() > gates,
                    unanswered: self.settings.timers.unanswered,
                };
                let followed = stream.follower.response(&answer, &reading, &mut tally);
                followed.and_then(|()| stream.witness.response(&answer, &scene, &mut tally))
            };
            self.tally = tally;
            judged.map_err(wrong)?;
            self.transmit(id, stream, answer);
        }
        self.check_kept(id, stream)?;
        self.set_timer(id, stream);
        Ok(())
    }

    /// What the stream reads now.
    pub(crate) fn reading(&self, follower: &Follower) -> Reading<'_> {
        self.reading_of(&follower.reads, follower.own)
    }

    fn reading_of(&self, reads: &BTreeMap<Option<String>, usize>, own: Option<&'static str>) -> Reading<'_> {
        let reads = reads
            .iter()
            .map(|(authority, server)| (authority.clone(), (*server, self.zones[*server].view.cut())));
        Reading {
            zones: &self.zones,
            reads: reads.collect(),
            own,
            permitted: None,
            parts: BTreeMap::new(),
        }
    }

    /// G-03, G-04, G-08: no session moves without need, and never to a server that does not answer.
    fn check_moves(&mut self, id: u64, stream: &mut Stream) -> Result<(), Broken> {
        let (Some(place), Some(lists)) = (&stream.place, &self.lists) else {
            return Ok(());
        };
        let left = stream.follower.reads.clone();
        let authorities = std::iter::once(None).chain(crate::names::SERVED.iter().map(|name| Some(*name)));
        let mut moves = Vec::new();
        for authority in authorities {
            let Some(server) = place.server(authority) else {
                continue;
            };
            let class = stream.follower.class;
            let (server, servers) = (lists.zone(class, authority, server), lists.servers_of(class, authority));
            let at = |server: usize| servers.iter().position(|other| *other == server);
            let before = stream.follower.reads.insert(authority.map(str::to_owned), server);
            let before = before.or(servers.first().copied());
            let (Some(from), Some(to)) = (before.and_then(at), at(server)) else {
                let what = format!("{authority:?} is read from {server}, which is not one of {servers:?}");
                return Err(Broken::new(Rule::F11, what));
            };
            if from != to {
                let route = lists.routes.route(authority);
                let knob = route.is_some_and(|route| route.reachability_only);
                moves.push((authority, servers, from, to, knob));
            }
        }
        // Parts that were still to come from the view that was read before are not sent any more.
        let tracks = stream.follower.tracks.values_mut();
        tracks.for_each(|track| track.chain &= moves.is_empty());
        if !moves.is_empty() {
            // What the view that was left had lost by then counts as well.
            for reads in [&left, &stream.follower.reads] {
                stream.witness.moved(&self.reading_of(reads, stream.follower.own));
            }
        }
        for (authority, servers, from, to, knob) in moves {
            self.log(|| {
                format!(
                    "stream {id}: {authority:?} from server {} to {}",
                    servers[from], servers[to]
                )
            });
            let (left, chosen) = (self.zones[servers[from]].view.cut(), self.zones[servers[to]].view.cut());
            let rule = match (to < from, knob) {
                (true, _) => Rule::G08,
                (false, true) => Rule::G04,
                (false, false) => Rule::G03,
            };
            self.tally.hit(rule);
            if chosen.server_state() != ServerState::Up {
                let (at, server_state) = (servers[to], chosen.server_state());
                let what = format!("{authority:?} is read from {at}, which is {server_state:?}");
                return Err(Broken::new(rule, what));
            }
            if to < from {
                continue;
            }
            let lacks = Reading::lacks(&stream.follower.tracks, authority, &left);
            if left.server_state() != ServerState::Failing || !knob && !lacks && !stream.follower.hostile {
                let what = format!(
                    "{authority:?} left {}, {:?}, lacks {lacks}",
                    servers[from],
                    left.server_state()
                );
                return Err(Broken::new(Rule::G03, what));
            }
            servers
                .iter()
                .take(to)
                .for_each(|server| self.zones[*server].stand_in());
        }
        Ok(())
    }

    /// F-11: each session has one reading seat for each of its authorities; all other seats only watch.
    fn check_seats(&mut self, stream: &Stream) -> Result<(), Broken> {
        self.tally.hit(Rule::F11);
        let others = self.streams.values().map(|other| &**other);
        let sessions = others.chain([stream]).filter(|stream| stream.place.is_some());
        let authorities = |stream: &Stream| {
            let place = stream.place.as_ref();
            let served = crate::names::SERVED.iter().map(|name| Some(*name)).chain([None]);
            served
                .filter(|name| place.is_some_and(|place| place.server(*name).is_some()))
                .count()
        };
        let expected: usize = sessions.map(authorities).sum();
        let zones = self.zones.iter().enumerate().filter(|(_, zone)| zone.below.is_none());
        let views = zones.filter(|(_, zone)| zone.attached);
        let readers: BTreeMap<usize, usize> = views.map(|(at, zone)| (at, zone.view.readers().0)).collect();
        if readers.values().sum::<usize>() != expected {
            let what = format!("{expected} authorities of sessions are read at {readers:?}");
            return Err(Broken::new(Rule::F11, what));
        }
        Ok(())
    }
}
