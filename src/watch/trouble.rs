//! Whether files that are followed have been bad for a while.
//!
//! Owns how a bad file is reported: once, and only if it stays bad for longer than a swap of several files takes. Does not know
//! what is in the files.

use std::time::{Duration, Instant};

/// Why whoever uses files keeps to the earlier ones, if it does.
#[derive(Debug)]
pub struct Trouble<E>(Option<Fault<E>>);

#[derive(Debug)]
struct Fault<E> {
    error: E,
    since: Instant,
    told: bool,
}

/// What is worth telling after a look at the files.
#[derive(Debug, PartialEq, Eq)]
pub enum News<E> {
    /// They have been bad for a while.
    Bad(E),
    /// They were bad, and are good now.
    Good,
}

/// A certificate and its key are two files, and while they are replaced they may not belong together.
const MOMENT: Duration = Duration::from_secs(2);

impl<E> Default for Trouble<E> {
    fn default() -> Self {
        Self(None)
    }
}

impl<E: Clone + PartialEq> Trouble<E> {
    /// Notes the result of a look at the files. Returns what to tell now.
    pub fn note(&mut self, error: Option<&E>, now: Instant) -> Option<News<E>> {
        let known = self.0.take();
        let Some(error) = error else {
            return known.filter(|fault| fault.told).map(|_| News::Good);
        };
        // Until a fault is told it may turn into another one, as files are replaced one by one.
        let known = known.filter(|fault| !fault.told || fault.error == *error);
        let since = known.as_ref().map_or(now, |fault| fault.since);
        let told = known.is_some_and(|fault| fault.told);
        let tells = !told && now >= since + MOMENT;
        self.0 = Some(Fault {
            error: error.clone(),
            since,
            told: told || tells,
        });
        tells.then(|| News::Bad(error.clone()))
    }

    /// Returns when to look again because the fault may have gone away by itself.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let fault = self.0.as_ref().filter(|fault| !fault.told)?;
        Some(fault.since + MOMENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    #[test]
    fn a_fault_that_lasts_is_told_once() {
        let begun = now();
        let at = |millis| begun + Duration::from_millis(millis);
        let mut trouble = Trouble::default();
        assert_eq!(trouble.due(), None);
        assert_eq!(trouble.note(Some(&"gone"), at(0)), None);
        assert_eq!(trouble.note(Some(&"of another certificate"), at(1900)), None);
        assert_eq!(trouble.due(), Some(at(2000)));
        let told = trouble.note(Some(&"of another certificate"), at(2000));
        assert_eq!(told, Some(News::Bad("of another certificate")));
        assert_eq!(trouble.due(), None);
        assert_eq!(trouble.note(Some(&"of another certificate"), at(9000)), None);

        // Another fault gets its own moment.
        assert_eq!(trouble.note(Some(&"gone"), at(10_000)), None);
        assert_eq!(trouble.note(Some(&"gone"), at(12_000)), Some(News::Bad("gone")));
        assert_eq!(trouble.note(None, at(12_001)), Some(News::Good));
        assert_eq!(trouble.note(None, at(12_002)), None);
    }

    #[test]
    fn a_fault_of_a_moment_is_no_news() {
        let begun = now();
        let mut trouble = Trouble::default();
        assert_eq!(trouble.note(Some(&"of another certificate"), begun), None);
        assert_eq!(trouble.note(None, begun + MOMENT), None);
        assert_eq!(trouble.due(), None);
    }
}
