//! Content that clients of one kind reject, and what newcomers of the kind are served in its place.
//!
//! Owns the values. Does not decide what is condemned.

use std::sync::Arc;
use std::time::Instant;

use classes::{Class, ClientKind};

use super::{Name, Objection, Resource, TypeUrl, Version};

/// When content is condemned, and how much older content is kept to stand in for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerdictSettings {
    /// How many clients of a kind must reject a content; 0: nothing is condemned.
    pub after: usize,
    /// The most bytes of replaced content that a view keeps.
    pub history_bytes: usize,
}

impl Default for VerdictSettings {
    fn default() -> Self {
        Self {
            after: 2,
            history_bytes: 16 << 20,
        }
    }
}

/// A content that is condemned for one kind of client.
#[derive(Clone, Debug)]
pub struct Condemned {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its version; it has the name of what stands in for it.
    pub version: Version,
    /// The kind of client; `None`: all kinds of which none has a place of its own.
    pub kind: Option<ClientKind>,
    /// What the kind is served instead: the last content of that name that it accepted.
    pub stands_in: Arc<Resource>,
    /// Since when.
    pub since: Instant,
    /// How many clients of the kind have rejected it.
    pub clients: usize,
    /// How many clients of the kind ask for it.
    pub of: usize,
    /// The words of one of them.
    pub objection: Arc<Objection>,
}

/// Why a content is not condemned any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictEnd {
    /// The control plane says something else.
    Changed,
    /// A client of the kind has accepted it.
    Accepted,
    /// A person has said so.
    Released,
    /// What stood in for it is rejected as well.
    StandInRejected,
    /// Nothing is condemned by the configuration.
    Off,
}

impl Condemned {
    /// Returns the same for clients of this class.
    #[must_use]
    pub fn in_class(&self, class: &Arc<Class>) -> Self {
        let kind = self.kind.as_ref();
        Self {
            kind: kind.map(|kind| ClientKind::new(class.clone(), kind.user_agent().clone())),
            ..self.clone()
        }
    }

    /// The name of the content.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.stands_in.name()
    }

    /// Whether this is the content, for whatever kind.
    #[must_use]
    pub fn is(&self, type_url: &TypeUrl, name: &Name, version: Version) -> bool {
        self.version == version && self.name() == name && self.type_url == *type_url
    }

    /// Why older content stands in for it, as people read it.
    #[must_use]
    pub fn why(&self) -> String {
        let clients = if self.of == 1 { "client" } else { "clients" };
        let (kind, rejected, of) = (self.kind(), self.clients, self.of);
        format!("condemned for {kind}: {rejected} of {of} {clients} rejected it")
    }

    /// The kind, as people read it.
    #[must_use]
    pub fn kind(&self) -> String {
        self.kind
            .as_ref()
            .map_or_else(|| "other software".to_owned(), ClientKind::to_string)
    }
}

impl VerdictEnd {
    /// What people read.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Changed => "its content has changed",
            Self::Accepted => "a client of the kind accepted it",
            Self::Released => "it was released by an order",
            Self::StandInRejected => "the older content is rejected as well",
            Self::Off => "verdicts are off",
        }
    }
}
