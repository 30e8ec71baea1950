//! What the server said about the resources that are held, besides their content.
//!
//! Owns the words that belong to the last response. No decision depends on them.

use std::time::Instant;

use super::Feed;
use crate::client::ingest::Message;
use xds::{Name, Phase, ServerWords, Version};

/// The words of the last response.
#[derive(Debug, Default)]
pub(super) struct LastWords {
    nonce: String,
    identifier: String,
}

impl Feed {
    /// Notes that a response came, its words, and whether another relay says them.
    pub(in crate::client) fn hear(&mut self, message: &Message, now: Instant) {
        self.silence.hear(now);
        self.last_words.nonce.clone_from(&message.nonce);
        self.last_words.identifier.clone_from(&message.identifier);
        if message.is_relayed() {
            self.phase = Phase::Relayed;
        }
    }

    /// Returns the version of the content that is held under a name.
    pub(super) fn holds(&self, name: &Name) -> Option<Version> {
        let key = self.kept.canonical(name.as_str())?;
        self.kept.resource(key.as_str()).map(|resource| resource.version())
    }

    /// Returns what the server said about the resource of this name, if it is held.
    pub(in crate::client) fn words(&self, name: &Name) -> Option<ServerWords> {
        let key = self.kept.canonical(name.as_str())?;
        let (_, version) = self.kept.held(key.as_str())?;
        Some(ServerWords {
            version: version.as_str().into(),
            nonce: self.last_words.nonce.as_str().into(),
            identifier: self.last_words.identifier.as_str().into(),
        })
    }
}
