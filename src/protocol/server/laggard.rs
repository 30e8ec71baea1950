//! A client that does not read, while its state takes too much memory.
//!
//! Owns what is kept for it: names and hashes. Does not know when this is needed.

use super::stream::Server;
use super::subscription::Subscription;
use xds::Baselines;

impl Server {
    /// The client lags, and what it was sent takes too much memory: from now on only hashes of it are kept. Resources that its
    /// wildcard loses meanwhile cannot be listed again in a full state with additions (D-03).
    pub fn lighten(&mut self, baselines: &mut Baselines) {
        self.done = false;
        for subscription in &mut self.types {
            subscription.lighten(baselines);
        }
    }
}

impl Subscription {
    /// Drops the bodies of what the client holds or was to be sent, unless they are needed again.
    fn lighten(&mut self, baselines: &mut Baselines) {
        // G-20: a response that lists everything may have to list a resource although nothing is known of it any more.
        if !self.full_state() && !self.lists_all() {
            self.names.lighten(baselines);
        }
        self.cut_off();
        self.covered.lighten(baselines);
        self.viewer.lighten();
        self.flights.lighten(baselines);
        self.dirty.add_all();
    }
}
