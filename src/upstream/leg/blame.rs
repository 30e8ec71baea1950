// SPDX-License-Identifier: Apache-2.0
//! Which types may have made the server end a leg's stream.
//!
//! Owns what was found out until somebody takes it. Neither moves types nor logs them.

use std::time::Instant;

use crate::protocol::Suspects;
use crate::upstream::failure::Failure;
use crate::xds::TypeUrl;

/// What a leg knows of types that end streams.
pub(super) enum Blame {
    /// Many types share the stream, so the guilty ones have to be found out.
    Shared {
        suspects: Suspects,
        /// Types that are suspected since the last call of `take_suspected`, and how the stream ended.
        new: Vec<(TypeUrl, String)>,
    },
    /// All types of the stream are suspected. How the last stream ended, if they may be the reason; `take_trouble` clears it.
    Apart { trouble: Option<String> },
}

impl Blame {
    pub(super) fn shared() -> Self {
        Self::Shared {
            suspects: Suspects::default(),
            new: Vec::new(),
        }
    }

    pub(super) const fn apart() -> Self {
        Self::Apart { trouble: None }
    }

    /// The type was requested for the first time on the present stream.
    pub(super) fn asked(&mut self, type_url: TypeUrl, now: Instant) {
        if let Self::Shared { suspects, .. } = self {
            suspects.handle_asked(type_url, now);
        }
    }

    /// The type was answered on the present stream.
    pub(super) fn heard(&mut self, type_url: &TypeUrl) {
        if let Self::Shared { suspects, .. } = self {
            suspects.handle_answer(type_url);
        }
    }

    /// The stream ended; `answered`: after a response.
    pub(super) fn ended(&mut self, failure: &Failure, answered: bool, now: Instant) {
        let ending = failure.ending();
        match self {
            Self::Shared { suspects, new } => {
                let suspected = suspects.handle_end(ending, answered, now).into_iter();
                new.extend(suspected.map(|type_url| (type_url, failure.to_string())));
            }
            Self::Apart { trouble } if ending.is_some_and(|ending| ending.accuses(true)) => {
                *trouble = Some(failure.to_string());
            }
            Self::Apart { .. } => {}
        }
    }

    /// E-27: the server answers for the type on a stream of its own, and not on this one.
    pub(super) fn deaf(&mut self, type_url: &TypeUrl, now: Instant) {
        if let Self::Shared { suspects, .. } = self {
            suspects.handle_deaf(type_url, now);
        }
    }

    /// A type that is suspected here has ended a stream of its own.
    pub(super) fn troubled(&mut self, type_url: &TypeUrl, now: Instant) {
        if let Self::Shared { suspects, .. } = self {
            suspects.handle_trouble(type_url, now);
        }
    }

    /// Returns the newly suspected types, and how the stream ended.
    pub(super) fn take_suspected(&mut self) -> Vec<(TypeUrl, String)> {
        match self {
            Self::Shared { new, .. } => std::mem::take(new),
            Self::Apart { .. } => Vec::new(),
        }
    }

    /// Returns, once, how the last stream ended if its types may be the reason.
    pub(super) const fn take_trouble(&mut self) -> Option<String> {
        match self {
            Self::Shared { .. } => None,
            Self::Apart { trouble } => trouble.take(),
        }
    }

    /// Returns the types that are suspected no more.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Vec<TypeUrl> {
        match self {
            Self::Shared { suspects, .. } => suspects.handle_timeout(now),
            Self::Apart { .. } => Vec::new(),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Shared { suspects, .. } => suspects.poll_timeout(),
            Self::Apart { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;

    /// A stream of suspected types keeps one end, however often it is ended.
    #[test]
    fn a_separate_stream_accuses_nobody() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let failure = Failure::stream(Status::invalid_argument("no such type"));
        let type_url = TypeUrl::new("type.googleapis.com/acme.T");
        let (mut apart, mut shared) = (Blame::apart(), Blame::shared());
        for _ in 0..4 {
            for blame in [&mut apart, &mut shared] {
                blame.asked(type_url.clone(), now);
                blame.ended(&failure, false, now);
            }
        }
        assert_eq!((apart.take_suspected().len(), shared.take_suspected().len()), (0, 2));
        assert_eq!(apart.take_trouble(), Some(failure.to_string()));
        assert_eq!((apart.take_trouble(), shared.take_trouble()), (None, None));
    }
}
