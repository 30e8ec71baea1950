// SPDX-License-Identifier: Apache-2.0
//! Tokens whose signature was found to be wrong a moment ago.
//!
//! Owns how many are remembered, and for how long. A token is remembered as a hash, whose secret nobody knows. Knows nothing of keys.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The tokens that were refused last, in the order in which they were refused.
#[derive(Debug, Default)]
pub(super) struct RefusedTokens {
    secret: RandomState,
    last: Mutex<VecDeque<(u64, Instant)>>,
}

/// Enough for the clients of a few workloads whose issuer is wrong, and quick to look through.
const TOKENS_MAX: usize = 32;
const REMEMBERED: Duration = Duration::from_secs(10);

impl RefusedTokens {
    /// Notes that the signature of this token is wrong.
    pub(super) fn note(&self, token: &str, now: Instant) {
        let hash = self.secret.hash_one(token);
        let mut last = self.last.lock();
        forget(&mut last, now);
        if last.len() >= TOKENS_MAX {
            last.pop_front();
        }
        last.push_back((hash, now));
    }

    /// Whether this token was refused a moment ago.
    pub(super) fn contains(&self, token: &str, now: Instant) -> bool {
        let mut last = self.last.lock();
        forget(&mut last, now);
        // Nearly always there are none, and then nothing is hashed.
        !last.is_empty() && {
            let hash = self.secret.hash_one(token);
            last.iter().any(|(known, _)| *known == hash)
        }
    }
}

fn forget(last: &mut VecDeque<(u64, Instant)>, now: Instant) {
    while last.front().is_some_and(|(_, at)| *at + REMEMBERED <= now) {
        last.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_for_seconds() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let refused = RefusedTokens::default();
        assert!(!refused.contains("a", now));
        refused.note("a", now);
        assert!(refused.contains("a", now + REMEMBERED / 2) && !refused.contains("b", now));
        assert!(!refused.contains("a", now + REMEMBERED));
        for n in 0..10 * TOKENS_MAX {
            refused.note(&n.to_string(), now);
        }
        let known = (0..10 * TOKENS_MAX).filter(|n| refused.contains(&n.to_string(), now));
        assert_eq!(
            known.collect::<Vec<_>>(),
            (9 * TOKENS_MAX..10 * TOKENS_MAX).collect::<Vec<_>>()
        );
    }
}
