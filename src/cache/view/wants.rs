//! What the writer must tell upstream.
//!
//! Owns how much of it the writer takes in one turn. Does not know who wants it.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::View;
use xds::{Target, TypeUrl, Want};

impl View {
    /// Returns what the writer must tell upstream. A want ends only after the linger time, and then the view has forgotten what
    /// it knew of the target: if the want begins anew, the server must be asked again.
    #[must_use]
    pub fn take_wants(&self, now: Instant) -> Vec<Want> {
        let cut = self.cut();
        // F-17: a resource that may not be cached is not kept after its last subscriber has gone.
        let fleeting = |type_url: &TypeUrl, target: &Target| match target {
            Target::Wildcard => false,
            Target::Name(name) => {
                let found = cut.slot(type_url).and_then(|slot| slot.named.resource(name));
                found.is_some_and(|resource| !resource.may_be_cached())
            }
        };
        let more = self.end_some();
        let mut written = self.written.lock();
        let turn = self.leases.turn(now, &self.sets, &fleeting);
        let short = turn.is_short();
        if more || short {
            self.interest.notify_one();
        }
        self.behind.store(short, Ordering::Relaxed);
        written.forget(&turn.ended);
        let wants = written.tell(turn.wants);
        drop(written);
        if !turn.ended.is_empty() {
            self.forget(&turn.ended);
        }
        wants
    }

    /// Whether the last call of [`View::take_wants`] has returned only some of them: very many at once would keep a thread from everybody
    /// else. The next call returns more.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Relaxed)
    }
}
