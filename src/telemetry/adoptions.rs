// SPDX-License-Identifier: Apache-2.0
//! When the last changes of a type were accepted by the last of the clients that were there.
//!
//! Owns the bound, and when a time is not known. Keeps nothing for a client, and does not know who has accepted what: whoever asks counts
//! the clients.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::classes::Class;

/// The last changes of a type.
#[derive(Debug, Default)]
pub struct Adoptions(Mutex<Vec<OngoingAdoption>>);

/// What arrived at one time for the clients of one class.
#[derive(Debug)]
struct OngoingAdoption {
    received: Instant,
    class: Class,
    /// When a client last accepted it.
    last: Instant,
    /// Whether that is known: a client may have accepted several changes at once, some of which it may have had before.
    known: bool,
}

/// How many changes are kept, the newest ones.
const KEPT: usize = 128;

impl Adoptions {
    /// A client of a class, whose stream began at `began`, accepts a response. What was new to it in the response arrived at these times,
    /// or between them; `news`: what arrived first was waited for.
    pub fn accept(&self, new: &RangeInclusive<Instant>, news: bool, class: &Class, began: Instant, now: Instant) {
        let first = *new.start();
        let mut kept = self.0.lock();
        let newer = kept.iter().rev().take_while(|one| one.received >= first).count();
        let at = kept.len() - newer;
        let mut found = false;
        for one in kept.iter_mut().skip(at) {
            if new.contains(&one.received) && one.received >= began && one.class == *class {
                let is_first = one.received == first;
                found |= is_first;
                one.last = now;
                one.known = news && is_first;
            }
        }
        if found || !news {
            return;
        }
        let one = OngoingAdoption {
            received: first,
            class: class.clone(),
            last: now,
            known: true,
        };
        kept.insert(at, one);
        if kept.len() > KEPT {
            kept.remove(0);
        }
    }

    /// Returns how long it took until the last of the clients that were there had accepted what arrived then, if that is known.
    pub fn time(&self, received: Instant, class: &Class) -> Option<Duration> {
        let kept = self.0.lock();
        let found = kept.iter().rfind(|one| one.received == received && one.class == *class);
        let known = found.filter(|one| one.known);
        known.map(|one| one.last.saturating_duration_since(received))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments() -> impl Fn(u64) -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        move |millis| start + Duration::from_millis(millis)
    }

    /// The time of a change is that of its own acceptance, whatever is accepted later.
    #[test]
    fn later_changes_do_not_count() {
        let at = moments();
        let (adoptions, class, other) = (Adoptions::default(), Class::default(), other());
        for change in 1..4 {
            let arrived = at(change * 1000);
            for client in 0..3 {
                adoptions.accept(
                    &(arrived..=arrived),
                    true,
                    &class,
                    at(0),
                    arrived + Duration::from_millis(client),
                );
            }
            adoptions.accept(&(arrived..=arrived), true, &other, at(0), at(90_000));
        }
        for change in 1..4 {
            assert_eq!(
                adoptions.time(at(change * 1000), &class),
                Some(Duration::from_millis(2))
            );
        }
        assert_eq!(adoptions.time(at(1000), &other), Some(Duration::from_secs(89)));
        assert_eq!(adoptions.time(at(1001), &class), None);
    }

    /// Of changes that a client accepted together, only the first one's time is known, until a client accepts another one by itself.
    #[test]
    fn what_is_not_known_is_not_told() {
        let at = moments();
        let (adoptions, class) = (Adoptions::default(), Class::default());
        let accept = |first, last, news, began, now| {
            adoptions.accept(&(at(first)..=at(last)), news, &class, at(began), at(now));
        };
        let time = |received| adoptions.time(at(received), &class).map(|time| time.as_millis());
        for change in [10, 20, 30] {
            accept(change, change, true, 0, change + 1);
        }
        accept(10, 20, true, 0, 50);
        assert_eq!([time(10), time(20), time(30)], [Some(40), None, Some(1)]);
        accept(20, 20, true, 0, 60);
        assert_eq!(time(20), Some(40));
        accept(10, 30, false, 25, 70);
        assert_eq!(
            [time(10), time(20), time(30)],
            [Some(40), Some(40), None],
            "of a client that came after two of them"
        );
    }

    /// The newest changes are kept, in whatever order they are accepted.
    #[test]
    fn there_is_a_bound() {
        let at = moments();
        let (adoptions, class) = (Adoptions::default(), Class::default());
        for change in (0..10 * KEPT as u64).rev() {
            adoptions.accept(&(at(change)..=at(change)), true, &class, at(0), at(change + 7));
        }
        assert_eq!(adoptions.0.lock().len(), KEPT);
        let oldest = 9 * KEPT as u64;
        assert_eq!(adoptions.time(at(oldest), &class), Some(Duration::from_millis(7)));
        assert_eq!(adoptions.time(at(oldest - 1), &class), None);
    }

    fn other() -> Class {
        Class {
            endpoint_collections: true,
            ..Class::default()
        }
    }
}
