//! What this stream tells of names that may silence its server, and how they leave it (K-01, E-27).
//!
//! Owns nothing of its own. Does not decide which stream a name belongs to: [`Division`](crate::Division) does.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64;

use super::Client;
use super::feed::{MovedName, named};
use xds::{Dialect, Kind, Name, Resource, TypeUrl};

/// Views ask once more at different times within this.
const SPREAD: Duration = Duration::from_secs(5);

/// The names of one kind that content named and perhaps names no longer.
pub(crate) type Renamed = (Kind, BTreeSet<Name>);

impl Client {
    /// Returns the names that content of this stream named and now names differently, or no longer.
    pub(crate) fn take_renamed(&mut self) -> Vec<Renamed> {
        std::mem::take(&mut self.renamed)
    }

    /// Takes those names out that content of this stream names.
    pub(crate) fn strike_named(&self, kind: Kind, names: &mut BTreeSet<Name>) {
        let naming = self
            .feeds
            .values()
            .filter(|feed| refers(feed.type_url().kind()) == Some(kind));
        for feed in naming {
            let kind = feed.type_url().kind();
            feed.resources()
                .flat_map(|resource| named(kind, resource))
                .for_each(|name| {
                    names.remove(name);
                });
        }
    }

    /// Returns the names that silence the server on this stream, by types.
    pub(crate) fn take_silencers(&mut self) -> Vec<(TypeUrl, Vec<Name>)> {
        std::mem::take(&mut self.silencers)
    }

    /// Whether the server has said anything about the type since then, on this stream.
    pub(crate) fn has_heard(&self, type_url: &TypeUrl, since: Instant) -> bool {
        self.feeds.get(type_url).is_some_and(|feed| feed.has_heard_since(since))
    }

    /// Whether the type is asked for on this stream.
    pub(crate) fn has(&self, type_url: &TypeUrl) -> bool {
        self.feeds.contains_key(type_url)
    }

    /// Returns the types of this kind of which a name is wanted here.
    pub(crate) fn types_with(&self, kind: Kind, name: &Name) -> Vec<TypeUrl> {
        let feeds = self.feeds.iter().filter(|(type_url, _)| type_url.kind() == kind);
        let with = feeds.filter(|(_, feed)| feed.wants_name(name));
        with.map(|(type_url, _)| type_url.clone()).collect()
    }

    pub(crate) fn has_names(&self, type_url: &TypeUrl) -> bool {
        self.feeds.get(type_url).is_some_and(|feed| feed.has_names())
    }

    pub(crate) fn asks_wildcard(&self, type_url: &TypeUrl) -> bool {
        self.feeds.get(type_url).is_some_and(|feed| feed.asks_wildcard())
    }

    /// Whether these names are in the list of their type, from now on.
    pub(crate) fn list<'a>(&mut self, type_url: &TypeUrl, names: impl IntoIterator<Item = &'a Name>, listed: bool) {
        if let Some(feed) = self.feeds.get_mut(type_url) {
            names.into_iter().for_each(|name| feed.list(name, listed));
        }
        self.note(type_url);
    }

    /// Takes these names away, with all that is held of them.
    pub(crate) fn part_names<'a>(
        &mut self,
        type_url: &TypeUrl,
        names: impl IntoIterator<Item = &'a Name>,
    ) -> Vec<MovedName> {
        let feed = self.feeds.get_mut(type_url);
        let parted = feed.map_or_else(Vec::new, |feed| {
            names.into_iter().filter_map(|name| feed.part(name)).collect()
        });
        self.note(type_url);
        parted
    }

    /// Takes names from another stream.
    pub(crate) fn join_names(&mut self, type_url: &TypeUrl, moved: Vec<MovedName>) {
        let feed = self.feed(type_url);
        moved.into_iter().for_each(|one| feed.join(one));
        self.note(type_url);
    }

    /// Returns what is held that may name others, before a SotW response of the type is read.
    pub(super) fn naming(&self, type_url: &TypeUrl) -> Vec<Arc<Resource>> {
        let sotw = self.dialect == Dialect::Sotw && !self.is_polled();
        let referring = sotw && refers(type_url.kind()).is_some();
        let feed = self.feeds.get(type_url).filter(|_| referring);
        feed.map_or_else(Vec::new, |feed| feed.resources().cloned().collect())
    }

    /// The response was read.
    pub(super) fn note_renamed(&mut self, type_url: &TypeUrl, before: &[Arc<Resource>]) {
        let kind = type_url.kind();
        let (Some(of), Some(feed)) = (refers(kind), self.feeds.get(type_url)) else {
            return;
        };
        let replaced = before.iter().filter(|one| !feed.holds(one));
        let names: BTreeSet<Name> = replaced.flat_map(|one| named(kind, one)).cloned().collect();
        if self.dialect == Dialect::Delta || self.is_polled() {
            return;
        }
        match self.renamed.iter_mut().find(|(kind, _)| *kind == of) {
            Some((_, earlier)) => earlier.extend(names),
            None => self.renamed.push((of, names)),
        }
    }

    /// E-25, E-27: the time of a question may have come.
    pub(super) fn press(&mut self, type_url: &TypeUrl, now: Instant) {
        let heard = self.stream.as_ref().and_then(|stream| stream.heard);
        let node = self.greeting.as_deref().unwrap_or_default();
        let spread = SPREAD.mul_f64((xxh3_64(node) % 1000) as f64 / 1000.0);
        let Some(feed) = self.feeds.get_mut(type_url) else {
            return;
        };
        let silencers = feed.take_silencers(heard, spread, now);
        if !silencers.is_empty() {
            self.silencers.push((type_url.clone(), silencers));
        }
    }
}

/// What resources of this kind name, if they name any.
const fn refers(kind: Kind) -> Option<Kind> {
    match kind {
        Kind::Cds => Some(Kind::Eds),
        Kind::Lds | Kind::Srds => Some(Kind::Rds),
        Kind::Eds | Kind::Leds | Kind::Rds | Kind::Vhds | Kind::Sds | Kind::Rtds | Kind::Ecds | Kind::Other => None,
    }
}
