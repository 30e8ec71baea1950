// SPDX-License-Identifier: Apache-2.0
//! Whether files that are followed have been bad for a while.
//!
//! Owns how a bad file is reported: once, and only if it stays bad for longer than a swap of several files takes. Does not know
//! what is in the files.

use std::time::{Duration, Instant};

/// Why whoever uses files keeps to the earlier ones, if it does.
#[derive(Debug)]
pub struct Trouble<E> {
    /// The fault that was told, until the files are good.
    told: Option<E>,
    /// Since when there is another one that was not told yet.
    since: Option<Instant>,
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
        let (told, since) = (None, None);
        Self { told, since }
    }
}

impl<E: Clone + PartialEq> Trouble<E> {
    /// Notes the result of a look at the files. Returns what to tell now.
    pub fn note(&mut self, error: Option<&E>, now: Instant) -> Option<News<E>> {
        let since = self.since.take();
        let Some(error) = error else {
            return self.told.take().map(|_| News::Good);
        };
        if self.told.as_ref() == Some(error) {
            return None;
        }
        // Until a fault is told it may turn into another one, as files are replaced one by one.
        let since = since.unwrap_or(now);
        if now < since + MOMENT {
            self.since = Some(since);
            return None;
        }
        self.told = Some(error.clone());
        Some(News::Bad(error.clone()))
    }

    /// Returns the fault that was told last, until the files are good.
    pub const fn told(&self) -> Option<&E> {
        self.told.as_ref()
    }

    /// Returns when to look again because the fault may have gone away by itself.
    pub fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + MOMENT)
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

    /// A fault that was told counts until the files are good, even while another one has not lasted yet.
    #[test]
    fn a_fault_counts_until_the_files_are_good() {
        let begun = now();
        let mut trouble = Trouble::default();
        assert_eq!((trouble.note(Some(&"gone"), begun), trouble.told()), (None, None));
        let later = begun + MOMENT;
        assert_eq!(trouble.note(Some(&"gone"), later), Some(News::Bad("gone")));
        assert_eq!(
            (trouble.note(Some(&"empty"), later), trouble.told()),
            (None, Some(&"gone"))
        );
        assert_eq!((trouble.note(None, later), trouble.told()), (Some(News::Good), None));
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
