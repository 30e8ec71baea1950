//! What most types on most streams have nothing of.
//!
//! Owns where it is kept, so that it costs nothing where it is not. Refuses to know what follows from it.

use std::time::Instant;

use super::beats::Beats;
use super::refused::Refusals;
use super::subscription::Subscription;
use crate::xds::{Name, Version};

/// What is seldom there of a type on a stream.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// Of a full state: the version that the client came with, if it came with any.
    pub(super) brought: Option<Box<str>>,
    /// Of a full state: the version of the set that the client refused (K-08).
    pub(super) refused: Option<Box<Version>>,
    /// Of a full state: the EDS names of the clusters that it adds or changes.
    pub(super) clusters: Vec<Name>,
    /// What the client refused of partial answers (B-22).
    pub(super) refusals: Refusals,
    pub(super) beats: Beats,
    /// Until when a change is held back for the sake of `pace`.
    pub(super) held_back: Option<Instant>,
}

impl Rare {
    const fn new() -> Self {
        Self {
            brought: None,
            refused: None,
            clusters: Vec::new(),
            refusals: Refusals::new(),
            beats: Beats::new(),
            held_back: None,
        }
    }

    /// How many entries are kept.
    pub(super) fn len(&self) -> usize {
        self.refusals.len() + self.beats.len() + self.clusters.len()
    }

    /// Whether there may be something to say although nothing else shows it.
    pub(super) const fn waits(&self) -> bool {
        self.held_back.is_some() || self.refused.is_some()
    }
}

impl Subscription {
    pub(super) fn rare(&self) -> &Rare {
        static NONE: Rare = Rare::new();
        self.rare.as_deref().unwrap_or(&NONE)
    }

    pub(super) fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    pub(super) fn note_clusters(&mut self, clusters: Vec<Name>) {
        if self.rare.is_some() || !clusters.is_empty() {
            self.rare_mut().clusters = clusters;
        }
    }

    pub(super) fn hold_back(&mut self, ends: Option<Instant>) {
        if self.rare.is_some() || ends.is_some() {
            self.rare_mut().held_back = ends;
        }
    }

    /// What was held back until now is not any more.
    pub(super) fn let_on(&mut self, now: Instant) {
        if let Some(rare) = &mut self.rare {
            rare.held_back.take_if(|at| *at <= now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::server::flight::Flight;

    /// A stream keeps one for each of its types side by side: 64 bytes more of a type are the next larger class of the allocator,
    /// for every client. What is on its way is in such a class as well.
    #[test]
    fn what_every_type_of_every_client_takes() {
        assert!(size_of::<Subscription>() <= 320, "{}", size_of::<Subscription>());
        assert!(size_of::<Flight>() <= 64, "{}", size_of::<Flight>());
    }
}
