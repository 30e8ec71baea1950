// SPDX-License-Identifier: Apache-2.0
//! What passes between the streams to one server: types, and names that may silence it (K-01, E-27).
//!
//! Owns that what is held moves along. Does not decide which stream a type or a name belongs to: [`Division`](crate::Division) does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::Client;
use super::feed::{Feed, MovedName, named};
use xds::{Changes, Dialect, Kind, Name, Resource, ResourceError, TypeUrl};

/// Everything that one machine knows of a type, on its way to another machine for the same server.
#[derive(Debug)]
pub struct Parted(Box<Feed>);

/// The names of each kind that content named and perhaps names no longer.
pub(crate) type Renamed = BTreeMap<Kind, BTreeSet<Name>>;

impl Client {
    /// Returns the client's half of another stream to the same server, which sees the same node.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self {
            twins: self.twins.clone(),
            ..Self::introduced(self.settings.clone(), self.dialect, self.introduction.beside())
        }
    }

    /// Removes the type from this stream, if it is there, so that it can join another.
    pub fn part(&mut self, type_url: &TypeUrl) -> Option<(Parted, Vec<Changes>)> {
        let mut feed = self.feeds.remove(type_url)?;
        let unanswered = feed.disconnected();
        Some((Parted(feed), unanswered.into_iter().collect()))
    }

    /// Adds a type from another stream. Nothing of that type may be wanted here before.
    pub fn join(&mut self, parted: Parted) -> Option<Changes> {
        let Parted(mut feed) = parted;
        if !feed.wanted() {
            return None;
        }
        let type_url = feed.type_url().clone();
        if self.stream.is_some() {
            let patience = self.patience(&type_url);
            feed.connected(self.dialect, patience);
        }
        let told = self.unserved.tell(&mut feed, None);
        self.feeds.insert(type_url, feed);
        told
    }

    /// The server ends the stream whenever it is asked for these types: every name that still waits gets this error (E-09).
    pub fn handle_refused(&mut self, words: &str) -> Vec<Changes> {
        let error = Arc::new(ResourceError::refused(words));
        let told = self.feeds.values_mut().filter_map(|feed| feed.refused(&error));
        told.collect()
    }

    /// Returns the type, if it is asked for on this stream.
    pub(crate) fn feed_of(&self, type_url: &TypeUrl) -> Option<&Feed> {
        self.feeds.get(type_url).map(|feed| &**feed)
    }

    /// Returns the types of this kind of which a name is wanted here.
    pub(crate) fn types_with(&self, kind: Kind, name: &Name) -> Vec<TypeUrl> {
        let feeds = self.feeds.iter().filter(|(type_url, _)| type_url.kind() == kind);
        let with = feeds.filter(|(_, feed)| feed.wants_name(name));
        with.map(|(type_url, _)| type_url.clone()).collect()
    }

    /// Whether these names are in the list of their type, from now on.
    pub(crate) fn list<'a>(&mut self, type_url: &TypeUrl, names: impl IntoIterator<Item = &'a Name>, listed: bool) {
        if let Some(feed) = self.feeds.get_mut(type_url) {
            names.into_iter().for_each(|name| feed.list(name, listed));
        }
    }

    /// Takes these names away, with all that is held of them.
    pub(crate) fn part_names(&mut self, type_url: &TypeUrl, names: &[Name]) -> Vec<MovedName> {
        let feed = self.feeds.get_mut(type_url);
        feed.map_or_else(Vec::new, |feed| {
            names.iter().filter_map(|name| feed.part(name)).collect()
        })
    }

    /// Takes names from another stream.
    pub(crate) fn join_names(&mut self, type_url: &TypeUrl, moved: Vec<MovedName>) {
        let feed = self.feed(type_url);
        moved.into_iter().for_each(|one| feed.join(one));
    }

    /// Returns the names that content of this stream named and now names differently, or no longer.
    pub(crate) fn take_renamed(&mut self) -> Renamed {
        std::mem::take(&mut self.renamed)
    }

    /// Returns the names that silence the server on this stream, by types.
    pub(crate) fn take_silencers(&mut self) -> Vec<(TypeUrl, Vec<Name>)> {
        std::mem::take(&mut self.silencers)
    }

    /// Takes those names out that content of this stream names.
    pub(crate) fn strike_named(&self, of: Kind, names: &mut BTreeSet<Name>) {
        let naming = self
            .feeds
            .iter()
            .filter(|(type_url, _)| type_url.kind().names() == Some(of));
        let found =
            naming.flat_map(|(type_url, feed)| feed.resources().flat_map(move |one| named(type_url.kind(), one)));
        found.for_each(|name| _ = names.remove(name));
    }

    /// Before a SotW response of the type is read: returns what is held that names others, and of which kind these are.
    pub(super) fn naming(&self, type_url: &TypeUrl) -> Option<(Kind, Vec<Arc<Resource>>)> {
        let sotw = self.dialect == Dialect::Sotw && !self.unserved.is_polled();
        let of = type_url.kind().names().filter(|_| sotw)?;
        Some((of, self.feed_of(type_url)?.resources().cloned().collect()))
    }

    /// The response was read; all of this was held `before`.
    pub(super) fn note_renamed(&mut self, type_url: &TypeUrl, of: Kind, before: &[Arc<Resource>]) {
        let Some(feed) = self.feeds.get(type_url) else { return };
        let replaced = before.iter().filter(|one| !feed.holds(one));
        let names = replaced.flat_map(|one| named(type_url.kind(), one)).cloned();
        self.renamed.entry(of).or_default().extend(names);
    }

    /// Whether the server has said anything about another type since then, on this stream.
    pub(crate) fn goes_on_since(&self, type_url: &TypeUrl, then: Instant) -> bool {
        let mut others = self.feeds.iter().filter(|(other, _)| *other != type_url);
        others.any(|(_, feed)| feed.has_heard_since(then))
    }
}
