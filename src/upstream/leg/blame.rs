// SPDX-License-Identifier: Apache-2.0
//! Which types may have made the server end a leg's stream.
//!
//! Owns what was found out until somebody takes it. Neither moves types nor logs them.

use std::time::Instant;

use crate::protocol::Suspects;
use crate::upstream::failure::Failure;
use crate::xds::TypeUrl;

/// What a leg knows of types that end streams.
pub(super) struct Blame {
    /// The types of a stream that many share, so that the guilty ones have to be found out.
    suspects: Suspects,
    /// Whether all types of the stream are suspected already.
    apart: bool,
    /// Types that are suspected since the last call of `take_suspected`, and how the stream ended.
    new: Vec<(TypeUrl, String)>,
    /// How the last stream ended, if suspected types may be the reason; `take_trouble` clears it.
    trouble: Option<String>,
}

impl Blame {
    pub(super) fn new(apart: bool) -> Self {
        Self {
            suspects: Suspects::default(),
            apart,
            new: Vec::new(),
            trouble: None,
        }
    }

    pub(super) const fn suspects(&self) -> &Suspects {
        &self.suspects
    }

    /// Returns the same, to say what became of a type.
    pub(super) const fn suspects_mut(&mut self) -> &mut Suspects {
        &mut self.suspects
    }

    /// The stream ended; `answered`: after a response. `open` are the types that were requested on it and not answered, and since when.
    pub(super) fn ended(&mut self, failure: &Failure, answered: bool, open: Vec<(TypeUrl, Instant)>, now: Instant) {
        let ending = failure.ending();
        if !self.apart {
            let suspected = self.suspects.handle_end(ending, answered, open, now).into_iter();
            self.new
                .extend(suspected.map(|type_url| (type_url, failure.to_string())));
        } else if ending.is_some_and(|ending| ending.accuses(true)) {
            self.trouble = Some(failure.to_string());
        }
    }

    /// Returns the newly suspected types, and how the stream ended.
    pub(super) fn take_suspected(&mut self) -> Vec<(TypeUrl, String)> {
        std::mem::take(&mut self.new)
    }

    /// Returns, once, how the last stream ended if its types may be the reason.
    pub(super) const fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
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
        let (mut apart, mut shared) = (Blame::new(true), Blame::new(false));
        for _ in 0..4 {
            for blame in [&mut apart, &mut shared] {
                blame.ended(&failure, false, vec![(type_url.clone(), now)], now);
            }
        }
        assert_eq!((apart.take_suspected().len(), shared.take_suspected().len()), (0, 2));
        assert_eq!(apart.take_trouble(), Some(failure.to_string()));
        assert_eq!((apart.take_trouble(), shared.take_trouble()), (None, None));
    }
}
