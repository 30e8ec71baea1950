//! What a client sees of each type with its rights.
//!
//! Owns when that is looked up. Does not know what the client asks for.

use super::stream::Server;
use super::subscription::Subscription;
use xds::{Answers, Sight, TypeSight, TypeUrl};

impl Server {
    /// Finds out what the client sees of each type with its rights.
    pub(crate) fn look(&mut self, sight: &Sight, answers: &impl Answers) {
        for subscription in &mut self.types {
            subscription.look(sight, answers);
        }
    }

    /// Returns what is known of a type, as the client sees it.
    pub(crate) fn type_sight<'a>(&'a self, type_url: &'a TypeUrl, sight: &'a Sight) -> TypeSight<'a> {
        let found = self.types.iter().find(|one| one.type_url == *type_url);
        found.map_or_else(|| sight.type_sight(type_url), |one| one.type_sight(sight))
    }
}

impl Subscription {
    /// Returns what is known of the type, as this client sees it.
    pub(super) fn type_sight<'a>(&'a self, sight: &'a Sight) -> TypeSight<'a> {
        sight.type_sight(&self.type_url).seen_by(&self.viewer)
    }

    /// Finds out what this client sees of the wildcard's state. To be called before anything is composed from it.
    pub(super) fn look(&mut self, sight: &Sight, answers: &impl Answers) -> &Self {
        if self.wildcard
            && let Some(state) = sight.type_sight(&self.type_url).wildcard()
        {
            self.viewer.look_at(state, answers);
        }
        self
    }
}
