//! gRPC clients for which no server is left (G-18).
//!
//! Owns the naive judgement of which clients these are, and of what becomes of their streams. Never ends a stream.

use xds::ServerState;

use super::names::authority;
use super::reading::Reading;
use super::relay::Stream;
use super::tally::{Broken, Rule};
use super::world::World;

impl World {
    /// Whether a gRPC client asks for something of which nothing is known, and all servers for it are lost.
    pub(crate) fn is_forsaken(&self, stream: &Stream) -> bool {
        if !stream.witness.grpc {
            return false;
        }
        let reading = match self.lists.is_some() {
            true => self.reading(&stream.follower),
            false => Reading::alone(
                &self.zones,
                stream.zone,
                stream.follower.own,
                self.permitted(stream.client),
            ),
        };
        stream.witness.lacks(&reading, |name| self.is_lost(stream, name))
    }

    fn is_lost(&self, stream: &Stream, name: &str) -> bool {
        let servers = match &self.lists {
            Some(lists) => lists.servers_of(stream.follower.class, authority(name).as_deref()),
            None => vec![stream.zone],
        };
        let fails = |server: &usize| self.zones[*server].view.cut().server_state() == ServerState::Failing;
        servers.iter().all(fails)
    }

    /// gRPC takes only a stream that ends before its first response for a failure.
    pub(crate) fn check_first_response(&mut self, stream: &Stream) -> Result<(), Broken> {
        if stream.server.sent() > 1 || !stream.witness.grpc {
            return Ok(());
        }
        self.tally.hit(Rule::G18);
        if self.is_forsaken(stream) {
            let what = "gRPC is answered, though a name that it asks for is lost";
            return Err(Broken::new(Rule::G18, what));
        }
        Ok(())
    }

    /// Nobody waits in vain for ever.
    pub(crate) fn check_forsaken(&mut self, id: u64) -> Result<(), Broken> {
        self.tally.hit(Rule::G18);
        let stream = &self.streams[&id];
        if stream.at_relay && stream.place.is_some() && self.is_forsaken(stream) {
            return Err(Broken::new(Rule::G18, format!("stream {id} of gRPC waits in vain")));
        }
        Ok(())
    }
}
