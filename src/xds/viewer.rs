//! Who looks at the content of a type.
//!
//! Owns which variants and which names a client gets, and what it sees of a whole state. Does not know what the client asked for.

use std::sync::Arc;

use super::{Answers, Audience, Choice, Chosen, Name, Rights, State, TypeUrl, Version};

/// The client of one subscription.
#[derive(Clone, Debug, Default)]
pub struct Viewer {
    /// S-01: what it may have of the type; `None`: everything.
    rights: Option<Arc<Rights>>,
    /// Most clients have no parameters, and see all of a state; then nothing is allocated.
    own: Option<Box<Own>>,
}

/// What distinguishes a client from others with the same rights.
#[derive(Clone, Debug, Default)]
struct Own {
    /// Its parameters, if it has any (TP2).
    audience: Option<Arc<Audience>>,
    /// What it sees of the state that its wildcard covers, once that was looked up.
    chosen: Option<Arc<Chosen>>,
}

/// What decides what a client sees of a state.
#[derive(Clone, Copy, Debug)]
pub struct Lens<'a> {
    /// Which variants it gets.
    pub choice: Option<&'a Choice>,
    /// What it may have; `None`: everything.
    pub rights: Option<&'a Arc<Rights>>,
}

impl Lens<'_> {
    /// Returns a hash that distinguishes this lens from others.
    #[must_use]
    pub fn fingerprint(&self) -> Version {
        let choice = self.choice.map_or(Version::EMPTY, Choice::fingerprint);
        let rights = self.rights.map_or(Version::EMPTY, |rights| rights.fingerprint());
        choice.plus(rights)
    }
}

impl Viewer {
    /// Creates the viewer of a client with these rights.
    #[must_use]
    pub const fn new(rights: Option<Arc<Rights>>) -> Self {
        Self { rights, own: None }
    }

    /// Returns the same client with other rights.
    #[must_use]
    pub fn with(&self, rights: Option<Arc<Rights>>) -> Self {
        let audience = self.own.as_ref().and_then(|own| own.audience.clone());
        let own = audience.map(|audience| {
            Box::new(Own {
                audience: Some(audience),
                chosen: None,
            })
        });
        Self { rights, own }
    }

    /// What the client may have of the type; `None`: everything.
    #[must_use]
    pub const fn rights(&self) -> Option<&Arc<Rights>> {
        self.rights.as_ref()
    }

    fn chosen(&self) -> Option<&Arc<Chosen>> {
        self.own.as_ref()?.chosen.as_ref()
    }

    /// The client's parameters, if it has any.
    #[must_use]
    pub fn audience(&self) -> Option<&Audience> {
        self.own.as_ref()?.audience.as_deref()
    }

    /// The same, to change what the client rejected.
    pub fn audience_mut(&mut self) -> Option<&mut Audience> {
        self.own.as_mut()?.audience.as_mut().map(Arc::make_mut)
    }

    /// Sets the choice for every name. Returns whether it changed.
    pub fn says_always(&mut self, own: Option<Choice>) -> bool {
        if self.audience().is_none() && own.is_none() {
            return false;
        }
        let this = self.own.get_or_insert_default();
        let changed = Arc::make_mut(this.audience.get_or_insert_default()).says_always(own);
        if changed {
            this.chosen = None;
        }
        changed
    }

    /// Sets the choice for one name; `None` means the one for every name. Returns whether it changed.
    pub fn says_with(&mut self, name: &Name, own: Option<Choice>) -> bool {
        if self.audience().is_none() && own.is_none() {
            return false;
        }
        let this = self.own.get_or_insert_default();
        let changed = Arc::make_mut(this.audience.get_or_insert_default()).says_with(name, own);
        if changed && name.as_str() == Name::WILDCARD {
            this.chosen = None;
        }
        changed
    }

    /// S-01: whether the client may have the resource of this name.
    #[must_use]
    pub fn may_have(&self, type_url: &TypeUrl, name: &Name) -> bool {
        self.rights().is_none_or(|rights| rights.allow(type_url, name.as_str()))
    }

    /// Whether the client may have no resource at all.
    #[must_use]
    pub fn has_nothing(&self) -> bool {
        self.rights().is_some_and(|rights| rights.are_none())
    }

    /// Whether the client may not have all resources of the type.
    #[must_use]
    pub const fn is_restricted(&self) -> bool {
        self.rights().is_some()
    }

    /// Returns what the client sees of this state; `None` if that was not looked up. S-01: what it may not have is never seen.
    #[must_use]
    pub fn seen_of<'a>(&'a self, state: &'a Arc<State>) -> Option<&'a Arc<State>> {
        match self.chosen() {
            Some(chosen) if chosen.of.id() == state.id() => Some(&chosen.seen),
            Some(_) | None => self.rights().is_none().then_some(state),
        }
    }

    /// Whether it was looked up what the client sees of this state.
    #[must_use]
    pub fn knows(&self, state: &State) -> bool {
        self.chosen().is_some_and(|chosen| chosen.of.id() == state.id())
    }

    /// Looks up what the client sees of the resources that its wildcard covers.
    pub fn look_at(&mut self, state: &Arc<State>, answers: &impl Answers) {
        let choice = self.audience().and_then(Audience::of_wildcard);
        let lens = Lens {
            choice: choice.filter(|_| state.varies()),
            rights: self.rights(),
        };
        let looks = lens.choice.is_some() || lens.rights.is_some();
        let before = self.chosen().map(|chosen| &**chosen);
        let chosen = looks.then(|| answers.chosen(state, lens, before));
        if chosen.is_some() || self.own.is_some() {
            self.own.get_or_insert_default().chosen = chosen;
        }
    }

    /// Forgets what the client sees; it is looked up again when it is needed.
    pub fn lighten(&mut self) {
        if let Some(this) = &mut self.own {
            this.chosen = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Under rules each type takes a pointer of every client, and each wildcard what is allocated for it.
    #[test]
    fn what_rights_take() {
        assert!(size_of::<Viewer>() <= 16 && size_of::<Own>() <= 16);
    }
}
