// SPDX-License-Identifier: Apache-2.0
//! Detects a peer that does not read.

use std::time::{Duration, Instant};

/// Remembers since when the progress of a peer has not changed.
#[derive(Debug, Default)]
pub(super) struct Stall {
    /// The number, and when it was first seen. Most of the time nothing waits, and then nothing is allocated.
    seen: Option<Box<(u64, Instant)>>,
}

impl Stall {
    /// Records the progress of the peer; `None` while nothing waits for it. Returns when it will have been stuck for `bound`.
    pub(super) fn note(&mut self, progress: Option<u64>, bound: Option<Duration>, now: Instant) -> Option<Instant> {
        let Some(progress) = progress else {
            self.seen = None;
            return None;
        };
        let (seen, since) = &mut **self.seen.get_or_insert_with(|| Box::new((progress, now)));
        if *seen != progress {
            (*seen, *since) = (progress, now);
        }
        bound.and_then(|bound| since.checked_add(bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_peer_that_owes_and_does_not_move_is_stuck() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let bound = Some(Duration::from_secs(60));
        let mut stall = Stall::default();
        assert_eq!(stall.note(None, bound, at(0)), None);
        assert_eq!(stall.note(Some(5), bound, at(10)), Some(at(70)));
        assert_eq!(stall.note(Some(5), bound, at(20)), Some(at(70)));
        assert_eq!(stall.note(Some(6), bound, at(30)), Some(at(90)));
        assert_eq!(stall.note(None, bound, at(40)), None);
        assert_eq!(stall.note(Some(6), bound, at(50)), Some(at(110)));
        assert_eq!(stall.note(Some(6), None, at(50)), None);
    }
}
