// SPDX-License-Identifier: Apache-2.0
//! The latest requests and responses of one client, as a few short lines for the report of a violation.

use std::collections::VecDeque;
use std::time::Instant;

use crate::wire::kind::Kind;

/// The latest events.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    lines: VecDeque<Line>,
    /// How many events came before.
    forgotten: u64,
}

#[derive(Debug)]
struct Line {
    at: Instant,
    lane: usize,
    what: What,
}

/// One event.
#[derive(Debug)]
pub(crate) enum What {
    Opened,
    /// A request: the number of names asked for and dropped, of versions held, and the nonce that it acknowledges or rejects.
    Said {
        kind: Kind,
        names: usize,
        dropped: usize,
        held: usize,
        nonce: Box<str>,
        rejected: bool,
    },
    Got {
        kind: Kind,
        nonce: Box<str>,
        version: Box<str>,
        named: u32,
        bytes: usize,
    },
    Ended,
}

const LINES_MAX: usize = 24;

impl Transcript {
    pub(crate) fn note(&mut self, at: Instant, lane: usize, what: What) {
        if self.lines.len() >= LINES_MAX {
            self.lines.pop_front();
            self.forgotten += 1;
        }
        self.lines.push_back(Line { at, lane, what });
    }

    /// Returns the events as text, oldest first, with times before `now`.
    pub(crate) fn lines(&self, now: Instant) -> Vec<String> {
        let before = (self.forgotten > 0).then(|| format!("({} lines before)", self.forgotten));
        let lines = self.lines.iter().map(|Line { at, lane, what }| {
            let ago = now.saturating_duration_since(*at).as_secs_f64();
            format!("-{ago:.3}s stream {lane} {}", what.text())
        });
        before.into_iter().chain(lines).collect()
    }
}

impl What {
    fn text(&self) -> String {
        match self {
            Self::Opened => "opened".to_owned(),
            Self::Ended => "ended".to_owned(),
            Self::Said {
                kind,
                names,
                dropped,
                held,
                nonce,
                rejected,
            } => {
                let verb = if *rejected { "rejects" } else { "answers" };
                let kind = kind.word();
                format!("-> {kind}: asks for {names}, drops {dropped}, holds {held}, {verb} `{nonce}`")
            }
            Self::Got {
                kind,
                nonce,
                version,
                named,
                bytes,
            } => {
                let kind = kind.word();
                format!("<- {kind}: `{nonce}`, version `{version}`, {named} resources, {bytes} bytes")
            }
        }
    }
}
