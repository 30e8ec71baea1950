// SPDX-License-Identifier: Apache-2.0
//! What the streams of one connection may still do before others have their turn.
//!
//! Owns the bounds of a turn. Does not know what is read and sent.

use std::time::{Duration, Instant};

use crate::clock;

/// How many bytes of requests are read before other connections have their turn. The last request is read as a whole.
const REQUEST_BYTES_IN_A_TURN: u32 = 256 * 1024;

/// The work for a name, in bytes of a request.
const NAME_BYTES: usize = 128;

/// What the streams of a connection may still do before others have their turn.
pub(in crate::downstream) struct Allowance {
    /// What may still be read in this turn. It limits large requests, so that other connections have their turn.
    read: u32,
    /// How many bytes of responses may be given to the transport, give or take one response.
    room: u32,
    /// Whether the polled stream had no room for a response. Ends when the connection puts that stream in its line.
    denied: bool,
    /// Whether the polled stream gave the transport a response. Ends when the connection notes that it did: its times are looked at after
    /// the transport's turn.
    gave: bool,
}

/// How long the connection works on what its client asks for before other connections have their turn.
const ASKED_IN_A_TURN: Duration = Duration::from_micros(500);

impl Allowance {
    /// Creates an allowance with room for this many bytes of responses.
    pub(in crate::downstream) const fn new(room: usize) -> Self {
        Self {
            read: REQUEST_BYTES_IN_A_TURN,
            room: narrow(room),
            denied: false,
            gave: false,
        }
    }

    /// A turn begins: so much may be read again.
    pub(in crate::downstream) const fn begin(&mut self) {
        self.read = REQUEST_BYTES_IN_A_TURN;
    }

    /// The connection has worked on what its client asks for, in a turn that began then.
    pub(in crate::downstream) fn ask(&mut self, begun: Instant) {
        if clock::now().saturating_duration_since(begun) >= ASKED_IN_A_TURN {
            self.stop();
        }
    }

    /// Subtracts what was read.
    pub(super) fn count(&mut self, bytes: usize, names: usize) {
        self.read = self.read.saturating_sub(narrow(bytes.max(names * NAME_BYTES)));
    }

    /// Nothing more may be read.
    pub(super) const fn stop(&mut self) {
        self.read = 0;
    }

    /// A stream has no room for its response.
    pub(super) const fn deny(&mut self) {
        self.denied = true;
    }

    /// A stream gives the transport a response of so many bytes.
    pub(super) const fn give(&mut self, bytes: usize) {
        self.room = self.room.saturating_sub(narrow(bytes));
        self.gave = true;
    }

    /// Whether a stream gave the transport a response.
    pub(super) const fn has_given(&self) -> bool {
        self.gave
    }

    /// Returns whether a stream had no room; true once each time.
    pub(in crate::downstream) const fn take_denied(&mut self) -> bool {
        std::mem::replace(&mut self.denied, false)
    }

    /// Returns whether a stream gave the transport a response; true once each time.
    pub(in crate::downstream) const fn take_gave(&mut self) -> bool {
        std::mem::replace(&mut self.gave, false)
    }

    /// Whether nothing more may be read, or a stream had no room.
    pub(in crate::downstream) const fn is_spent(&self) -> bool {
        self.read == 0 || self.denied
    }

    /// Returns the room for responses.
    pub(in crate::downstream) const fn room(&self) -> usize {
        self.room as usize
    }

    /// Sets the room for responses.
    pub(in crate::downstream) const fn set_room(&mut self, room: usize) {
        self.room = narrow(room);
    }
}

const fn narrow(bytes: usize) -> u32 {
    if bytes < u32::MAX as usize {
        bytes as u32
    } else {
        u32::MAX
    }
}
