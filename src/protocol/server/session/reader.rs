// SPDX-License-Identifier: Apache-2.0
//! What one client can read of a type, and what it may have.
//!
//! Owns the form in which a resource is written for it. Does not know what the client asks for, and what it holds.

use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::server::caller::Caller;
use classes::Features;
use xds::{
    Answers, Dialect, Form, Item, Kind, Name, NameRule, Resource, Rights, Room, Sight, State, Traits, TypeSight,
    TypeUrl, Viewer,
};

/// One client as the reader of one type.
#[derive(Debug)]
pub(super) struct Reader {
    type_url: TypeUrl,
    dialect: Dialect,
    features: Features,
    /// Which names the client gets (S-01).
    viewer: Viewer,
    /// Whether the client is sent errors of single names (B-31).
    errors: bool,
    /// The number of its software, counted from 1, if what it accepts may be sent to others in the place of what they reject (K-37). So it
    /// takes one byte, and the reader no more room than without.
    software: Option<NonZeroU8>,
}

impl Reader {
    /// `rights` is what the client may have of the type; `None`: everything.
    pub(super) fn new(type_url: TypeUrl, caller: &Caller, rights: Option<Arc<Rights>>) -> Self {
        let features = caller.node().map_or_else(Features::default, |node| node.features);
        let software = caller.software().filter(|_| !type_url.kind().is_fleeting());
        Self {
            software: software.and_then(|number| NonZeroU8::new(number + 1)),
            features: type_url.counted(features),
            errors: caller.reads_errors(&type_url),
            type_url,
            dialect: caller.dialect(),
            viewer: Viewer::new(rights),
        }
    }

    pub(super) const fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    pub(super) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(super) const fn viewer(&self) -> &Viewer {
        &self.viewer
    }

    pub(super) const fn viewer_mut(&mut self) -> &mut Viewer {
        &mut self.viewer
    }

    /// Returns the bit of the client's software, unless it is a relay, or nothing of the type is ever sent in the place of something else.
    pub(super) fn software(&self) -> Option<u16> {
        self.software.map(|number| 1 << (number.get() - 1))
    }

    /// Finds out what the client sees of the wildcard's state.
    pub(super) fn look_up(&mut self, sight: &Sight, answers: &impl Answers) {
        if let Some(state) = sight.type_sight(&self.type_url).wildcard() {
            self.viewer.look_at(state, answers);
        }
    }

    /// Whether the client is sent errors of single names (B-31).
    pub(super) const fn reads_errors(&self) -> bool {
        self.errors
    }

    pub(super) fn traits(&self) -> &Traits {
        self.type_url.traits()
    }

    /// Whether a SotW answer of this type lists all resources (B-16).
    pub(super) fn full_state(&self) -> bool {
        self.dialect == Dialect::Sotw && self.traits().full_state
    }

    /// Whether nothing can be taken from the client, because a partial answer in SotW has no removals.
    pub(super) fn forgets(&self) -> bool {
        self.dialect == Dialect::Sotw && !self.traits().full_state
    }

    /// Whether an answer that brings anything lists all that the client wants, in one response. With several secrets on one stream,
    /// Envoy takes a secret that a response leaves out for one without content, and rejects the response (B-18).
    pub(super) fn lists_all(&self) -> bool {
        self.dialect == Dialect::Sotw && self.traits().kind.is_secret()
    }

    /// Returns the room in one response: none that lists everything is split.
    pub(super) fn room(&self, chunk: usize) -> Room {
        if self.full_state() || self.lists_all() {
            Room::boundless()
        } else {
            Room::new(chunk)
        }
    }

    /// Whether the type's resources can be asked for by other names (C-20).
    pub(super) fn has_aliases(&self) -> bool {
        self.dialect == Dialect::Delta && self.traits().aliases
    }

    /// Whether a resource without a name answers to all names.
    pub(super) fn has_nameless(&self) -> bool {
        self.traits().nameless
    }

    /// Whether no resource of the type exists for the client.
    pub(super) fn has_nothing(&self) -> bool {
        self.traits().withheld || self.viewer.has_nothing()
    }

    /// S-03: whether a name is requested from servers for this client.
    pub(super) fn is_served(&self, name: &Name) -> bool {
        !name.is_blank() && self.viewer.may_have(&self.type_url, name)
    }

    /// Whether resources of this type can only be named inside the wrapper message.
    fn wrapped(&self) -> bool {
        self.dialect == Dialect::Sotw && self.traits().name == NameRule::Wrapper
    }

    /// Whether the client cannot read this resource: it has a name, and that needs the wrapper.
    pub(super) fn cannot_read(&self, resource: &Resource) -> bool {
        self.wrapped() && !self.features.wrapper && !resource.name().is_empty()
    }

    /// Returns a resource in the form in which this client gets it, under the text by which it asked for it (F-09).
    pub(super) fn item(&self, name: &Name, resource: &Arc<Resource>, slot: TypeSight<'_>, now: Instant) -> Item {
        let ttl = self.ttl(resource, slot, now);
        let text = (name != resource.name()).then(|| name.clone());
        let wraps = self.wrapped() && !resource.name().is_empty();
        let around = ttl.is_some() || wraps || text.is_some() || resource.is_miscalled();
        let form = match self.dialect {
            Dialect::Sotw if around && (self.features.wrapper || ttl.is_some()) => Form::Wrapped,
            Dialect::Sotw | Dialect::Delta => Form::Whole,
        };
        Item {
            resource: resource.clone(),
            text,
            ttl,
            form,
        }
    }

    /// K-17: returns the remaining time to live, never the original. K-18: none to clients that cannot read it. M-04: none for
    /// EDS in SotW.
    pub(super) fn ttl(&self, resource: &Resource, slot: TypeSight<'_>, now: Instant) -> Option<Duration> {
        let expiry = slot.expiry(resource).filter(|_| self.reads_ttl())?;
        Some(expiry.at.saturating_duration_since(now))
    }

    pub(super) fn reads_ttl(&self) -> bool {
        let Features {
            ttl, wrapper, envoy, ..
        } = self.features;
        match self.dialect {
            Dialect::Delta => ttl || envoy,
            Dialect::Sotw => (ttl && wrapper || envoy) && !self.traits().kind.warms(),
        }
    }

    /// Whether all resources of a state are written for this client as for all others.
    pub(super) fn is_like_others(&self, state: &State) -> bool {
        let mortal = self.reads_ttl() && !state.expiries().is_empty();
        let wrapped = self.wrapped() && !state.is_nameless();
        !(mortal || wrapped || self.lists_all())
    }

    /// C-15: whether this client gets no answer for a name that does not exist. An Envoy that is told that routes do not exist ends
    /// its wait for them, but never uses the listener. Without an answer it uses the listener after `initial_fetch_timeout`.
    pub(super) fn waits_for_routes(&self) -> bool {
        self.features.envoy && self.traits().kind == Kind::Rds
    }
}
