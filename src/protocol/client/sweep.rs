//! Types of which nothing is wanted any more.
//!
//! Owns when they are dropped. Does not know what is wanted.

use super::Client;
use xds::TypeUrl;

/// While the stream lasts, up to this number of types that nobody wants is kept.
pub(super) const TYPES_REMEMBERED: usize = 1024;

impl Client {
    /// Drops types that nobody wants, so that a client that invents types without end does not fill this table.
    pub(super) fn drop_unwanted(&mut self, last: &TypeUrl) {
        let Some(stream) = &mut self.stream else {
            if self.feeds.get(last).is_some_and(|feed| !feed.wanted()) {
                self.feeds.remove(last);
                self.agenda.remove(last);
            }
            return;
        };
        if self.feeds.len() <= stream.sweep_at {
            return;
        }
        let before = self.feeds.len();
        self.feeds
            .retain(|_, feed| feed.wanted() || feed.outbound().is_ready() || feed.goes_on());
        stream.forgetful |= self.feeds.len() < before;
        stream.sweep_at = TYPES_REMEMBERED.max(self.feeds.len() * 2);
        self.note_all();
    }
}
