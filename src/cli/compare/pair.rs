// SPDX-License-Identifier: Apache-2.0
//! One node that asks two servers in one dialect, and since when it is told different things.
//!
//! Owns what counts as staying different: a server that follows the other one is never different for long, however fast the other one
//! changes. Prints nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::cli::Unreached;
use crate::get::{Contents, ReadKey, Sides, Walk, Ways, differing};
use crate::xds::Version;

/// A node at two servers.
pub(super) struct Pair {
    node: String,
    dialect: &'static str,
    walks: [Walk; 2],
    has_begun: bool,
    episodes: BTreeMap<ReadKey, Episode>,
    /// Since when one of them is not reached, and whether that was said.
    trouble: Option<(Instant, bool)>,
}

/// A time for which a key is different.
pub(super) struct Episode {
    since: Instant,
    sides: Sides,
    /// What each of them had since.
    seen: [BTreeSet<Option<Version>>; 2],
}

/// So many contents of one side are remembered in an episode; older ones are not looked for at the other side.
const SEEN_MAX: usize = 4096;

impl Episode {
    fn new(sides: Sides, now: Instant) -> Self {
        let seen = versions(&sides).map(|version| BTreeSet::from([version]));
        Self {
            since: now,
            sides,
            seen,
        }
    }

    /// What both have is different again. It is a new episode if one of them has what the other one had in this one.
    fn go_on(&mut self, sides: Sides, now: Instant) {
        let [one, other] = versions(&sides);
        let [of_one, of_other] = &mut self.seen;
        if of_other.contains(&one) || of_one.contains(&other) {
            *self = Self::new(sides, now);
            return;
        }
        for (seen, version) in [(of_one, one), (of_other, other)] {
            if seen.len() >= SEEN_MAX {
                seen.clear();
            }
            seen.insert(version);
        }
        self.sides = sides;
    }

    /// What both have now.
    pub(super) const fn sides(&self) -> &Sides {
        &self.sides
    }

    fn lasts(&self, settle: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= settle
    }
}

fn versions(sides: &Sides) -> [Option<Version>; 2] {
    sides
        .each_ref()
        .map(|side| side.as_ref().map(|resource| resource.version()))
}

impl Pair {
    pub(super) const fn new(node: String, dialect: &'static str, walks: [Walk; 2]) -> Self {
        Self {
            node,
            dialect,
            walks,
            has_begun: false,
            episodes: BTreeMap::new(),
            trouble: None,
        }
    }

    pub(super) fn node(&self) -> &str {
        &self.node
    }

    pub(super) const fn dialect(&self) -> &'static str {
        self.dialect
    }

    /// Takes what both have said meanwhile.
    pub(super) fn look(&mut self, ways: &mut Ways, contents: &mut Contents, now: Instant) -> anyhow::Result<()> {
        let mut moved = false;
        for walk in &mut self.walks {
            moved |= walk.look(ways, now)?;
        }
        if !self.has_begun {
            if let Some(words) = self.trouble(now) {
                return Err(Unreached(words).into());
            }
            if !self.walks.iter().all(|walk| walk.is_settled(now)) {
                return Ok(());
            }
            self.check_whole()?;
            self.has_begun = true;
            moved = true;
        }
        self.trouble = self.trouble(now).map(|_| self.trouble.unwrap_or((now, false)));
        if moved {
            let [one, other] = &self.walks;
            self.take(differing(one.reached(), other.reached(), contents), now);
        }
        Ok(())
    }

    /// Takes what differs at a look.
    fn take(&mut self, found: BTreeMap<ReadKey, Sides>, now: Instant) {
        self.episodes.retain(|key, _| found.contains_key(key));
        for (key, sides) in found {
            match self.episodes.get_mut(&key) {
                Some(episode) => episode.go_on(sides, now),
                None => drop(self.episodes.insert(key, Episode::new(sides, now))),
            }
        }
    }

    /// Nothing can be said of a type of which one server has not sent all in time, and the other one has some.
    fn check_whole(&self) -> Result<(), Unreached> {
        let [one, other] = &self.walks;
        for (slow, fast) in [(one, other), (other, one)] {
            let lacking = slow.reached().unfinished().find(|of| fast.reached().has_any(of));
            if let Some(type_url) = lacking {
                let (server, word) = (slow.server(), type_url.word());
                let words = format!("{server}: it did not send all {word} resources in time; raise --timeout");
                return Err(Unreached(words));
            }
        }
        Ok(())
    }

    /// Whether both have answered once.
    pub(super) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns why one of them is not reached now, if that is so.
    pub(super) fn trouble(&self, now: Instant) -> Option<String> {
        self.walks.iter().find_map(|walk| walk.trouble(now))
    }

    /// The same, once, when it has lasted.
    pub(super) fn new_trouble(&mut self, settle: Duration, now: Instant) -> Option<String> {
        let (since, said) = self.trouble.as_mut()?;
        if *said || now.saturating_duration_since(*since) < settle {
            return None;
        }
        *said = true;
        self.trouble(now)
    }

    pub(super) fn episode(&self, key: &ReadKey) -> Option<&Episode> {
        self.episodes.get(key)
    }

    /// Returns what has been different for so long.
    pub(super) fn lasting(&self, settle: Duration, now: Instant) -> impl Iterator<Item = &ReadKey> {
        let lasting = self
            .episodes
            .iter()
            .filter(move |(_, episode)| episode.lasts(settle, now));
        lasting.map(|(key, _)| key)
    }

    /// Whether something is different, and has not been for so long.
    pub(super) fn is_young(&self, settle: Duration, now: Instant) -> bool {
        self.episodes.values().any(|episode| !episode.lasts(settle, now))
    }

    /// Returns what is known at either of them.
    pub(super) fn keys(&self) -> BTreeSet<&ReadKey> {
        self.walks.iter().flat_map(|walk| walk.reached().keys()).collect()
    }

    /// Returns why responses were rejected: by server and type.
    pub(super) fn rejected(&self) -> impl Iterator<Item = (usize, String, String)> {
        let all = self.walks.iter().enumerate();
        all.flat_map(|(at, walk)| walk.rejected().into_iter().map(move |(of, why)| (at, of, why)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::asking::now;
    use crate::xds::{Name, Resource, ResourceParts, TypeUrl};

    fn content(number: u8) -> Option<std::sync::Arc<Resource>> {
        let parts = ResourceParts {
            type_url: &TypeUrl::new("t"),
            name: Name::from("a"),
            aliases: Vec::new(),
            passed_on: &[],
            body: &[number],
            endpoints: None,
            received: now(),
        };
        Some(std::sync::Arc::new(Resource::new(parts, 0)))
    }

    /// At each of ten looks, a second apart, the contents differ. One that follows is a look behind; one that stands still is not.
    #[test]
    fn who_follows_is_not_different_for_long() {
        let (start, settle) = (now(), Duration::from_secs(5));
        let lasts = |other: fn(u8) -> Sides| {
            let mut episode = Episode::new(other(1), start);
            (2..10).any(|look| {
                let at = start + Duration::from_secs(u64::from(look));
                episode.go_on(other(look), at);
                episode.lasts(settle, at)
            })
        };
        assert!(!lasts(|look| [content(look), content(look - 1)]));
        assert!(!lasts(|look| [content(look - 1), content(look)]));
        assert!(lasts(|look| [content(look), content(0)]));
        assert!(lasts(|look| [content(look), None]));
    }
}
