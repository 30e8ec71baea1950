//! What was noted of the last message in either direction, for whoever keeps count.
//!
//! Owns the notes. Refuses to know who reads them.

use super::Client;
use crate::xds::TypeUrl;

/// What was in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Of which type.
    pub type_url: TypeUrl,
    /// How many resources were in order.
    pub valid: usize,
    /// How many were not.
    pub invalid: usize,
}

impl Client {
    /// Returns the type that the last request asked for, once, if it was the first of that type on the stream.
    pub const fn take_asked(&mut self) -> Option<TypeUrl> {
        self.asked.take()
    }

    /// Returns what was in the last response, once.
    pub const fn take_received(&mut self) -> Option<Received> {
        self.received.take()
    }
}
