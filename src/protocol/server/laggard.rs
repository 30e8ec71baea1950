//! A client that does not read, while what it holds takes too much memory.
//!
//! Owns what is kept for it: names and hashes. Refuses to know when that is called for.

use std::sync::Arc;

use super::stream::Server;
use super::subscription::Subscription;
use crate::xds::Baselines;

impl Server {
    /// The client lags, and what it was sent takes too much memory: from here on only hashes are kept of it. What its wildcard
    /// loses meanwhile cannot be listed once more in a full state that brings additions (D-03).
    pub fn lighten(&mut self, baselines: &Baselines) {
        self.done = false;
        for subscription in &mut self.types {
            subscription.lighten(baselines);
        }
    }
}

impl Subscription {
    /// Keeps no bodies of what the client holds or was to be sent, as far as nobody needs them again.
    fn lighten(&mut self, baselines: &Baselines) {
        // G-20: what a full state lists by name it may have to list again although nothing is known of it any more.
        if !self.full_state() {
            self.names.lighten(baselines);
        }
        self.cut_off();
        self.covered.lighten(baselines);
        if let Some(audience) = &mut self.audience {
            Arc::make_mut(audience).lighten();
        }
        self.flights.lighten(baselines);
        self.dirty.add_all();
    }
}
