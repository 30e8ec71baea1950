// SPDX-License-Identifier: Apache-2.0
//! A fleet that grows over time: lets clients in one after the other, in equal distances. Knows nothing of what they ask for.

use std::time::Duration;

use tokio::time::sleep;

use super::now;
use crate::fleet::Fleet;

/// How often clients are let in.
const STEP: Duration = Duration::from_millis(10);

/// Lets clients in up to the number `to`, evenly over the time; all at once if that is zero. Ends early if a client saw a violation.
pub(super) async fn admit(fleet: &Fleet, to: u32, over: Duration) {
    let (begin, from) = (now(), fleet.admitted());
    loop {
        let passed = begin.elapsed();
        if passed >= over || fleet.progress.violated() > 0 {
            return fleet.admit(to);
        }
        fleet.admit(from + part(to.saturating_sub(from), passed, over));
        sleep(STEP).await;
    }
}

/// Returns how many of so many clients are let in when a part of the time has passed.
fn part(all: u32, passed: Duration, over: Duration) -> u32 {
    let share = passed.as_micros().saturating_mul(1_000_000) / over.as_micros().max(1);
    let part = u128::from(all).saturating_mul(share) / 1_000_000;
    u32::try_from(part).unwrap_or(all).min(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_come_evenly() {
        let of = |millis| part(1000, Duration::from_millis(millis), Duration::from_secs(10));
        assert_eq!([0, 1, 500, 5000, 9999, 20_000].map(of), [0, 0, 50, 500, 999, 1000]);
        assert_eq!(part(u32::MAX, Duration::MAX, Duration::from_secs(1)), u32::MAX);
    }
}
