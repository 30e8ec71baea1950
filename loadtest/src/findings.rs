//! What a scenario with a story found: one line for each thing that was looked at, and whether all of them were as they must
//! be. It only formats.

use std::fmt;
use std::time::Duration;

use crate::progress::Breach;
use crate::record::Recorder;
use crate::report::millis;

/// What was found, in order.
#[derive(Debug)]
pub(crate) struct Findings {
    setup: String,
    figures: Vec<Figure>,
    failures: Vec<String>,
}

/// One thing that was looked at.
#[derive(Debug)]
struct Figure {
    what: String,
    value: String,
}

impl Findings {
    /// Nothing yet, about this.
    pub(crate) const fn new(setup: String) -> Self {
        Self {
            setup,
            figures: Vec::new(),
            failures: Vec::new(),
        }
    }

    pub(crate) fn note(&mut self, what: &str, value: impl fmt::Display) {
        self.figures.push(Figure {
            what: what.to_owned(),
            value: value.to_string(),
        });
    }

    pub(crate) fn time(&mut self, what: &str, taken: Duration) {
        self.note(what, format_args!("{:.0} ms", millis(taken)));
    }

    /// Notes a count that must be `wanted`.
    pub(crate) fn expect(&mut self, what: &str, found: u64, wanted: u64) {
        if found == wanted {
            return self.note(what, found);
        }
        self.note(what, format_args!("{found}, not {wanted}"));
        self.fail(format!("{what}: {found}, not {wanted}"));
    }

    /// What a client saw that must not be, and what was said before.
    pub(crate) fn breach(&mut self, breach: Breach) {
        let Breach {
            client,
            what,
            transcript,
        } = breach;
        let lines = transcript.into_iter().map(|line| format!("\n      {line}"));
        self.fail(format!("client {client}: {what}{}", lines.collect::<String>()));
    }

    pub(crate) fn fail(&mut self, failure: String) {
        self.failures.push(failure);
    }

    /// Writes all of it into the record.
    pub(crate) fn pour(&self, recorder: &Recorder) {
        recorder.describe(&self.setup);
        for Figure { what, value } in &self.figures {
            recorder.note(what.trim(), value);
        }
        self.failures.iter().for_each(|failure| recorder.fail(failure, None));
    }
}
