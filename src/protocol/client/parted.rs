//! A type that moves from one stream to another.
//!
//! Owns that the held content moves with it. Does not know why the type moves.

use std::sync::Arc;

use super::Client;
use super::feed::Feed;
use xds::{Changes, Dialect, ResourceError, TypeUrl};

/// Everything that one machine knows of a type, on its way to another machine for the same server.
#[derive(Debug)]
pub struct Parted {
    type_url: TypeUrl,
    feed: Box<Feed>,
    versions_of: Dialect,
}

impl Client {
    /// Returns the client's half of another stream to the same server, which sees the same node.
    #[must_use]
    pub fn beside(&self) -> Self {
        let beside = Self::new(self.settings.clone(), self.dialect, self.node.clone());
        Self {
            relays: self.relays.clone(),
            twins: self.twins.clone(),
            ..beside
        }
    }

    /// Removes the type from this stream, if it is there, so that it can join another.
    pub fn part(&mut self, type_url: &TypeUrl) -> Option<(Parted, Vec<Changes>)> {
        let mut feed = self.feeds.remove(type_url)?;
        self.agenda.remove(type_url);
        let unanswered = feed.disconnected();
        let parted = Parted {
            type_url: type_url.clone(),
            feed,
            versions_of: self.versions_of,
        };
        Some((parted, unanswered.into_iter().collect()))
    }

    /// Adds a type from another stream. Nothing of that type may be wanted here before.
    pub fn join(&mut self, parted: Parted) -> Option<Changes> {
        let Parted {
            type_url,
            mut feed,
            versions_of,
        } = parted;
        if !feed.wanted() {
            return None;
        }
        if versions_of != self.versions_of {
            feed.forget_versions();
        }
        if self.stream.is_some() {
            let patience = self.patience(&type_url);
            feed.connected(self.dialect, self.versions_of == self.dialect, patience);
        }
        self.feeds.insert(type_url.clone(), feed);
        let told = self.tell_unserved(&type_url, None);
        self.note(&type_url);
        told
    }

    /// The server ends the stream whenever it is asked for these types: every name that still waits gets this error (E-09).
    pub fn handle_refused(&mut self, words: &str) -> Vec<Changes> {
        let error = Arc::new(ResourceError::refused(words));
        let told = self.feeds.values_mut().filter_map(|feed| feed.refused(&error));
        told.collect()
    }
}
