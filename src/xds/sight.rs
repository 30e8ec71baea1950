// SPDX-License-Identifier: Apache-2.0
//! What one session reads: for each owner of names, the content of one server.
//!
//! Owns the way from a name to the cut that it is read from. Does not choose the server: whoever binds the session does.

use std::sync::{Arc, LazyLock};

use super::{
    Cut, Expiry, Known, Name, Owners, Reason, Resource, ResourceError, ServerState, Slot, State, TypeUrl, Viewer,
};

/// One cut for each authority and source that the session uses, and one for all else. No name has two.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    plain: Arc<Cut>,
    /// By owner. Most sessions have none.
    owned: Vec<(Arc<str>, Arc<Cut>)>,
    owners: Owners,
    /// Owners of which the session may still come to read another server; `None`: that of all other names.
    others: Vec<Option<Arc<str>>>,
}

/// One type as a session reads it.
#[derive(Clone, Copy, Debug)]
pub struct TypeSight<'a> {
    type_url: &'a TypeUrl,
    sight: &'a Sight,
    /// What its names have that belong to no authority.
    usual: Option<&'a Slot>,
    viewer: Option<&'a Viewer>,
}

/// A resource that exists on no server.
static NOWHERE: Known = Known::Absent(Reason::Said);
/// S-04: a resource that the client may not have.
static DENIED: LazyLock<Arc<ResourceError>> = LazyLock::new(|| Arc::new(ResourceError::denied()));
/// The complete and empty state of a type without resources.
static NOTHING: LazyLock<Arc<State>> = LazyLock::new(|| Arc::new(State::new(TypeUrl::new("")).with(&[], Some(true)).0));

impl From<Arc<Cut>> for Sight {
    /// For a session that requests old-style names only.
    fn from(plain: Arc<Cut>) -> Self {
        Self::new(plain, Owners::default())
    }
}

impl Sight {
    /// Reads from `plain` all that has none of these owners.
    #[must_use]
    pub const fn new(plain: Arc<Cut>, owners: Owners) -> Self {
        Self {
            plain,
            owned: Vec::new(),
            owners,
            others: Vec::new(),
        }
    }

    /// The session may still come to read another server for what this owner has than the one that it reads.
    pub fn add_other(&mut self, owner: Option<Arc<str>>) {
        self.others.push(owner);
    }

    /// Reads what this owner has from this cut.
    pub fn add(&mut self, owner: Arc<str>, cut: Arc<Cut>) {
        match self.place(&owner) {
            Ok(at) => drop(self.owned.get_mut(at).map(|known| known.1 = cut)),
            Err(at) => self.owned.insert(at, (owner, cut)),
        }
    }

    fn place(&self, owner: &str) -> Result<usize, usize> {
        self.owned.binary_search_by(|(known, _)| (**known).cmp(owner))
    }

    /// Returns the cut from which the names of an owner are read.
    #[inline]
    fn cut(&self, owner: Option<&str>) -> Option<&Arc<Cut>> {
        let Some(owner) = owner else {
            return Some(&self.plain);
        };
        let at = self.place(owner).ok()?;
        self.owned.get(at).map(|(_, cut)| cut)
    }

    /// Returns what the session reads of a type.
    #[must_use]
    #[inline]
    pub fn type_sight<'a>(&'a self, type_url: &'a TypeUrl) -> TypeSight<'a> {
        let cut = self.cut(self.owners.source(type_url));
        TypeSight {
            type_url,
            sight: self,
            usual: cut.and_then(|cut| cut.slot(type_url)),
            viewer: None,
        }
    }

    /// Whether any server that the session reads has failed and has not answered since.
    pub fn any_failing(&self) -> bool {
        let mut all = std::iter::once(&self.plain).chain(self.owned.iter().map(|(_, cut)| cut));
        all.any(|cut| cut.server_state() == ServerState::Failing)
    }
}

impl<'a> TypeSight<'a> {
    /// Returns the same as one client sees it (S-01).
    #[must_use]
    pub const fn seen_by(self, viewer: &'a Viewer) -> Self {
        Self {
            viewer: Some(viewer),
            ..self
        }
    }

    /// S-01: whether the client may not have the resource of this name.
    fn denies(self, name: &Name) -> bool {
        self.viewer.is_some_and(|viewer| !viewer.may_have(self.type_url, name))
    }

    /// Whether there is no resource of the type for the client.
    fn has_nothing(self) -> bool {
        self.type_url.traits().withheld || self.viewer.is_some_and(Viewer::has_nothing)
    }

    /// Returns the owner of a name; `None` as a name stands for the wildcard.
    fn owner(self, name: Option<&Name>) -> Option<&'a str> {
        self.sight.owners.of(self.type_url, name)
    }

    /// Returns the cut from which a name is read.
    fn cut(self, name: Option<&Name>) -> Option<&'a Arc<Cut>> {
        self.sight.cut(self.owner(name))
    }

    /// Whether the server for this name can be reached, as far as the relay knows; `None` as a name stands for the wildcard.
    #[must_use]
    pub fn reachable(self, name: Option<&Name>) -> bool {
        let blank = name.is_some_and(Name::is_blank);
        blank || self.cut(name).is_some_and(|cut| cut.server_state().reachable())
    }

    /// Whether the server for this name has failed and has not answered since.
    #[must_use]
    pub fn failing(self, name: Option<&Name>) -> bool {
        let cut = self.cut(name);
        cut.is_some_and(|cut| cut.server_state() == ServerState::Failing)
    }

    /// Whether all servers for this name have failed, and none has answered since.
    #[must_use]
    pub fn lost(self, name: Option<&Name>) -> bool {
        let owner = self.owner(name);
        self.failing(name) && !self.sight.others.iter().any(|other| other.as_deref() == owner)
    }

    /// Why the server for this name has not answered, as far as the relay knows.
    #[must_use]
    pub fn reason(self, name: Option<&Name>) -> Option<&'a str> {
        self.cut(name)?.reason()
    }

    /// Returns what the wildcard covers for this client, if anybody wants it. It covers no name of an authority with servers of its own.
    #[must_use]
    pub fn wildcard(self) -> Option<&'a Arc<State>> {
        if self.has_nothing() {
            return Some(&NOTHING);
        }
        let state = self.usual?.wildcard.as_ref()?;
        self.viewer.map_or(Some(state), |viewer| viewer.seen_of(state))
    }

    /// Whether everything is known that the wildcard covers.
    #[must_use]
    pub fn is_complete(self) -> bool {
        let state = self.usual.and_then(|slot| slot.wildcard.as_ref());
        self.has_nothing() || state.is_some_and(|state| state.complete())
    }

    /// Returns what is known of a name.
    #[must_use]
    pub fn known(self, name: &Name) -> Option<&'a Known> {
        if name.is_blank() || self.has_nothing() || self.denies(name) {
            return Some(&NOWHERE);
        }
        let slot = self.slot(name)?;
        let known = slot.known(name);
        // S-01: it may have been found by another of its names, even if it is unknown whether it still has that (C-20).
        let found = known.map_or_else(|| slot.named.resource(name), Known::resource);
        if found.is_some_and(|found| found.name() != name && self.denies(found.name())) {
            return Some(&NOWHERE);
        }
        // C-22: a collection is as empty as its members that the client may have.
        let whole = known.is_none() && name.is_collection() && slot.named.whole(name);
        if whole && self.members(name).next().is_none() {
            return Some(&NOWHERE);
        }
        known
    }

    /// Returns the resource of this name, if it exists.
    #[must_use]
    pub fn resource(self, name: &Name) -> Option<&'a Arc<Resource>> {
        self.known(name)?.resource()
    }

    /// Returns the resource of this name among those that were requested by name.
    #[must_use]
    pub fn named(self, name: &Name) -> Option<&'a Arc<Resource>> {
        let found = self.slot(name)?.named.resource(name)?;
        (!self.denies(found.name())).then_some(found)
    }

    /// The known members of a collection.
    pub fn members(self, collection: &'a Name) -> impl Iterator<Item = &'a Arc<Resource>> {
        let slot = self.slot(collection).into_iter();
        let all = slot.flat_map(move |slot| slot.named.members(collection));
        all.filter(move |member| !self.denies(member.name()))
    }

    /// Returns the error of a name that the client is told (E-09).
    #[must_use]
    pub fn error(self, name: &Name) -> Option<&'a Arc<ResourceError>> {
        // B-31: an error has a name, so there is none for the empty name.
        if !name.is_blank() && self.denies(name) {
            return Some(&DENIED);
        }
        self.slot(name)?.named.error(name).filter(|error| error.is_told())
    }

    /// Returns why the server does not answer the wildcard, if it refuses the type.
    #[must_use]
    pub fn refusal(self) -> Option<&'a Arc<ResourceError>> {
        let state = self.usual?.wildcard.as_ref()?;
        state.error(&Name::from(Name::WILDCARD)).filter(|error| error.is_told())
    }

    /// Returns when this resource expires.
    #[must_use]
    pub fn expiry(self, resource: &Resource) -> Option<Expiry> {
        self.slot(resource.name())?.expiry(resource.name())
    }

    /// Returns the last heartbeat of this resource, if it has a time to live.
    #[must_use]
    pub fn beat(self, resource: &Resource) -> Option<u32> {
        self.expiry(resource).map(|expiry| expiry.beat)
    }

    /// Whether the server for this name has answered for the type on its present stream.
    #[must_use]
    pub fn answered(self, name: Option<&Name>) -> bool {
        let slot = name.map_or(self.usual, |name| self.slot(name));
        slot.is_some_and(|slot| slot.answered)
    }

    /// Whether that server can be reached and has answered for the type, and so has passed over the name.
    #[must_use]
    pub fn past(self, name: &Name) -> bool {
        self.reachable(Some(name)) && self.answered(Some(name))
    }

    /// Whether there are names for which their server did not answer in time, whoever asks for them.
    #[must_use]
    pub fn any_silent(self) -> bool {
        let mut cuts = std::iter::once(&self.sight.plain).chain(self.sight.owned.iter().map(|(_, cut)| cut));
        cuts.any(|cut| {
            cut.slot(self.type_url)
                .is_some_and(|slot| !slot.named.silent().is_empty())
        })
    }

    /// Whether the server of this name did not answer for it in time.
    #[must_use]
    pub fn is_silent(self, name: &Name) -> bool {
        matches!(self.known(name), Some(Known::Absent(Reason::TimedOut)))
    }

    fn slot(self, name: &Name) -> Option<&'a Slot> {
        match self.sight.owners.authority(name) {
            None => self.usual,
            Some(authority) => self.sight.cut(Some(authority))?.slot(self.type_url),
        }
    }
}
