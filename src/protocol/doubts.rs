// SPDX-License-Identifier: Apache-2.0
//! Types for which a server seems to be deaf on a stream that many types share (E-27).
//!
//! Owns how often such a type may be asked for anew, on a stream of its own: once, and then after longer and longer pauses, because most
//! servers that say nothing have nothing to say. Knows nothing of streams.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use xds::TypeUrl;

/// The types that were doubted of late.
#[derive(Debug, Default)]
pub struct Doubts(BTreeMap<TypeUrl, Doubt>);

#[derive(Debug)]
struct Doubt {
    last: Instant,
    /// How long it is not asked for anew after that.
    pause: Duration,
}

const FIRST: Duration = Duration::from_secs(60);
const MOST: Duration = Duration::from_secs(3600);
/// A type that was not doubted in this time counts as new.
const FORGOTTEN: Duration = Duration::from_secs(2 * 3600);
/// Clients can invent types, so only this many are told apart.
const TYPES_MAX: usize = 256;

impl Doubts {
    /// The server has passed over a question. Returns whether to ask it anew.
    pub fn handle_doubt(&mut self, type_url: &TypeUrl, now: Instant) -> bool {
        self.0.retain(|_, doubt| now < doubt.last + FORGOTTEN);
        let pause = match self.0.get(type_url) {
            Some(doubt) if now < doubt.last + doubt.pause => return false,
            Some(doubt) => (doubt.pause * 2).min(MOST),
            None if self.0.len() >= TYPES_MAX => return false,
            None => FIRST,
        };
        self.0.insert(type_url.clone(), Doubt { last: now, pause });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(number: usize) -> TypeUrl {
        TypeUrl::new(&format!("type.googleapis.com/acme.T{number}"))
    }

    /// A server that never answers for names that do not exist is asked anew once, and then at most once in an hour.
    #[test]
    fn once_and_then_backed_off() {
        #[expect(clippy::disallowed_methods, reason = "a test begins at some instant")]
        let start = Instant::now();
        let mut doubts = Doubts::default();
        // Somebody asks for another name that does not exist in each quarter of a minute, for a day.
        let asked =
            (0..24 * 240).filter(|quarter| doubts.handle_doubt(&of(0), start + Duration::from_secs(15) * *quarter));
        let asked: Vec<u32> = asked.collect();
        assert_eq!(asked[..4], [0, 4, 12, 28], "1, 2 and 4 minutes");
        assert_eq!(asked.len(), 29);
        assert!(doubts.handle_doubt(&of(1), start), "another type");
        for number in 2..TYPES_MAX {
            doubts.handle_doubt(&of(number), start + MOST * 24);
        }
        assert_eq!(
            doubts.0.len(),
            TYPES_MAX - 1,
            "the type of the first day's morning is forgotten"
        );
        assert!(doubts.handle_doubt(&of(TYPES_MAX), start + MOST * 24));
        assert!(!doubts.handle_doubt(&of(TYPES_MAX + 1), start + MOST * 24));
        assert!(doubts.handle_doubt(&of(TYPES_MAX + 1), start + MOST * 24 + FORGOTTEN));
    }
}
