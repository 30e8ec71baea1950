//! The route configurations that the listeners and scoped routes of a client name.
//!
//! Owns what of a type names routes, and what counts as a route that the client has. Does not know what waits for that.

use std::time::Instant;

use super::Subscription;
use xds::{Kind, Known, Name, Sight};

impl Subscription {
    /// Returns when the client was last sent anything that names routes, if this is such a type.
    pub(in crate::server) fn named_at(&self) -> Option<Instant> {
        let names = matches!(self.reader.traits().kind, Kind::Lds | Kind::Srds);
        self.books.flights().sent().filter(|_| names)
    }

    /// Returns when the client was last sent anything that directs traffic, if this is such a type.
    pub(in crate::server) fn directed_at(&self) -> Option<Instant> {
        self.books
            .flights()
            .sent()
            .filter(|_| self.reader.traits().kind.gated())
    }

    /// Whether the client asks for a route configuration.
    pub(in crate::server) fn asks_for(&self, route: &Name) -> bool {
        self.want.wildcard() || self.want.texts(route).any(|text| self.books.ledger().asks(text))
    }

    /// Whether the client has accepted or rejected a route configuration, or it is known that there is none.
    pub(in crate::server) fn has_route(&self, route: &Name, sight: &Sight) -> bool {
        let absent = || matches!(self.type_sight(sight).known(route), Some(Known::Absent(_)));
        let accepted = |text: &Name| self.has(text) && !self.books.flights().has(text);
        self.want.texts(route).any(accepted) || absent()
    }
}
