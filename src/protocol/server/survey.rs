//! What there is to send of one type in one turn.
//!
//! Owns what follows for the other types. Does not find it out: that takes a walk over names, once in a turn.

/// What a type has to send. It stays true until a response is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    /// Whether there is anything to add, change or answer, if no response were on its way.
    pub(super) adds: bool,
    /// Whether a removal or a heartbeat is due. It is not looked for beside additions.
    pub(super) removes: bool,
    /// Whether the client has accepted or rejected every response.
    pub(super) settled: bool,
    /// Whether a name waits for an answer.
    pub(super) waits: bool,
}

impl Survey {
    /// Whether anything is due.
    pub(super) const fn is_due(self) -> bool {
        self.adds || self.removes
    }

    /// Whether all that the client needs is sent and settled; what it need not have any more may be left.
    pub(super) const fn is_calm(self) -> bool {
        self.settled && !self.adds
    }

    /// Whether the client certainly has everything that is current, removals included, and no response is on its way.
    pub(super) const fn has_all(self) -> bool {
        self.settled && !self.waits && !self.is_due()
    }
}
