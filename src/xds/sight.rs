//! What one session reads: for each authority, the content of one server.
//!
//! Owns the way from a name to the cut that it is read from. Does not choose the server: whoever binds the session does.

use std::sync::{Arc, LazyLock};

use imbl::OrdSet;

use super::{
    Authorities, Cut, Expiry, Known, Name, Reason, Resource, ResourceError, ServerState, Slot, State, TypeUrl, Viewer,
};

/// One cut for the old-style names, and one for each authority that the session uses. No name has two.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    plain: Arc<Cut>,
    /// By authority. Most sessions have none.
    authorities: Vec<(Arc<str>, Arc<Cut>)>,
    /// The authorities that have servers of their own.
    served: Authorities,
    /// Authorities of which the session may still come to read another server; `None`: the old-style names.
    others: Vec<Option<Arc<str>>>,
}

/// One type as a session reads it.
#[derive(Clone, Copy, Debug)]
pub struct TypeSight<'a> {
    type_url: &'a TypeUrl,
    sight: &'a Sight,
    plain: Option<&'a Slot>,
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
        Self::new(plain, Authorities::default())
    }
}

impl Sight {
    /// Reads old-style names from `plain`; the authorities in `served` have servers of their own.
    #[must_use]
    pub const fn new(plain: Arc<Cut>, served: Authorities) -> Self {
        Self {
            plain,
            authorities: Vec::new(),
            served,
            others: Vec::new(),
        }
    }

    /// The session may still come to read another server of this authority than the one that it reads.
    pub fn add_other(&mut self, authority: Option<Arc<str>>) {
        self.others.push(authority);
    }

    /// Reads the names of this authority from this cut.
    pub fn add(&mut self, authority: Arc<str>, cut: Arc<Cut>) {
        match self.place(&authority) {
            Ok(at) => drop(self.authorities.get_mut(at).map(|known| known.1 = cut)),
            Err(at) => self.authorities.insert(at, (authority, cut)),
        }
    }

    fn place(&self, authority: &str) -> Result<usize, usize> {
        self.authorities.binary_search_by(|(known, _)| (**known).cmp(authority))
    }

    fn cut(&self, authority: &str) -> Option<&Arc<Cut>> {
        let at = self.place(authority).ok()?;
        self.authorities.get(at).map(|(_, cut)| cut)
    }

    /// Returns the authority from whose cut a name is read; `None`: the cut of the old-style names.
    #[must_use]
    pub fn authority<'a>(&self, name: &'a Name) -> Option<&'a str> {
        self.served.of(name)
    }

    /// Returns what the session reads of a type.
    #[must_use]
    pub fn type_sight<'a>(&'a self, type_url: &'a TypeUrl) -> TypeSight<'a> {
        TypeSight {
            type_url,
            sight: self,
            plain: self.plain.slot(type_url),
            viewer: None,
        }
    }

    /// Whether the server for this name can be reached, as far as the relay knows.
    #[must_use]
    pub fn reachable(&self, name: Option<&Name>) -> bool {
        if name.is_some_and(Name::is_blank) {
            return true;
        }
        match name.and_then(|name| self.authority(name)) {
            None => self.plain.server_state().reachable(),
            Some(authority) => self.cut(authority).is_some_and(|cut| cut.server_state().reachable()),
        }
    }

    /// Whether any server that the session reads has failed and has not answered since.
    #[must_use]
    pub fn any_failing(&self) -> bool {
        let mut all = std::iter::once(&self.plain).chain(self.authorities.iter().map(|(_, cut)| cut));
        all.any(|cut| cut.server_state() == ServerState::Failing)
    }

    /// Whether the server for this name has failed and has not answered since.
    #[must_use]
    pub fn failing(&self, name: Option<&Name>) -> bool {
        let authority = name.and_then(|name| self.authority(name));
        let cut = authority.map_or(Some(&self.plain), |authority| self.cut(authority));
        cut.is_some_and(|cut| cut.server_state() == ServerState::Failing)
    }

    /// Whether all servers for this name have failed, and none has answered since.
    #[must_use]
    pub fn lost(&self, name: Option<&Name>) -> bool {
        let authority = name.and_then(|name| self.authority(name));
        self.failing(name) && !self.others.iter().any(|other| other.as_deref() == authority)
    }

    /// Why the server for this name has not answered, as far as the relay knows.
    #[must_use]
    pub fn reason(&self, name: Option<&Name>) -> Option<&str> {
        match name.and_then(Name::authority) {
            None => self.plain.reason(),
            Some(authority) => self.cut(authority)?.reason(),
        }
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

    /// Returns the authority from whose cut a name is read; `None`: the cut of the old-style names.
    #[must_use]
    pub fn authority(self, name: &Name) -> Option<&str> {
        self.sight.authority(name)
    }

    /// Returns what the wildcard covers for this client, if anybody wants it. It covers old-style names only.
    #[must_use]
    pub fn wildcard(self) -> Option<&'a Arc<State>> {
        if self.has_nothing() {
            return Some(&NOTHING);
        }
        let state = self.plain?.wildcard.as_ref()?;
        self.viewer.map_or(Some(state), |viewer| viewer.seen_of(state))
    }

    /// Whether everything is known that the wildcard covers.
    #[must_use]
    pub fn is_complete(self) -> bool {
        let state = self.plain.and_then(|slot| slot.wildcard.as_ref());
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
        let slot = name.map_or(self.plain, |name| self.slot(name));
        slot.is_some_and(|slot| slot.answered)
    }

    /// Whether that server can be reached and has answered for the type, and so has passed over the name.
    #[must_use]
    pub fn past(self, name: &Name) -> bool {
        self.sight.reachable(Some(name)) && self.answered(Some(name))
    }

    /// Returns the names for which their server did not answer in time, whoever asks for them.
    pub fn silent(self) -> impl Iterator<Item = &'a OrdSet<Name>> {
        let others = self.sight.authorities.iter();
        let others = others.filter_map(move |(_, cut)| cut.slot(self.type_url));
        let all = self.plain.into_iter().chain(others).map(|slot| slot.named.silent());
        all.filter(|names| !names.is_empty())
    }

    /// Whether the server of this name did not answer for it in time.
    #[must_use]
    pub fn is_silent(self, name: &Name) -> bool {
        matches!(self.known(name), Some(Known::Absent(Reason::TimedOut)))
    }

    fn slot(self, name: &Name) -> Option<&'a Slot> {
        match self.sight.authority(name) {
            None => self.plain,
            Some(authority) => self.sight.cut(authority)?.slot(self.type_url),
        }
    }
}
