//! What one session reads: of each authority, what one server says.
//!
//! Owns the way from a name to the cut that counts for it. Refuses to choose the server: whoever binds the session does.

use std::sync::{Arc, LazyLock};

use super::{
    Audience, Authorities, Choice, Constraints, Cut, Expiry, Known, Name, Reason, Resource, ResourceError, Slot, State,
    TypeUrl, Version,
};

/// One cut for the names of old style, and one for each authority that the session asks of. No name has two.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    plain: Arc<Cut>,
    /// By authority. Most sessions have none.
    authorities: Vec<(Arc<str>, Arc<Cut>)>,
    /// The authorities that have servers of their own.
    served: Authorities,
}

/// One type as a session reads it.
#[derive(Clone, Copy, Debug)]
pub struct TypeSight<'a> {
    type_url: &'a TypeUrl,
    sight: &'a Sight,
    plain: Option<&'a Slot>,
    audience: Option<&'a Audience>,
}

/// F-15: what does not exist, whoever is asked.
static NOWHERE: Known = Known::Absent(Reason::Said);
/// All there is of a type of which nothing exists.
static NOTHING: LazyLock<Arc<State>> = LazyLock::new(|| Arc::new(State::new(TypeUrl::new("")).with(&[], Some(true)).0));

impl From<Arc<Cut>> for Sight {
    /// All there is for a session that asks for names of old style alone.
    fn from(plain: Arc<Cut>) -> Self {
        Self::new(plain, Authorities::default())
    }
}

impl Sight {
    /// Names of old style are read from this cut; these authorities have servers of their own.
    #[must_use]
    pub const fn new(plain: Arc<Cut>, served: Authorities) -> Self {
        Self {
            plain,
            authorities: Vec::new(),
            served,
        }
    }

    /// The names of this authority are read from this cut.
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

    /// The authority from whose cut a name is read; `None`: from that of the names of old style.
    #[must_use]
    pub fn authority<'a>(&self, name: &'a Name) -> Option<&'a str> {
        self.served.of(name)
    }

    /// What is known of a type.
    #[must_use]
    pub fn type_sight<'a>(&'a self, type_url: &'a TypeUrl) -> TypeSight<'a> {
        TypeSight {
            type_url,
            sight: self,
            plain: self.plain.slot(type_url),
            audience: None,
        }
    }

    /// Whether the server that counts for this name can be reached, as far as is known.
    #[must_use]
    pub fn reachable(&self, name: Option<&Name>) -> bool {
        if name.is_some_and(Name::is_nothing) {
            return true;
        }
        match name.and_then(|name| self.authority(name)) {
            None => self.plain.server_state().reachable(),
            Some(authority) => self.cut(authority).is_some_and(|cut| cut.server_state().reachable()),
        }
    }

    /// Why the server that counts for this name has not answered, as far as is known.
    #[must_use]
    pub fn reason(&self, name: Option<&Name>) -> Option<&str> {
        match name.and_then(Name::authority) {
            None => self.plain.reason(),
            Some(authority) => self.cut(authority)?.reason(),
        }
    }
}

impl<'a> TypeSight<'a> {
    /// The same as a client sees it that says something of itself (F-16).
    #[must_use]
    pub const fn seen_by(self, audience: Option<&'a Audience>) -> Self {
        Self { audience, ..self }
    }

    /// The authority from whose cut a name is read; `None`: from that of the names of old style.
    #[must_use]
    pub fn authority(self, name: &Name) -> Option<&str> {
        self.sight.authority(name)
    }

    /// What the wildcard covers for this client, if anybody wants it. It is about names of old style.
    #[must_use]
    pub fn wildcard(self) -> Option<&'a Arc<State>> {
        if self.type_url.traits().withheld {
            return Some(&NOTHING);
        }
        let state = self.plain?.wildcard.as_ref()?;
        Some(self.audience.and_then(|own| own.seen_of(state)).unwrap_or(state))
    }

    /// What is known of a name. F-03: one that names nothing does not exist, whoever is asked.
    #[must_use]
    pub fn known(self, name: &Name) -> Option<&'a Known> {
        if name.is_nothing() || self.type_url.traits().withheld {
            return Some(&NOWHERE);
        }
        let own = self.audience.and_then(|own| own.choice(name));
        let known = self.slot(name)?.choose(name, own);
        // C-22: a collection of which there is nothing for everybody is not empty to whom variants in it are for.
        let varies = own.is_some() && name.is_collection() && matches!(known, Some(Known::Absent(_)));
        known.filter(|_| !varies || self.members(name).next().is_none())
    }

    /// Whether a client that says this of itself matches several variants of a name (F-16).
    #[must_use]
    pub fn ambiguous(self, name: &Name, own: &Choice) -> bool {
        let slot = self.slot(name);
        slot.is_some_and(|slot| slot.halves().any(|state| state.ambiguous(name, own)))
    }

    /// What the variant of a name with this version demands.
    #[must_use]
    pub fn demands(self, name: &Name, version: Version) -> Option<&'a Constraints> {
        self.slot(name)?.halves().find_map(|state| state.demands(name, version))
    }

    /// The resource of this name, if it exists.
    #[must_use]
    pub fn resource(self, name: &Name) -> Option<&'a Arc<Resource>> {
        match self.known(name) {
            Some(Known::Present(resource)) => Some(resource),
            Some(Known::Absent(_)) | None => None,
        }
    }

    /// The resource of this name among those that were asked for by name.
    #[must_use]
    pub fn named(self, name: &Name) -> Option<&'a Arc<Resource>> {
        self.slot(name)?.named.resource(name)
    }

    /// The members of a collection that are known, each by what is for everybody where there is such a thing (C-22).
    pub fn members(self, collection: &'a Name) -> impl Iterator<Item = &'a Arc<Resource>> {
        let named = self.slot(collection).map(|slot| &slot.named);
        let own = self.audience.and_then(|own| own.choice(collection));
        let others = own
            .zip(named)
            .map(|(own, state)| state.varying_members(collection, own));
        let plain = named.into_iter().flat_map(move |state| state.members(collection));
        plain.chain(others.into_iter().flatten())
    }

    /// What a client is told that is wrong with a name (E-09).
    #[must_use]
    pub fn error(self, name: &Name) -> Option<&'a Arc<ResourceError>> {
        self.slot(name)?.named.error(name).filter(|error| error.is_told())
    }

    /// How long this resource still lives.
    #[must_use]
    pub fn expiry(self, resource: &Resource) -> Option<Expiry> {
        self.slot(resource.name())?.expiry_of(resource)
    }

    /// Whether the server that counts for this name has answered for the type on its present stream.
    #[must_use]
    pub fn answered(self, name: Option<&Name>) -> bool {
        let slot = name.map_or(self.plain, |name| self.slot(name));
        slot.is_some_and(|slot| slot.answered)
    }

    /// Whether that server is there and has answered past the name.
    #[must_use]
    pub fn past(self, name: &Name) -> bool {
        self.sight.reachable(Some(name)) && self.answered(Some(name))
    }

    fn slot(self, name: &Name) -> Option<&'a Slot> {
        match self.sight.authority(name) {
            None => self.plain,
            Some(authority) => self.sight.cut(authority)?.slot(self.type_url),
        }
    }
}
