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
    /// The type that the last request asked for, if it was the first of that type on the stream and nobody has asked yet.
    pub const fn take_asked(&mut self) -> Option<TypeUrl> {
        self.asked.take()
    }

    /// What was in the last response, if nobody has asked yet.
    pub const fn take_received(&mut self) -> Option<Received> {
        self.received.take()
    }
}
