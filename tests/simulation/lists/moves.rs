//! Which servers a session reads in a world with lists of them, and why it moved.
//!
//! Owns the judgement of moves. Never moves a session.

use std::collections::BTreeMap;

use xds::ServerState;

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
        let legs = self.wire.iter_mut().flat_map(|wire| &mut wire.legs);
        legs.for_each(|leg| leg.stood_in = leg.stood_in.or(Some(false)));
        if let Some(polled) = self.source.as_mut().and_then(super::Source::polled) {
            polled.stand_in();
        }
    }
}

impl World {
    /// G-03, G-04, G-08: no session moves without need, and never to a server that does not answer.
    pub(crate) fn see_moves(&mut self, id: u64, stream: &mut Stream) -> Result<(), Broken> {
        let (Some(place), Some(lists)) = (&stream.place, &self.origins.lists) else {
            return Ok(());
        };
        let wrong = |broken: Broken| broken.of("stream", id);
        let mut moves = Vec::new();
        for authority in lists.owners() {
            let Some(server) = place.server(authority) else {
                continue;
            };
            let (server, servers) = (
                lists.zone(stream.class, authority, server),
                lists.servers_of(stream.class, authority),
            );
            let at = |server: usize| servers.iter().position(|other| *other == server);
            let before = stream.reads.insert(authority.map(str::to_owned), server);
            let before = before.or(servers.first().copied());
            let (Some(from), Some(to)) = (before.and_then(at), at(server)) else {
                let what = format!("{authority:?} is read from {server}, which is not one of {servers:?}");
                return Err(wrong(Broken::new(Rule::F11, what)));
            };
            if from != to {
                moves.push((authority, servers[from], servers[to], servers[..to].to_vec()));
            }
        }
        if !moves.is_empty() {
            let client = &self.clients[stream.client];
            self.judge.see(&Moment::Moved(client), &mut self.course.tally)?;
        }
        for (authority, from, to, above) in moves {
            self.course
                .log(|| format!("stream {id}: {authority:?} from server {from} to {to}"));
            self.check_move(stream, authority, from, to, !above.contains(&from))
                .map_err(wrong)?;
            if above.contains(&from) {
                above.iter().for_each(|server| self.origins[*server].stand_in());
            }
        }
        self.check_seats(stream).map_err(wrong)
    }

    fn check_move(
        &mut self,
        stream: &Stream,
        authority: Option<&str>,
        from: usize,
        to: usize,
        home: bool,
    ) -> Result<(), Broken> {
        let route = self
            .origins
            .lists
            .as_ref()
            .and_then(|lists| lists.routes.route(authority, &classes::Node::default()));
        let knob = route.is_some_and(|route| route.reachability_only);
        let rule = match (home, knob) {
            (true, _) => Rule::G08,
            (false, true) => Rule::G04,
            (false, false) => Rule::G03,
        };
        self.course.tally.hit(rule);
        let server_state = self.origins[to].writer.view.cut().server_state();
        if server_state != ServerState::Up {
            let what = format!("{authority:?} is read from {to}, which is {server_state:?}");
            return Err(Broken::new(rule, what));
        }
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

    /// F-11: each session has one reading seat for each of its authorities; all other seats only watch.
    fn check_seats(&mut self, stream: &Stream) -> Result<(), Broken> {
        self.course.tally.hit(Rule::F11);
        let others = self.network.streams();
        let sessions = others.chain([stream]).filter(|stream| stream.place.is_some());
        let authorities = |stream: &Stream| {
            let place = stream.place.as_ref();
            let owners = self.origins.lists.iter().flat_map(|lists| lists.owners());
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
            source: self.lists.as_ref().is_some_and(|lists| lists.has_source()),
            reads: [(authority.map(str::to_owned), (server, cut))].into(),
            permitted: None,
        };
        reading.lacks(&stream.wants, |other| other == authority)
    }
}
