// SPDX-License-Identifier: Apache-2.0
//! How long the turns of tasks take: a turn is one poll, and all other tasks of its thread wait until it ends.
//!
//! Owns which turns are counted. Knows nothing of what is done in them.

use std::cell::Cell;
use std::pin::Pin;
use std::time::{Duration, Instant};

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::labels::{Labels, register};
use crate::clock;

/// The turns of each kind of task.
#[derive(Clone, Debug)]
pub struct TurnMetrics {
    /// Client connections until they speak HTTP: TLS handshakes and identities.
    pub entering: TurnTimes,
    /// Client connections.
    pub client: TurnTimes,
    /// What a client connection leaves behind.
    pub leaving: TurnTimes,
    /// What fills views.
    pub view: TurnTimes,
    /// All else.
    pub other: TurnTimes,
}

/// The turns of one kind of task.
#[derive(Clone, Debug)]
pub struct TurnTimes(Histogram);

/// A shorter turn keeps nobody waiting.
const SHORT: Duration = Duration::from_millis(1);
const SECONDS: [f64; 9] = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];

thread_local! {
    /// For how long nobody has waited for the present turn of this thread.
    static LEFT_OUT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Nobody has waited for this part of the turn: others had its thread.
pub fn leave_out(part: Duration) {
    LEFT_OUT.set(LEFT_OUT.get() + part);
}

impl TurnMetrics {
    pub(super) fn register(own: &mut Registry) -> Self {
        let family: Family<Labels<1>, Histogram> = Family::new_with_constructor(|| Histogram::new(SECONDS));
        let family = register(own, "turn_seconds", "Turns of tasks of 1 ms and more", family);
        let of = |task: &str| TurnTimes(family.get_or_create(&[("task", task.to_owned())]).clone());
        Self {
            entering: of("entering"),
            client: of("client"),
            leaving: of("leaving"),
            view: of("view"),
            other: of("other"),
        }
    }
}

impl TurnTimes {
    /// Counts a turn that began then and ends now, unless it is short.
    #[inline]
    pub fn end(&self, begun: Instant) {
        let took = clock::now().saturating_duration_since(begun);
        if took >= SHORT {
            self.count(took);
        }
    }

    /// Counts the turns of a task.
    pub async fn of<F: Future>(&self, mut task: Pin<Box<F>>) -> F::Output {
        std::future::poll_fn(|cx| {
            let begun = clock::now();
            let polled = task.as_mut().poll(cx);
            self.end(begun + LEFT_OUT.take());
            polled
        })
        .await
    }

    #[cold]
    fn count(&self, took: Duration) {
        self.0.observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(registry: &Registry, task: &str) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        let line = format!("turn_seconds_count{{task=\"{task}\"}} ");
        let count = text.lines().find_map(|shown| shown.strip_prefix(&line)).unwrap();
        count.parse().unwrap()
    }

    /// A long turn counts in its own kind, and a short one nowhere.
    #[tokio::test]
    async fn long_turns_count() {
        let mut registry = Registry::default();
        let turns = TurnMetrics::register(&mut registry);
        let now = clock::now();
        turns.client.end(now + Duration::from_secs(3600));
        turns.view.end(now - 2 * SHORT);
        let long = async { std::thread::sleep(2 * SHORT) };
        turns.other.of(Box::pin(long)).await;
        let beside_others = async {
            let begun = clock::now();
            std::thread::sleep(2 * SHORT);
            leave_out(clock::now() - begun);
        };
        turns.leaving.of(Box::pin(beside_others)).await;
        assert_eq!(counted(&registry, "client"), 0);
        assert_eq!(counted(&registry, "leaving"), 0);
        assert_eq!(counted(&registry, "view"), 1);
        assert_eq!(counted(&registry, "other"), 1);
    }
}
