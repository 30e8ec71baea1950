// SPDX-License-Identifier: Apache-2.0
//! One resource that was read, and the context in which it is checked.

use std::sync::Arc;
use std::time::Instant;

use crate::fleet::violation::Violation;
use crate::measure::tally::Tally;
use crate::origin::ledger::{Content, Mark};
use crate::wire::text;

/// One resource as it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) name: &'a [u8],
    /// The resource's version, in dialects where each resource has one.
    pub(crate) version: Option<&'a [u8]>,
    pub(crate) mark: Mark,
    /// The whole body, if the ledger learns; else empty.
    pub(crate) body: &'a [u8],
}

/// The context of a check: the client, the time, and the tally.
#[derive(Debug)]
pub(crate) struct Eye<'a> {
    pub(crate) now: Instant,
    pub(crate) tally: &'a mut Tally,
    /// Whether changes are awaited at this client.
    pub(crate) awaited: bool,
    /// Whether it had everything before.
    pub(crate) complete: bool,
    /// The newest change of this program at another control plane that counted for this client.
    pub(crate) tried: &'a mut u64,
}

impl Arrival<'_> {
    /// C-18: a content has the same version for all clients, and different contents have different versions.
    pub(crate) fn check(&self, content: &Content, version: &[u8], history: &[Arc<Content>]) -> Result<(), Violation> {
        let before = content.serial.checked_sub(1);
        let previous = before.and_then(|serial| history.get(usize::try_from(serial).ok()?));
        if !content.agrees(version) || previous.and_then(|previous| previous.version()) == Some(version) {
            return Err(Violation::Version(text(self.name)));
        }
        Ok(())
    }
}
