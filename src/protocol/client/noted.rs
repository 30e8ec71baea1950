//! Notes on the last messages in either direction, for metrics and operators.
//!
//! Owns the notes. Does not know who reads them.

use super::Client;
use xds::{Name, ServerWords, TypeUrl};

/// The content of a response, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The type of the response.
    pub type_url: TypeUrl,
    /// How many resources were sound.
    pub valid: usize,
    /// How many were faulty.
    pub invalid: usize,
    /// F-16: how many entries and removals were ignored because they are for some clients only.
    pub ignored: usize,
}

impl Client {
    /// Returns the type that the last request asked for, once, if it was the first of that type on the stream.
    pub const fn take_asked(&mut self) -> Option<TypeUrl> {
        self.asked.take()
    }

    /// Returns what the server said about a resource, if it is held.
    #[must_use]
    pub fn words(&self, type_url: &TypeUrl, name: &Name) -> Option<ServerWords> {
        self.feeds.get(type_url)?.words(name)
    }

    /// Returns what was in the last response, once.
    pub const fn take_received(&mut self) -> Option<Received> {
        self.received.take()
    }
}
