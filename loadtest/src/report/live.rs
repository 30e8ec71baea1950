// SPDX-License-Identifier: Apache-2.0
//! Progress during the run: a line every ten seconds.

use std::cell::Cell;

use super::Voice;
use crate::measure::record::{Live, Quantity, Second, Unit, float};

/// Shows the progress of the run.
pub(crate) struct Progress {
    /// When the last line was written, in milliseconds since the run began.
    told_ms: Cell<f64>,
    voice: Voice,
}

/// How often a line is written.
const EVERY_MS: f64 = 10_000.0;

impl Progress {
    pub(crate) const fn new(voice: Voice) -> Self {
        Self {
            told_ms: Cell::new(0.0),
            voice,
        }
    }

    /// Shows the current step. Who does not read it is not told.
    pub(crate) fn say(&self, text: &str) {
        drop(self.voice.say(&format!("{text}\n")));
    }

    /// Shows the figures of a second, if it is time for that.
    pub(crate) fn tell(&self, live: &Live) {
        if live.second.at_ms - self.told_ms.get() >= EVERY_MS {
            self.told_ms.set(live.second.at_ms);
            self.say(&format!("  {}", sentence(live)));
        }
    }
}

/// Returns all figures of a second, in one line.
pub(super) fn sentence(live: &Live) -> String {
    let second = &live.second;
    let text = |value, unit| Quantity::new(value, unit).to_string();
    let mut words = vec![
        live.phase.clone().unwrap_or_else(|| "between phases".to_owned()),
        text(second.at_ms, Unit::Millis),
        clients(second),
    ];
    if let Some(times) = second.propagation_micros {
        let [p50, p99] = [times.p50, times.p99].map(|micros| text(float(micros), Unit::Micros));
        words.push(format!("{} deliveries, p50 {p50}, p99 {p99}", second.deliveries));
    }
    let per_second = float(second.bytes) * 1e3 / second.span_ms.max(f64::MIN_POSITIVE);
    words.push(format!("{}/s", text(per_second, Unit::Bytes)));
    if let (Some(cpu), Some(resident)) = (second.server_cpu_percent, second.resident_bytes) {
        let [cpu, resident] = [text(cpu, Unit::Percent), text(float(resident), Unit::Bytes)];
        words.push(format!("server {cpu}, {resident}"));
    }
    words.push(format!("tool {}", text(second.tool_cpu_percent, Unit::Percent)));
    words.join(" | ")
}

/// Returns how many clients there are, how many have a stream, and what is to come to them.
fn clients(second: &Second) -> String {
    let mut text = format!("{} clients", second.clients);
    if let Some(with_stream) = second.with_stream {
        text.push_str(&format!(", {with_stream} with a stream"));
    }
    if let Some(owed) = second.owed.filter(|owed| *owed > 0) {
        text.push_str(&format!(", {owed} deliveries to come"));
    }
    text
}
