// SPDX-License-Identifier: Apache-2.0
//! Names in a request with which something is wrong (B-32), or that the client may not have (S-04).
//!
//! Owns how many there are of each kind, and the first text of each kind. Does not decide how a name is answered.

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFault {
    /// It is empty, and the type's resources have names.
    Empty,
    /// It begins like a new-style name and is none, or names another type.
    Malformed,
    /// It is longer than the limit.
    Long,
    /// S-04: the rules do not allow the client to have it.
    Denied,
}

/// The faults of the names in one request. Most requests have none, and then nothing is allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameFaults(Vec<Faulty>);

/// The names with one kind of fault.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Faulty {
    fault: NameFault,
    count: u64,
    first: String,
}

/// How much of a faulty name is kept for the log.
const EXAMPLE_CHARS_MAX: usize = 60;

impl NameFault {
    /// Returns the kind as a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Malformed => "malformed",
            Self::Long => "long",
            Self::Denied => "denied",
        }
    }
}

impl NameFaults {
    /// Returns each kind of fault, how many names have it, and the beginning of the first one.
    pub fn iter(&self) -> impl Iterator<Item = (NameFault, u64, &str)> {
        self.0.iter().map(|faulty| (faulty.fault, faulty.count, &*faulty.first))
    }

    pub(super) fn note(&mut self, fault: NameFault, text: &str) {
        if let Some(faulty) = self.0.iter_mut().find(|faulty| faulty.fault == fault) {
            faulty.count += 1;
            return;
        }
        let first = text.chars().take(EXAMPLE_CHARS_MAX).collect();
        self.0.push(Faulty { fault, count: 1, first });
    }
}

/// The most bytes of a name; 0: any number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameBound(pub(crate) usize);

impl NameBound {
    pub(crate) const fn admits(self, text: &str) -> bool {
        self.0 == 0 || text.len() <= self.0
    }
}
