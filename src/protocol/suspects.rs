// SPDX-License-Identifier: Apache-2.0
//! Types that make a server end the stream that all types share, or for which it seems to be deaf there (E-27).
//!
//! Owns which types are suspected, for how long, and how often one may be asked for anew to find out. Knows nothing of streams: the caller
//! reports what was asked, answered, passed over and ended on the shared stream.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::ending::Ending;
use xds::TypeUrl;

/// The suspected types of one stream that many types share.
///
/// A type is suspected when two streams in a row ended with an error shortly after a request for it and before a response to it.
/// It then gets a stream apart from the others. After a time without trouble it joins the others again.
///
/// Invariant: a type in `suspected` is not in `accused`.
#[derive(Debug, Default)]
pub struct Suspects {
    /// The types that may have ended the last stream.
    accused: BTreeSet<TypeUrl>,
    /// The types that were answered on some stream. They cannot be the reason if a stream ends without any answer.
    proven: BTreeSet<TypeUrl>,
    /// The types that are requested apart from the others, and when each last gave trouble.
    suspected: BTreeMap<TypeUrl, Instant>,
    /// E-27: when each type was last asked for anew on a stream of its own, and how long it is not after that.
    doubted: BTreeMap<TypeUrl, (Instant, Duration)>,
}

/// A stream that ends so soon after a request may end because of it.
const SOON: Duration = Duration::from_secs(1);
/// After this time without trouble, a type is requested together with the others again.
const QUIET: Duration = Duration::from_secs(3600);
/// Clients can invent types, so only this many are remembered.
const PROVEN_MAX: usize = 1024;
const DOUBTED_MAX: usize = 256;
/// A type is asked for anew once, and then after longer and longer pauses: most servers that say nothing have nothing to say.
const ANEW_FIRST: Duration = Duration::from_secs(60);
const ANEW_MOST: Duration = Duration::from_secs(3600);
/// A type that was not doubted in this time counts as new.
const FORGOTTEN: Duration = Duration::from_secs(2 * 3600);

impl Suspects {
    /// The type was answered on the present stream.
    pub fn handle_answer(&mut self, type_url: &TypeUrl) {
        self.accused.remove(type_url);
        if !self.proven.contains(type_url) && self.proven.len() < PROVEN_MAX {
            self.proven.insert(type_url.clone());
        }
    }

    /// The stream ended; `answered`: after a response. `open` are the types that were requested on it and not answered, and when each was
    /// first requested. Returns the types that are newly suspected.
    pub fn handle_end(
        &mut self,
        ending: Option<Ending>,
        answered: bool,
        open: Vec<(TypeUrl, Instant)>,
        now: Instant,
    ) -> Vec<TypeUrl> {
        let accuses = ending.is_some_and(|ending| ending.accuses(answered));
        let soon = open.into_iter().filter(|(type_url, at)| {
            // If the stream had no answer at all, types that were answered earlier are not the reason.
            accuses && now < *at + SOON && (answered || !self.proven.contains(type_url))
        });
        let soon: BTreeSet<TypeUrl> = soon.map(|(type_url, _)| type_url).collect();
        let before = std::mem::take(&mut self.accused);
        let (new, once): (BTreeSet<_>, BTreeSet<_>) = soon.into_iter().partition(|type_url| before.contains(type_url));
        self.accused = once;
        for type_url in &new {
            self.suspected.insert(type_url.clone(), now);
        }
        new.into_iter().collect()
    }

    /// E-27: the server has passed over a question for the type. Returns whether to ask it anew.
    pub fn handle_doubt(&mut self, type_url: &TypeUrl, now: Instant) -> bool {
        self.doubted.retain(|_, (last, _)| now < *last + FORGOTTEN);
        let pause = match self.doubted.get(type_url) {
            Some((last, pause)) if now < *last + *pause => return false,
            Some((_, pause)) => (*pause * 2).min(ANEW_MOST),
            None if self.doubted.len() >= DOUBTED_MAX => return false,
            None => ANEW_FIRST,
        };
        self.doubted.insert(type_url.clone(), (now, pause));
        true
    }

    /// E-27: the server answers for the type on a stream of its own, and not on the shared one.
    pub fn handle_deaf(&mut self, type_url: &TypeUrl, now: Instant) {
        self.accused.remove(type_url);
        self.suspected.insert(type_url.clone(), now);
    }

    /// A suspected type gave trouble again.
    pub fn handle_trouble(&mut self, type_url: &TypeUrl, now: Instant) {
        if let Some(last) = self.suspected.get_mut(type_url) {
            *last = now;
        }
    }

    /// Time has passed. Returns the types that join the others again.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<TypeUrl> {
        let over = self.suspected.iter().filter(|(_, last)| **last + QUIET <= now);
        let over: Vec<TypeUrl> = over.map(|(type_url, _)| type_url.clone()).collect();
        for type_url in &over {
            self.suspected.remove(type_url);
        }
        over
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.suspected.values().min().map(|last| *last + QUIET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVALID: Option<Ending> = Some(Ending::Status(3));

    #[expect(clippy::disallowed_methods, reason = "a test begins at some instant")]
    fn begin() -> Instant {
        Instant::now()
    }

    fn of(name: &str) -> TypeUrl {
        TypeUrl::new(&format!("type.googleapis.com/{name}"))
    }

    /// Runs a stream that requests all these types, answers the first ones, and ends in this way.
    fn stream(
        suspects: &mut Suspects,
        asked: &[&str],
        answered: usize,
        ending: Option<Ending>,
        now: Instant,
    ) -> Vec<TypeUrl> {
        let (heard, open) = asked.split_at(answered);
        heard.iter().for_each(|name| suspects.handle_answer(&of(name)));
        let open = open.iter().map(|name| (of(name), now)).collect();
        suspects.handle_end(ending, answered > 0, open, now + Duration::from_millis(5))
    }

    /// Two streams in a row accuse only what they did not answer; a type that joins later is found as fast.
    #[test]
    fn two_in_a_row() {
        let (mut suspects, now) = (Suspects::default(), begin());
        assert_eq!(stream(&mut suspects, &["good", "bad"], 1, INVALID, now), []);
        assert_eq!(
            stream(&mut suspects, &["good", "bad"], 1, Some(Ending::Status(14)), now),
            []
        );
        assert_eq!(
            stream(&mut suspects, &["good", "bad"], 1, INVALID, now),
            [],
            "the stream in between counts"
        );
        assert_eq!(stream(&mut suspects, &["good", "bad"], 1, INVALID, now), [of("bad")]);
        assert!(suspects.suspected.contains_key(&of("bad")) && !suspects.suspected.contains_key(&of("good")));
        assert_eq!(stream(&mut suspects, &["good", "worse"], 1, INVALID, now), []);
        assert_eq!(
            stream(&mut suspects, &["good", "worse"], 0, INVALID, now),
            [of("worse")]
        );
    }

    /// An ending that is about the server, the connection or the permissions accuses no type; nor does one that comes late.
    #[test]
    fn what_accuses_nobody() {
        let ends = [0, 14].map(|code| (Some(Ending::Status(code)), true));
        let before_an_answer = [1, 4, 7, 8, 12, 16].map(|code| (Some(Ending::Status(code)), false));
        let lost = [(Some(Ending::Broken), true), (None, true)];
        let now = begin();
        for (ending, answered) in [&ends[..], &before_an_answer, &lost].concat() {
            let mut suspects = Suspects::default();
            for _ in 0..3 {
                let new = stream(&mut suspects, &["good", "other"], usize::from(answered), ending, now);
                assert_eq!(new, [], "{ending:?}");
            }
        }
        let mut suspects = Suspects::default();
        for _ in 0..3 {
            assert_eq!(suspects.handle_end(INVALID, true, vec![(of("a"), now)], now + SOON), []);
        }
    }

    /// A server that answers nothing any more does not object to the types that it answered before.
    #[test]
    fn what_was_answered_before_is_not_the_reason() {
        let (mut suspects, now) = (Suspects::default(), begin());
        stream(&mut suspects, &["a", "b"], 2, None, now);
        for _ in 0..3 {
            assert_eq!(stream(&mut suspects, &["a", "b"], 0, INVALID, now), []);
        }
    }

    /// A type joins the others after an hour without trouble, and not before.
    #[test]
    fn a_quiet_hour() {
        let (mut suspects, mut now) = (Suspects::default(), begin());
        for _ in 0..2 {
            stream(&mut suspects, &["bad"], 0, INVALID, now);
        }
        assert!(suspects.suspected.contains_key(&of("bad")));
        now += QUIET / 2;
        suspects.handle_trouble(&of("bad"), now);
        assert_eq!(suspects.poll_timeout(), Some(now + QUIET));
        assert_eq!(suspects.handle_timeout(now + QUIET - SOON), []);
        assert_eq!(suspects.handle_timeout(now + QUIET), [of("bad")]);
        assert_eq!(
            (suspects.suspected.contains_key(&of("bad")), suspects.poll_timeout()),
            (false, None)
        );
    }

    /// E-27: a server that never answers for names that do not exist is asked anew once, and then at most once in an hour.
    #[test]
    fn once_and_then_backed_off() {
        let start = begin();
        let mut doubts = Suspects::default();
        let of = |number: usize| of(&format!("acme.T{number}"));
        // Somebody asks for another name that does not exist in each quarter of a minute, for a day.
        let asked =
            (0..24 * 240).filter(|quarter| doubts.handle_doubt(&of(0), start + Duration::from_secs(15) * *quarter));
        let asked: Vec<u32> = asked.collect();
        assert_eq!(asked[..4], [0, 4, 12, 28], "1, 2 and 4 minutes");
        assert_eq!(asked.len(), 29);
        assert!(doubts.handle_doubt(&of(1), start), "another type");
        for number in 2..DOUBTED_MAX {
            doubts.handle_doubt(&of(number), start + ANEW_MOST * 24);
        }
        let known = doubts.doubted.len();
        assert_eq!(
            known,
            DOUBTED_MAX - 1,
            "the type of the first day's morning is forgotten"
        );
        assert!(doubts.handle_doubt(&of(DOUBTED_MAX), start + ANEW_MOST * 24));
        assert!(!doubts.handle_doubt(&of(DOUBTED_MAX + 1), start + ANEW_MOST * 24));
        assert!(doubts.handle_doubt(&of(DOUBTED_MAX + 1), start + ANEW_MOST * 24 + FORGOTTEN));
    }
}
