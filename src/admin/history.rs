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
use serde_json::{Map, Value, json};
use tokio::time::MissedTickBehavior;

use super::clusters::State as ServerState;
use super::{Shown, counts, forms, holds};
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
    points: VecDeque<Point>,
    /// The sums at the last point.
    before: Option<(Instant, Value)>,
}

/// What was counted between two points, and what there was at the second one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    at: Instant,
    streams: u32,
    /// A second.
    changes: f32,
    deliveries: f32,
    /// Of the time until changes were acknowledged, in seconds; none if nothing was.
    median: Option<f32>,
    slowest: Option<f32>,
    rejections: u32,
    /// How many control planes could not be reached.
    away: u32,
    holds: u32,
    memory: u64,
    /// Processors.
    processor: f32,
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
    forms::json(&shown.history.0.lock().json(WallClock::read()))
}

impl Points {
    const fn new(began: Instant) -> Self {
        Self {
            began,
            points: VecDeque::new(),
            before: None,
        }
    }

    fn note(&mut self, now: Instant, sums: Value, away: usize, holds: usize) {
        let before = self.before.replace((now, sums.clone()));
        let Some((then, before)) = before else { return };
        let seconds = now.saturating_duration_since(then).as_secs_f32();
        if seconds <= 0.0 {
            return;
        }
        let number = |sums: &Value, name: &str| sums.get(name).and_then(Value::as_u64).unwrap_or_default();
        let more = |name: &str| number(&sums, name).saturating_sub(number(&before, name));
        #[expect(clippy::cast_precision_loss, reason = "a chart needs no more digits")]
        let each = |name: &str| more(name) as f32 / seconds;
        let spread = spread(&before, &sums);
        if self.points.len() == KEPT {
            self.points.pop_front();
        }
        self.points.push_back(Point {
            at: now,
            streams: small(number(&sums, "streams")),
            changes: each("updates"),
            deliveries: each("responses"),
            median: quantile(&spread, 0.5),
            slowest: quantile(&spread, 0.99),
            rejections: small(more("nacks")),
            away: small(away as u64),
            holds: small(holds as u64),
            memory: number(&sums, "memory"),
            processor: each("processor_millis") / 1000.0,
        });
    }

    /// Returns the points, the oldest first, each list by itself.
    fn json(&self, clock: WallClock) -> Value {
        let list = |of: fn(&Point) -> Value| self.points.iter().map(of).collect::<Vec<Value>>();
        let ages = self.points.iter().map(|point| clock.age(point.at).as_secs());
        json!({
            "since": clock.time(self.began),
            "every_seconds": PACE.as_secs(),
            "seconds_ago": ages.collect::<Vec<_>>(),
            "streams": list(|point| point.streams.into()),
            "changes": list(|point| point.changes.into()),
            "deliveries": list(|point| point.deliveries.into()),
            "median": list(|point| point.median.into()),
            "slowest": list(|point| point.slowest.into()),
            "rejections": list(|point| point.rejections.into()),
            "away": list(|point| point.away.into()),
            "holds": list(|point| point.holds.into()),
            "memory": list(|point| point.memory.into()),
            "processor": list(|point| point.processor.into()),
        })
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns how many changes were acknowledged within each bound between two sums, in the order of the bounds.
fn spread(before: &Value, now: &Value) -> Vec<(f64, f64)> {
    let all = |sums: &Value| sums.get("convergence_seconds").and_then(Value::as_object).cloned();
    let (before, now) = (all(before).unwrap_or_default(), all(now).unwrap_or_default());
    let buckets = |sums: &Map<String, Value>, bound: &str| sums.get(bound).and_then(Value::as_f64).unwrap_or_default();
    let mut spread: Vec<(f64, f64)> = now
        .keys()
        .map(|bound| {
            let more = buckets(&now, bound) - buckets(&before, bound);
            (bound.parse().unwrap_or(f64::INFINITY), more)
        })
        .collect();
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

    fn sums(updates: u64, within: [u64; 3]) -> Value {
        let [ten, hundred, all] = within;
        json!({
            "streams": 43, "updates": updates, "responses": updates * 43, "nacks": 0, "memory": 5 << 20, "processor_millis": updates * 10,
            "convergence_seconds": { "0.01": ten, "0.1": hundred, "+Inf": all },
        })
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
        assert_eq!(ring.points.len(), KEPT);
        let json = ring.json(WallClock {
            now: began + PACE * 400,
            ..clock
        });
        assert_eq!(
            (&json["seconds_ago"][0], &json["seconds_ago"][359]),
            (&3600.into(), &10.into())
        );
        let last = ring.points.back().unwrap();
        assert_eq!((last.changes, last.deliveries, last.streams), (2.0, 86.0, 43));
        assert_eq!((last.away, last.holds, last.processor), (1, 2, 0.02));
        assert_eq!(last.median, Some(0.01));
    }

    /// Nothing is known before the second look; a pause without changes has no times.
    #[test]
    fn what_is_not_known_is_not_told() {
        let began = clock::now();
        let mut ring = Points::new(began);
        ring.note(began, sums(5, [1, 1, 1]), 0, 0);
        assert!(ring.points.is_empty());
        ring.note(began + PACE, sums(5, [1, 1, 1]), 0, 0);
        assert_eq!(ring.points.back().unwrap().median, None);
    }

    #[test]
    fn parts_of_a_spread() {
        let spread = [(0.01, 0.0), (0.1, 50.0), (f64::INFINITY, 100.0)];
        assert_eq!(quantile(&spread, 0.25), Some(0.055));
        assert_eq!(quantile(&spread, 0.99), Some(0.1), "no more is known");
        assert_eq!(quantile(&[], 0.5), None);
    }
}
