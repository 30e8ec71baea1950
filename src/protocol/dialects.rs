// SPDX-License-Identifier: Apache-2.0
//! Which of the two dialects a server is asked in, and why (E-23).
//!
//! Owns what was learned of the server's dialects. Knows nothing of streams: how one ended comes in as an [`Ending`].

use std::fmt;
use std::sync::Arc;

use super::ending::{Ending, Refusal};
use xds::Dialect;

/// The dialects of one server, shared by all streams to it.
#[derive(Clone, Debug)]
pub struct Dialects {
    /// Whether delta may be tried.
    both: bool,
    /// Whether a status that may pass is a reason to try the other dialect.
    passing: bool,
    /// The dialect that the server answers in, and the words with which it refused the other one.
    kept: Option<(Dialect, Arc<str>)>,
    /// How many streams were answered in delta.
    delta_answers: u64,
}

/// Why a stream speaks its dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The configuration says so.
    Configured,
    /// It is the one that is tried first.
    Preferred,
    /// The server refused the other dialect with these words. This holds for all streams while the process lives.
    Refused(Arc<str>),
    /// The last stream in the other dialect ended with these words before it was answered. This holds for one stream.
    Unanswered(Arc<str>),
}

/// The choice of the dialect for one stream, over all its attempts.
///
/// Invariant: `refused` is set from the refusal in one dialect until the other dialect is answered or refused.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Whether what this stream learns decides for all streams to the server.
    decides: bool,
    refused: Option<Declined>,
    /// How many times in a row delta was not answered, while the other dialect was or could not be tried. The row ends when any stream to the
    /// server is answered in delta.
    in_vain: u32,
    /// How many streams to the server had been answered in delta when this one last ended unanswered in delta.
    delta_answers: u64,
}

/// A dialect in which the stream ended before it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declined {
    /// The dialect.
    pub dialect: Dialect,
    /// How the stream ended.
    pub ending: Ending,
    /// The words of that end.
    pub words: Arc<str>,
}

/// What to do when a stream ended before it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try the other dialect at once.
    Other,
    /// G-02: the server has failed. Contains the refusal of the other dialect, if there was one.
    Failed(Option<Declined>),
}

/// After this many delta attempts in a row without an answer, a stream stops trying delta.
const IN_VAIN: u32 = 3;

impl Dialects {
    /// Creates the dialects of a server of which nothing is known. With `both` delta is tried first; without it, never.
    #[must_use]
    pub const fn new(both: bool) -> Self {
        Self {
            both,
            passing: true,
            kept: None,
            delta_answers: 0,
        }
    }

    /// The same for somebody who asks once: a status that may pass is the answer, because it has the reason.
    #[must_use]
    pub const fn of_one_question(both: bool) -> Self {
        Self {
            both,
            passing: false,
            kept: None,
            delta_answers: 0,
        }
    }

    /// Returns the dialect that is tried first, and why.
    pub fn first(&self) -> (Dialect, Why) {
        match &self.kept {
            Some((dialect, words)) => (*dialect, Why::Refused(words.clone())),
            None if self.both => (Dialect::Delta, Why::Preferred),
            None => (Dialect::Sotw, Why::Configured),
        }
    }
}

impl Trial {
    /// Creates the choice for a new stream. With `decides`, what this stream learns holds for all streams to the server.
    #[must_use]
    pub const fn new(decides: bool) -> Self {
        Self {
            decides,
            refused: None,
            in_vain: 0,
            delta_answers: 0,
        }
    }

    /// Returns the dialect of the next attempt, and why.
    pub fn next(&self, dialects: &Dialects) -> (Dialect, Why) {
        match &self.refused {
            Some(refused) if refused.ending.refusal() == Refusal::Clear => {
                (refused.dialect.other(), Why::Refused(refused.words.clone()))
            }
            Some(refused) => (refused.dialect.other(), Why::Unanswered(refused.words.clone())),
            None => dialects.first(),
        }
    }

    /// Returns whether the server seems not to speak delta: it refused delta clearly, or did not answer it in several attempts.
    pub const fn is_without_delta(&self) -> bool {
        self.in_vain >= IN_VAIN
    }

    /// The server answers in this dialect. Returns whether that decides for all streams from now on.
    pub fn handle_answer(&mut self, dialect: Dialect, dialects: &mut Dialects) -> bool {
        dialects.delta_answers += u64::from(dialect == Dialect::Delta);
        let Some(refused) = self.refused.take() else {
            if dialect == Dialect::Delta {
                self.in_vain = 0;
            }
            return false;
        };
        self.in_vain = self.in_vain.saturating_add(1);
        // A server that crashes or resets the connection at each delta stream must not be made to do so for ever.
        let clear = refused.ending.refusal() == Refusal::Clear || self.in_vain >= IN_VAIN;
        if !clear || !self.decides {
            return false;
        }
        dialects.kept = Some((dialect, refused.words));
        true
    }

    /// A stream in this dialect ended before it was answered, although the connection worked. `other`: what is wanted can be
    /// requested in the other dialect as well.
    pub fn handle_end(&mut self, refused: Declined, other: bool, dialects: &Dialects) -> Next {
        if refused.dialect == Dialect::Delta && self.delta_answers != dialects.delta_answers {
            // A server may have nothing to say on one stream, which then ends with the others.
            (self.delta_answers, self.in_vain) = (dialects.delta_answers, 0);
        }
        let before = self.refused.take();
        let alternates = match refused.ending.refusal() {
            Refusal::Denied => return Next::Failed(None),
            Refusal::Clear => true,
            Refusal::Passing => {
                let counts = dialects.passing || refused.ending == Ending::Broken;
                counts && refused.dialect == Dialect::Delta
            }
        };
        if !other && refused.dialect == Dialect::Delta {
            let clear = refused.ending.refusal() == Refusal::Clear;
            self.in_vain = if clear { IN_VAIN } else { self.in_vain.saturating_add(1) };
            return Next::Failed(before);
        }
        if before.is_none() && alternates && dialects.both {
            self.refused = Some(refused);
            return Next::Other;
        }
        Next::Failed(before)
    }
}

impl Why {
    /// Returns a word for a metric.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Preferred => "preferred",
            Self::Refused(_) => "refused",
            Self::Unanswered(_) => "unanswered",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("the configuration says so"),
            Self::Preferred => f.write_str("it is tried first"),
            Self::Refused(words) => write!(f, "the server refused the other dialect: {words}"),
            Self::Unanswered(words) => write!(f, "the last stream in the other dialect got no answer: {words}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(dialect: Dialect, ending: Ending) -> Declined {
        Declined {
            dialect,
            ending,
            words: Arc::from("words"),
        }
    }

    /// Delta ends in this way, and state of the world answers. Returns the dialect of the next stream.
    fn after(trial: &mut Trial, dialects: &mut Dialects, ending: Ending) -> Dialect {
        let next = trial.handle_end(refused(Dialect::Delta, ending), true, dialects);
        assert_eq!(next, Next::Other, "{ending:?}");
        assert_eq!(trial.next(dialects).0, Dialect::Sotw, "{ending:?}");
        trial.handle_answer(Dialect::Sotw, dialects);
        trial.next(dialects).0
    }

    /// E-23: which endings decide for all streams, and which for one.
    #[test]
    fn every_ending() {
        for code in 0..=16 {
            let (mut trial, mut dialects) = (Trial::new(true), Dialects::new(true));
            let ending = Ending::Status(code);
            match code {
                7 | 16 => {
                    let next = trial.handle_end(refused(Dialect::Delta, ending), true, &dialects);
                    assert_eq!(next, Next::Failed(None));
                    assert_eq!(trial.next(&dialects), (Dialect::Delta, Why::Preferred));
                }
                0 | 2 | 3 | 12 | 13 => {
                    assert_eq!(after(&mut trial, &mut dialects, ending), Dialect::Sotw, "{code}");
                    assert_eq!(Trial::new(true).next(&dialects).0, Dialect::Sotw, "{code}");
                }
                _ => assert_eq!(after(&mut trial, &mut dialects, ending), Dialect::Delta, "{code}"),
            }
        }
        let (mut trial, mut dialects) = (Trial::new(true), Dialects::new(true));
        assert_eq!(after(&mut trial, &mut dialects, Ending::Broken), Dialect::Delta);
    }

    /// Somebody who asks once is told a status that may pass. A stream that breaks may have broken because of its dialect.
    #[test]
    fn one_question() {
        let dialects = Dialects::of_one_question(true);
        for (ending, next) in [
            (Ending::Status(14), Next::Failed(None)),
            (Ending::RESOURCE_EXHAUSTED, Next::Failed(None)),
            (Ending::UNIMPLEMENTED, Next::Other),
            (Ending::Broken, Next::Other),
        ] {
            let mut trial = Trial::new(true);
            assert_eq!(
                trial.handle_end(refused(Dialect::Delta, ending), true, &dialects),
                next,
                "{ending:?}"
            );
        }
    }

    /// E-23: after a few delta streams that break, the server gets no more of them; an answered one in between starts the count
    /// again.
    #[test]
    fn delta_in_vain() {
        let (mut trial, mut dialects) = (Trial::new(true), Dialects::new(true));
        for _ in 0..2 {
            assert_eq!(after(&mut trial, &mut dialects, Ending::Broken), Dialect::Delta);
        }
        assert!(!trial.handle_answer(Dialect::Delta, &mut dialects));
        for _ in 0..2 {
            assert_eq!(after(&mut trial, &mut dialects, Ending::Broken), Dialect::Delta);
        }
        assert_eq!(after(&mut trial, &mut dialects, Ending::Broken), Dialect::Sotw);
    }

    /// E-23: a stream that is never answered before the server dies says nothing of its dialect while another one is answered in that.
    #[test]
    fn another_stream_is_answered_in_delta() {
        let (mut silent, mut other, mut dialects) = (Trial::new(true), Trial::new(true), Dialects::new(true));
        for _ in 0..10 {
            assert!(!other.handle_answer(Dialect::Delta, &mut dialects));
            assert_eq!(after(&mut silent, &mut dialects, Ending::Broken), Dialect::Delta);
        }
        for dialect in [Dialect::Delta, Dialect::Sotw] {
            assert_eq!(after(&mut silent, &mut dialects, Ending::Broken), dialect);
        }
    }

    /// E-23: the relay leaves the dialect that it kept if the server refuses that clearly, and not for an error that may pass.
    #[test]
    fn what_is_kept_may_be_refused() {
        let (mut trial, mut dialects) = (Trial::new(true), Dialects::new(true));
        after(&mut trial, &mut dialects, Ending::UNIMPLEMENTED);
        let passing = refused(Dialect::Sotw, Ending::Status(14));
        assert_eq!(trial.handle_end(passing, true, &dialects), Next::Failed(None));
        assert_eq!(trial.next(&dialects).0, Dialect::Sotw);
        let clear = refused(Dialect::Sotw, Ending::UNIMPLEMENTED);
        assert_eq!(trial.handle_end(clear, true, &dialects), Next::Other);
        assert!(trial.handle_answer(Dialect::Delta, &mut dialects));
        assert_eq!(Trial::new(true).next(&dialects).0, Dialect::Delta);
    }

    /// E-23: if nothing can be requested in the other dialect, that is not tried, and delta is tried again.
    #[test]
    fn nothing_to_ask_for_in_the_other_dialect() {
        let (mut trial, mut dialects) = (Trial::new(true), Dialects::new(true));
        for (ending, without) in [
            (Ending::Broken, [false, false, true]),
            (Ending::UNIMPLEMENTED, [true; 3]),
        ] {
            for without in without {
                let next = trial.handle_end(refused(Dialect::Delta, ending), false, &dialects);
                assert_eq!(
                    (next, trial.is_without_delta()),
                    (Next::Failed(None), without),
                    "{ending:?}"
                );
                assert_eq!(trial.next(&dialects), (Dialect::Delta, Why::Preferred));
            }
            assert!(!trial.handle_answer(Dialect::Delta, &mut dialects));
            assert!(!trial.is_without_delta());
        }
    }

    /// E-23: after the server refused both dialects, the attempts start from the beginning.
    #[test]
    fn both_refused() {
        let (mut trial, dialects) = (Trial::new(true), Dialects::new(true));
        let first = refused(Dialect::Delta, Ending::Status(2));
        assert_eq!(trial.handle_end(first.clone(), true, &dialects), Next::Other);
        let second = refused(Dialect::Sotw, Ending::Status(14));
        assert_eq!(trial.handle_end(second, true, &dialects), Next::Failed(Some(first)));
        assert_eq!(trial.next(&dialects), (Dialect::Delta, Why::Preferred));
        let only = Dialects::new(false);
        let refused = refused(Dialect::Sotw, Ending::UNIMPLEMENTED);
        assert_eq!(trial.handle_end(refused, true, &only), Next::Failed(None));
        assert_eq!(trial.next(&only), (Dialect::Sotw, Why::Configured));
    }
}
