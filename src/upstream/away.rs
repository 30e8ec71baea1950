// SPDX-License-Identifier: Apache-2.0
//! How often it is logged that a server cannot be reached, is back, answers, refuses streams, or ends them.
//!
//! Owns the pace of these lines. Does not write them, and does not decide what a failure is.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::telemetry::LinePace;

/// The failures of one server: one line when they begin, and one each minute while they go on or come again, however many streams
/// fail.
#[derive(Debug, Default)]
pub(super) struct Away(Mutex<AwayState>);

#[derive(Debug, Default)]
struct AwayState {
    /// Since when it has not been reached.
    begun: Option<Instant>,
    /// Whether that was logged.
    told: bool,
    failures: LinePace,
    /// Of single streams: they say nothing about the others.
    refusals: LinePace,
    /// Of streams that were answered.
    ends: LinePace,
    /// Of streams that are answered.
    answers: LinePace,
    /// Of streams that were not answered in one dialect, and are tried in the other one.
    dialects: LinePace,
}

impl Away {
    /// An attempt failed; with `refusal`, the server was reached and refused it. Returns how many failures were not logged since
    /// the last line, if this one is to be logged.
    pub(super) fn failed(&self, refusal: bool, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        if refusal {
            return state.refusals.admit(now);
        }
        state.begun.get_or_insert(now);
        let line = state.failures.admit(now);
        state.told |= line.is_some();
        line
    }

    /// A stream is answered, and the same follows.
    pub(super) fn answered(&self, now: Instant) -> Option<u64> {
        self.0.lock().answers.admit(now)
    }

    /// A stream was not answered in one dialect, and the same follows.
    pub(super) fn declined(&self, now: Instant) -> Option<u64> {
        self.0.lock().dialects.admit(now)
    }

    /// A stream that was answered ended. Returns how many ends were not logged since the last line, if this one is to be logged.
    pub(super) fn ended(&self, now: Instant) -> Option<u64> {
        self.0.lock().ends.admit(now)
    }

    /// The server answered. Returns how long attempts had failed, if that was logged.
    pub(super) fn over(&self, now: Instant) -> Option<Duration> {
        let mut state = self.0.lock();
        let (begun, told) = (state.begun.take()?, std::mem::take(&mut state.told));
        told.then(|| now.saturating_duration_since(begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_when_it_goes_one_each_minute_and_one_when_it_is_back() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let away = Away::default();
        assert_eq!(away.over(start), None, "it was not away");
        let said: Vec<(u64, u64)> = (0..150)
            .filter_map(|second| Some((second, away.failed(false, at(second))?)))
            .collect();
        assert_eq!(said, [(0, 0), (60, 59), (120, 59)]);
        assert_eq!(away.over(at(150)), Some(Duration::from_secs(150)));
        assert_eq!((away.over(at(151)), away.failed(false, at(152))), (None, None));
        assert_eq!(away.failed(false, at(180)), Some(30));
    }

    /// A server that comes and goes each second has one line a minute of each kind, with how many were not written.
    #[test]
    fn a_server_that_flaps() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let away = Away::default();
        let mut lines = Vec::new();
        for second in 0..120 {
            let now = start + Duration::from_secs(second);
            lines.extend(away.failed(false, now).map(|count| (second, "failed", count)));
            lines.extend(away.over(now).map(|_| (second, "over", 0)));
            lines.extend(away.answered(now).map(|count| (second, "answered", count)));
            lines.extend(away.ended(now).map(|count| (second, "ended", count)));
        }
        let minute = |second, count| {
            ["failed", "over", "answered", "ended"].map(|kind| (second, kind, if kind == "over" { 0 } else { count }))
        };
        assert_eq!(lines, [minute(0, 0), minute(60, 59)].concat());
    }

    /// Refusals and ends of single streams do not make a server one that is away.
    #[test]
    fn refusals_and_ends_have_lines_of_their_own() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let away = Away::default();
        assert_eq!((away.ended(start), away.ended(start)), (Some(0), None));
        assert_eq!((away.failed(true, start), away.failed(true, start)), (Some(0), None));
        assert_eq!(
            (away.failed(false, start), away.over(start)),
            (Some(0), Some(Duration::ZERO))
        );
        assert_eq!(away.failed(true, start), None);
        let later = start + Duration::from_secs(60);
        assert_eq!((away.failed(true, later), away.ended(later)), (Some(2), Some(1)));
    }
}
