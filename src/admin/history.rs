// SPDX-License-Identifier: Apache-2.0
//! `/history`: the counts of the last hour, so that whoever looks because of an incident sees how it began.
//!
//! Owns the ring and its pace. It is in memory only: a relay that begins anew knows nothing of before, and says since when it knows. Counts
//! nothing itself: it reads the metrics.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::Response;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::MissedTickBehavior;

use super::clusters::State as ServerState;
use super::{Shown, counts, forms, holds};
use crate::answers::{CountSums, HourCounts};
use crate::clock::{self, WallClock};

/// How often the counts are noted.
const PACE: Duration = Duration::from_secs(10);
/// How many are kept: an hour.
const KEPT: usize = 360;

/// The counts of the last hour.
#[derive(Clone, Debug)]
pub struct History(Arc<Mutex<Points>>);

#[derive(Debug)]
struct Points {
    began: Instant,
    /// When the points were noted, the oldest first.
    at: VecDeque<Instant>,
    counts: HourCounts,
    /// The sums at the last point.
    before: Option<(Instant, CountSums)>,
}

impl Default for History {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Points::new(clock::now()))))
    }
}

impl History {
    /// Notes the counts from now on.
    pub(super) async fn keep(&self, shown: &Shown) {
        let mut ticks = tokio::time::interval(PACE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let sums = counts::sums(&shown.metrics.families());
            let away = away(shown);
            let holds = holds::count(shown);
            self.0.lock().note(clock::now(), sums, away, holds);
        }
    }
}

/// Returns how many control planes cannot be reached.
fn away(shown: &Shown) -> usize {
    let clusters = shown.overview.look();
    let servers = clusters.authorities.values().flatten();
    let away = servers.filter(|server| server.state == ServerState::Unreachable.word());
    let mut names: Vec<&str> = away.map(|server| server.server.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

pub(super) async fn answer(State(shown): State<Shown>) -> Response {
    forms::json(&json!(shown.history.0.lock().answer(WallClock::read())))
}

impl Points {
    fn new(began: Instant) -> Self {
        Self {
            began,
            at: VecDeque::new(),
            counts: HourCounts::default(),
            before: None,
        }
    }

    fn note(&mut self, now: Instant, sums: CountSums, away: usize, holds: usize) {
        let before = self.before.replace((now, sums.clone()));
        let Some((then, before)) = before else { return };
        let seconds = now.saturating_duration_since(then).as_secs_f32();
        if seconds <= 0.0 {
            return;
        }
        let more = |of: fn(&CountSums) -> u64| of(&sums).saturating_sub(of(&before));
        #[expect(clippy::cast_precision_loss, reason = "a chart needs no more digits")]
        let each = |of| more(of) as f32 / seconds;
        let spread = spread(&before, &sums);
        put(&mut self.at, now);
        let counts = &mut self.counts;
        put(&mut counts.streams, small(sums.streams));
        put(&mut counts.changes, each(|sums| sums.updates));
        put(&mut counts.deliveries, each(|sums| sums.responses));
        put(&mut counts.median, quantile(&spread, 0.5));
        put(&mut counts.slowest, quantile(&spread, 0.99));
        put(&mut counts.rejections, small(more(|sums| sums.nacks)));
        put(&mut counts.away, small(away as u64));
        put(&mut counts.holds, small(holds as u64));
        put(&mut counts.memory, sums.memory);
        put(&mut counts.processor, each(|sums| sums.processor_millis) / 1000.0);
    }

    fn answer(&self, clock: WallClock) -> HourCounts {
        HourCounts {
            since: clock.time(self.began),
            every_seconds: PACE.as_secs(),
            seconds_ago: self.at.iter().map(|at| clock.age(*at).as_secs()).collect(),
            ..self.counts.clone()
        }
    }
}

/// Adds what was counted between two points, or what there was at the second one.
fn put<T>(list: &mut VecDeque<T>, count: T) {
    list.push_back(count);
    if list.len() > KEPT {
        list.pop_front();
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns how many changes were acknowledged within each bound between two sums, in the order of the bounds.
#[expect(clippy::cast_precision_loss, reason = "a chart needs no more digits")]
fn spread(before: &CountSums, now: &CountSums) -> Vec<(f64, f64)> {
    let earlier = |bound| before.convergence_seconds.get(bound).copied().unwrap_or_default();
    let all = now.convergence_seconds.iter();
    let all = all.map(|(bound, count)| {
        (
            bound.parse().unwrap_or(f64::INFINITY),
            count.saturating_sub(earlier(bound)) as f64,
        )
    });
    let mut spread: Vec<(f64, f64)> = all.collect();
    spread.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    spread
}

/// Returns the time within which this part of all was done, as Prometheus would say it.
fn quantile(spread: &[(f64, f64)], part: f64) -> Option<f32> {
    let (_, all) = *spread.last().filter(|(_, all)| *all > 0.0)?;
    let (mut below, mut under) = (0.0, 0.0);
    for (bound, number) in spread {
        if *number >= part * all {
            let share = if *number > under {
                (part * all - under) / (number - under)
            } else {
                1.0
            };
            let time = if bound.is_finite() {
                below + (bound - below) * share
            } else {
                below
            };
            #[expect(clippy::cast_possible_truncation, reason = "a chart needs no more digits")]
            return Some(time as f32);
        }
        (below, under) = (*bound, *number);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(updates: u64, within: [u64; 3]) -> CountSums {
        let bounds = ["0.01", "0.1", "+Inf"].map(str::to_owned);
        CountSums {
            streams: 43,
            updates,
            responses: updates * 43,
            memory: 5 << 20,
            processor_millis: updates * 10,
            convergence_seconds: bounds.into_iter().zip(within).collect(),
            ..CountSums::default()
        }
    }

    #[test]
    fn the_ring_is_an_hour() {
        let clock = WallClock::read();
        let began = clock.now;
        let mut ring = Points::new(began);
        let number = |at: u32| u64::from(at);
        for at in 0..400_u32 {
            let counts = sums(number(at) * 20, [number(at), number(at) * 2, number(at) * 2]);
            ring.note(began + PACE * at, counts, 1, 2);
        }
        assert_eq!(ring.at.len(), KEPT);
        let hour = ring.answer(WallClock {
            now: began + PACE * 400,
            ..clock
        });
        assert_eq!((hour.seconds_ago[0], hour.seconds_ago[359]), (3600, 10));
        let last = |of: &VecDeque<f32>| of.back().copied();
        assert_eq!(
            (last(&hour.changes), last(&hour.deliveries), hour.streams[359]),
            (Some(2.0), Some(86.0), 43)
        );
        assert_eq!(
            (hour.away[0], hour.holds[359], last(&hour.processor)),
            (1, 2, Some(0.02))
        );
        assert_eq!(hour.median.back(), Some(&Some(0.01)));
    }

    /// Nothing is known before the second look; a pause without changes has no times.
    #[test]
    fn what_is_not_known_is_not_told() {
        let began = clock::now();
        let mut ring = Points::new(began);
        ring.note(began, sums(5, [1, 1, 1]), 0, 0);
        assert!(ring.at.is_empty());
        ring.note(began + PACE, sums(5, [1, 1, 1]), 0, 0);
        assert_eq!(ring.counts.median, [None::<f32>]);
    }

    #[test]
    fn parts_of_a_spread() {
        let spread = [(0.01, 0.0), (0.1, 50.0), (f64::INFINITY, 100.0)];
        assert_eq!(quantile(&spread, 0.25), Some(0.055));
        assert_eq!(quantile(&spread, 0.99), Some(0.1), "no more is known");
        assert_eq!(quantile(&[], 0.5), None);
    }
}
