// SPDX-License-Identifier: Apache-2.0
//! Who is asked for what: the servers of an authority, those of a source, or those of all other names.
//!
//! Owns the way from a type and a name to its owner. Does not know which servers an owner has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Name, TypeUrl};

/// The owners that the configuration names; copies share one table. Each target has one owner.
#[derive(Clone, Debug, Default)]
pub struct Owners(Arc<OwnerTable>);

#[derive(Debug, Default)]
struct OwnerTable {
    authorities: BTreeSet<Arc<str>>,
    /// The key of each type's source, by the type's full name.
    sources: BTreeMap<Box<str>, Arc<str>>,
}

impl Owners {
    /// Creates the owners: these authorities, and the sources by the full names of their types.
    #[must_use]
    pub fn new(authorities: impl IntoIterator<Item = Arc<str>>, sources: BTreeMap<Box<str>, Arc<str>>) -> Self {
        Self(Arc::new(OwnerTable {
            authorities: authorities.into_iter().collect(),
            sources,
        }))
    }

    /// Returns the owner of a name, or of the wildcard of a type: the authority of the name, or else the source of the type (F-18).
    /// `None`: what is asked of the servers at the top. F-13: this is also the case for a new-style name if the configuration does not
    /// name its authority.
    pub fn of(&self, type_url: &TypeUrl, name: Option<&Name>) -> Option<&str> {
        let authority = name.and_then(|name| self.authority(name));
        authority.or_else(|| self.source(type_url))
    }

    /// Whether anything of a type may belong to this owner.
    pub fn have(&self, owner: Option<&str>, type_url: &TypeUrl) -> bool {
        let authority = owner.is_some_and(|owner| self.0.authorities.contains(owner));
        authority || self.source(type_url) == owner
    }

    /// Returns all owners: the servers at the top, authorities and sources.
    pub(crate) fn all(&self) -> impl Iterator<Item = Option<&Arc<str>>> {
        let sources: BTreeSet<&Arc<str>> = self.0.sources.values().collect();
        let named = self.0.authorities.iter().chain(sources);
        std::iter::once(None).chain(named.map(Some))
    }

    /// Whether the two are one table.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the authority with servers of its own to which a name belongs.
    pub(crate) fn authority(&self, name: &Name) -> Option<&str> {
        let authority = self.0.authorities.get(name.authority()?)?;
        Some(authority)
    }

    /// Returns the key of a type's source.
    #[inline]
    pub(crate) fn source(&self, type_url: &TypeUrl) -> Option<&str> {
        if self.0.sources.is_empty() {
            return None;
        }
        self.0.sources.get(type_url.full_name()).map(|source| &**source)
    }
}

/// A78: returns what operators are shown for an owner. Names without one have the label that gRPC gives them.
#[must_use]
pub const fn authority_label(owner: &str) -> &str {
    if owner.is_empty() { "#old" } else { owner }
}

impl<A: Into<Arc<str>>> FromIterator<A> for Owners {
    /// Collects authorities.
    fn from_iter<I: IntoIterator<Item = A>>(authorities: I) -> Self {
        Self::new(authorities.into_iter().map(Into::into), BTreeMap::new())
    }
}
