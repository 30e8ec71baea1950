//! A type that moves from one stream to another.
//!
//! Owns that what is held moves with it. Refuses to know why it moves.

use std::sync::Arc;

use super::Client;
use super::feed::Feed;
use crate::xds::{Changes, Dialect, ResourceError, TypeUrl};

/// All that one machine knows of a type, on its way to another machine for the same server.
#[derive(Debug)]
pub struct Parted {
    type_url: TypeUrl,
    feed: Feed,
    versions_of: Dialect,
}

impl Client {
    /// The type moves away from this stream, if it is there.
    pub fn part(&mut self, type_url: &TypeUrl) -> Option<(Parted, Vec<Changes>)> {
        let mut feed = self.feeds.remove(type_url)?;
        self.agenda.remove(type_url);
        let unanswered = feed.disconnected().map(|wildcard| Changes {
            type_url: type_url.clone(),
            wildcard,
            updates: Vec::new(),
            complete: None,
            answered: Some(false),
        });
        let parted = Parted {
            type_url: type_url.clone(),
            feed,
            versions_of: self.versions_of,
        };
        Some((parted, unanswered.into_iter().collect()))
    }

    /// A type moves to this stream, of which nothing of the kind is wanted so far.
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
        let told = self.tell_unserved(&type_url);
        self.note(&type_url);
        told
    }

    /// The server ends the stream whenever it is asked for what is here: whoever waits for a name of it is told so (E-09).
    pub fn handle_refused(&mut self, words: &str) -> Vec<Changes> {
        let error = Arc::new(ResourceError::refused(words));
        let told = self.feeds.values_mut().filter_map(|feed| feed.refused(&error));
        told.collect()
    }
}
