//! A client that does not read, while what it holds takes too much memory.
//!
//! Owns what is kept for it: names and hashes. Refuses to know when that is called for.

use std::sync::Arc;

use super::stream::Server;
use super::subscription::{Glance, Rest, Subscription};
use crate::xds::{Baselines, Seen};

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
        if let Some(rest) = &mut self.rest {
            rest.batch = baselines.batch(&rest.batch);
        }
        // G-20: what a full state lists by name it may have to list again although nothing is known of it any more.
        if !self.full_state() {
            self.names.lighten(baselines);
        }
        let lighten = |seen: &Seen| Seen {
            state: seen.state.as_ref().map(|state| baselines.state(state)),
            extra: seen.extra.as_ref().map(|extra| baselines.extra(extra)),
        };
        if let Some(Rest { before, .. }) = self.rest.as_deref_mut() {
            before.seen = lighten(&before.seen);
            before.names.values_mut().for_each(|held| *held = baselines.held(held));
        }
        self.seen = lighten(&self.seen);
        if let Some(audience) = &mut self.audience {
            Arc::make_mut(audience).lighten();
        }
        self.flights.iter_mut().for_each(|flight| flight.lighten(baselines));
        self.dirty = Glance::All;
    }
}
