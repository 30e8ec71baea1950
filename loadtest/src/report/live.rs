//! Progress during the run: one line that is updated on a terminal, elsewhere a plain line every ten seconds.

use std::cell::Cell;
use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};

use super::Voice;
use crate::measure::record::{Live, Quantity, Second, Unit, float};

/// Shows the progress of the run.
pub(crate) struct Progress {
    /// The line on a terminal.
    line: Option<ProgressBar>,
    /// Elsewhere: when the last line was written, in milliseconds since the run began.
    told_ms: Cell<f64>,
    voice: Voice,
}

/// How often a plain line is written.
const PLAIN_EVERY_MS: f64 = 10_000.0;

impl Progress {
    pub(crate) fn new(voice: Voice) -> Self {
        let shown = voice != Voice::Silent && std::io::stderr().is_terminal();
        let line = shown.then(|| {
            let line = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                line.set_style(style);
            }
            line
        });
        Self {
            line,
            told_ms: Cell::new(0.0),
            voice,
        }
    }

    /// Shows the current step.
    pub(crate) fn say(&self, text: &str) {
        match &self.line {
            Some(line) => line.println(text),
            None => drop(self.voice.say(&format!("{text}\n"))),
        }
    }

    /// Shows the figures of a second.
    pub(crate) fn tell(&self, live: &Live) {
        match &self.line {
            Some(line) => {
                line.set_message(sentence(live));
                line.tick();
            }
            None if live.second.at_ms - self.told_ms.get() >= PLAIN_EVERY_MS => {
                self.told_ms.set(live.second.at_ms);
                drop(self.voice.say(&format!("  {}\n", sentence(live))));
            }
            None => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
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
