// SPDX-License-Identifier: Apache-2.0
//! Who looks at the content of a type.
//!
//! Owns which names a client gets, and what it sees of a whole state. Does not know what the client asked for.

use std::sync::Arc;

use super::{Answers, Name, Permitted, Rights, State, TypeUrl};

/// The client of one subscription.
#[derive(Clone, Debug, Default)]
pub struct Viewer {
    /// S-01: what it may have of the type; `None`: everything.
    rights: Option<Arc<Rights>>,
    /// What it sees of the state that its wildcard covers, once that was looked up.
    permitted: Option<Arc<Permitted>>,
}

impl Viewer {
    /// Creates the viewer of a client with these rights.
    #[must_use]
    pub const fn new(rights: Option<Arc<Rights>>) -> Self {
        Self {
            rights,
            permitted: None,
        }
    }

    /// What the client may have of the type; `None`: everything.
    pub const fn rights(&self) -> Option<&Arc<Rights>> {
        self.rights.as_ref()
    }

    /// S-01: whether the client may have the resource of this name.
    pub fn may_have(&self, type_url: &TypeUrl, name: &Name) -> bool {
        self.rights().is_none_or(|rights| rights.allow(type_url, name.as_str()))
    }

    /// Whether the client may have no resource at all.
    pub fn has_nothing(&self) -> bool {
        self.rights().is_some_and(|rights| rights.are_none())
    }

    /// Returns what the client sees of this state; `None` if that was not looked up. S-01: what it may not have is never seen.
    #[must_use]
    pub fn seen_of<'a>(&'a self, state: &'a Arc<State>) -> Option<&'a Arc<State>> {
        if self.rights.is_none() {
            return Some(state);
        }
        let permitted = self.permitted.as_ref();
        permitted
            .filter(|permitted| permitted.of.id() == state.id())
            .map(|permitted| &permitted.seen)
    }

    /// Looks up what the client sees of the resources that its wildcard covers.
    pub fn look_at(&mut self, state: &Arc<State>, answers: &impl Answers) {
        if let Some(rights) = &self.rights
            && self.seen_of(state).is_none()
        {
            self.permitted = Some(answers.permitted(state, rights, self.permitted.as_deref()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Under rules each type takes a pointer of every client, and each wildcard another one.
    #[test]
    fn what_rights_take() {
        assert!(size_of::<Viewer>() <= 16);
    }
}
