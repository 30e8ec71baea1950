// SPDX-License-Identifier: Apache-2.0
//! What a server leaves open, and a question on a stream of its own decides: whether it is deaf for a type on the stream that the types
//! share (E-27), and whether it reads the versions that it is sent (E-04).
//!
//! Owns what is asked, and what an answer shows. Knows nothing of the other stream: a server may just have nothing to say.

use std::sync::Arc;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64;

use super::Client;
use super::kept::Brought;
use xds::{Changes, Dialect, Resource, TypeUrl, Update, Want};

/// A doubt about a server.
#[derive(Debug)]
pub struct Doubt {
    type_url: TypeUrl,
    wants: Vec<Want>,
    of: Of,
}

#[derive(Debug)]
enum Of {
    /// It has passed over a question, which it was asked then. Any content shows that it is deaf.
    Hearing(Instant),
    /// It has left out what it was sent versions of: that is unchanged, or gone and it does not read versions. A resource that it has just
    /// sent is brought with its own version, and with all else, for in another form of the question it may be read differently. That the
    /// same comes again shows it.
    Reading(Arc<Resource>, Vec<Brought>),
}

/// What an answer decides.
#[derive(Debug)]
pub enum Decided {
    /// The server is deaf for this type on the stream.
    Deaf(TypeUrl),
    /// It does not read versions, so this is gone.
    Gone(Changes),
}

/// So many names of a question that was passed over are told.
pub(super) const TOLD_MAX: usize = 64;
/// Views ask once more at different times within this.
const SPREAD: Duration = Duration::from_secs(5);

impl Doubt {
    /// Whether the server reads versions is asked with this resource of it, while all of this is `brought`.
    pub(super) fn of_versions(want: Want, resource: Arc<Resource>, brought: Vec<Brought>) -> Self {
        Self {
            type_url: want.type_url.clone(),
            wants: vec![want],
            of: Of::Reading(resource, brought),
        }
    }

    /// The type.
    #[must_use]
    pub const fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    /// What is asked for.
    #[must_use]
    pub fn wants(&self) -> &[Want] {
        &self.wants
    }

    /// Whether it is about versions. Then it arises once for each type of a stream.
    #[must_use]
    pub const fn is_of_versions(&self) -> bool {
        matches!(self.of, Of::Reading(..))
    }

    /// Whether this in an answer in this dialect shows what was doubted. In SotW a server is sent no versions and sends everything.
    #[must_use]
    pub fn is_shown_by(&self, update: &Update, dialect: Dialect) -> bool {
        match (&self.of, update) {
            (Of::Hearing(_), Update::Put(..)) => true,
            (Of::Reading(one, _), Update::Put(resource, _)) => dialect == Dialect::Delta && resource.same_content(one),
            (Of::Hearing(_) | Of::Reading(..), _) => false,
        }
    }
}

impl Client {
    /// E-25, E-27: the time of a question may have come. To be called before its names stop waiting.
    pub(super) fn note_silence(&mut self, type_url: &TypeUrl, now: Instant) {
        let spread = SPREAD.mul_f64((xxh3_64(self.introduction.sent()) % 1000) as f64 / 1000.0);
        let heard = self.feeds.values().filter_map(|feed| feed.heard()).max();
        let Some(feed) = self.feeds.get_mut(type_url) else {
            return;
        };
        let passed_over = feed.take_passed_over(now);
        let silencers = feed.take_silencers(heard, spread, now);
        if !silencers.is_empty() {
            self.silencers.push((type_url.clone(), silencers));
        }
        if let Some((wants, asked)) = passed_over.filter(|(wants, _)| !wants.is_empty())
            && self.goes_on_since(type_url, asked)
            && let Some(stream) = &mut self.stream
        {
            let doubt = Doubt {
                type_url: type_url.clone(),
                wants,
                of: Of::Hearing(asked),
            };
            stream.note_passed_over(doubt);
        }
    }

    /// Returns a question that was passed over, once; if `idle`, so that no other question is asked, also one about versions. Another relay
    /// reads these.
    pub fn take_doubt(&mut self, idle: bool) -> Option<Doubt> {
        let stream = self.stream.as_mut()?;
        let passed_over = stream.take_passed_over();
        let idle = idle && passed_over.is_none() && !stream.is_relayed();
        let mut unsure = self.feeds.values().filter(|feed| idle && feed.is_unsure());
        passed_over.or_else(|| unsure.find_map(|feed| feed.doubt_versions()))
    }

    /// On this stream, on which nothing is wanted yet, the question is asked.
    pub fn handle_question(&mut self, doubt: &Doubt) -> Vec<Changes> {
        self.tries = doubt.is_of_versions();
        let changes = doubt.wants.iter().flat_map(|want| self.handle_want(want)).collect();
        if let Of::Reading(_, brought) = &doubt.of {
            self.feed(&doubt.type_url).bring_all(brought);
        }
        changes
    }

    /// The answer has shown what was doubted, or has not. Returns what that decides.
    pub fn handle_outcome(&mut self, doubt: &Doubt, shown: bool) -> Option<Decided> {
        let feed = self.feeds.get_mut(&doubt.type_url)?;
        match doubt.of {
            // Only if it is still wanted, and the server has said nothing about it since.
            Of::Hearing(asked) => {
                let deaf = shown && feed.wanted() && !feed.has_heard_since(asked);
                deaf.then(|| Decided::Deaf(doubt.type_url.clone()))
            }
            Of::Reading(..) => feed.tried(shown).map(Decided::Gone),
        }
    }
}
