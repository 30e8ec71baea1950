// SPDX-License-Identifier: Apache-2.0
//! gRPC clients for which no server is left (G-18).
//!
//! Owns the naive judgement of which clients these are, and of what becomes of their streams. Never ends a stream.

use xds::ServerState;

use super::client::Persona;
use super::origins::Origins;
use super::stream::Stream;
use super::tally::{Broken, Rule};
use super::world::World;

impl World {
    /// Whether a gRPC client asks for something of which nothing is known, and all servers for it are lost.
    pub(crate) fn is_forsaken(&self, stream: &Stream) -> bool {
        if !self.is_grpc(stream) {
            return false;
        }
        let lost = |authority: Option<&str>| self.origins.is_lost(stream, authority);
        self.reading(stream).lacks(&stream.wants, lost)
    }

    fn is_grpc(&self, stream: &Stream) -> bool {
        self.clients[stream.client].persona == Persona::Grpc
    }

    /// gRPC takes only a stream that ends before its first response for a failure.
    pub(crate) fn check_first_response(&mut self, stream: &Stream) -> Result<(), Broken> {
        if stream.server.sent() > 1 || !self.is_grpc(stream) {
            return Ok(());
        }
        self.course.tally.hit(Rule::G18);
        if self.is_forsaken(stream) {
            let what = "gRPC is answered, though a name that it asks for is lost";
            return Err(Broken::new(Rule::G18, what));
        }
        Ok(())
    }

    /// Nobody waits in vain for ever.
    pub(crate) fn check_forsaken(&self, stream: &Stream) -> Result<(), Broken> {
        if stream.at_relay && stream.place.is_some() && self.is_forsaken(stream) {
            return broken!(G18, "stream {} of gRPC waits in vain", stream.id);
        }
        Ok(())
    }
}

impl Origins {
    fn is_lost(&self, stream: &Stream, authority: Option<&str>) -> bool {
        let servers = match &self.lists {
            Some(lists) => {
                let mut servers = lists.servers_of(stream, authority);
                servers.extend(stream.reads.get(&authority.map(str::to_owned)));
                servers
            }
            None => vec![stream.zone],
        };
        let fails = |server: &usize| self.zones[*server].writer.view.cut().server_state() == ServerState::Failing;
        servers.iter().all(fails)
    }
}
