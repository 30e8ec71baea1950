//! Which clients a resource is for: all, some, or (as a bundle of everything under a name) a relay that passes it on (TP2).
//!
//! Owns what distinguishes the variants of a name, and their bundle. Does not match clients.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;

use super::Resource;
use crate::constraints::variant_key;
use crate::version::Hasher;
use crate::{Constraints, Name};

/// Which clients a resource is for, if not for all (TP2).
#[derive(Clone)]
pub(super) enum Meant {
    /// For clients that these constraints allow.
    Some(Constraints),
    /// Everything under a name, each part with its remaining time to live: for a relay that passes it on.
    Bundle(Box<[Part]>),
}

/// A variant of a name, and its remaining time to live.
type Part = (Arc<Resource>, Option<Duration>);

/// The seed that makes the version of a bundle differ from that of its only part.
const BUNDLE: u64 = 0x6275_6e64_6c65;

impl Meant {
    /// Returns the same for a resource without its bytes.
    pub(super) fn hollow(&self) -> Self {
        match self {
            Self::Some(constraints) => Self::Some(constraints.clone()),
            Self::Bundle(_) => Self::Bundle(Box::default()),
        }
    }
}

impl Resource {
    /// Creates a bundle of all variants of a name and its unconstrained resource. To a relay that passes it on, it is everything
    /// under the name.
    #[must_use]
    pub fn bundle(parts: Vec<Part>) -> Option<Self> {
        let (first, _) = parts.first()?;
        let everybody = parts.iter().map(|(part, _)| part).find(|part| !part.is_varied());
        let mut hasher = Hasher::new(BUNDLE);
        for (part, _) in &parts {
            hasher.field(&part.version.text());
        }
        let received = parts.iter().map(|(part, _)| part.received).max()?;
        Some(Self {
            name: first.name.clone(),
            aliases: everybody.map(|part| part.aliases.clone()).unwrap_or_default(),
            version: hasher.finish(),
            record: Bytes::new(),
            inner_at: 0,
            any_at: 0,
            body_at: 0,
            miscalled: false,
            endpoints: everybody.unwrap_or(first).endpoints.clone(),
            received,
            references: OnceLock::new(),
            meant: Some(Box::new(Meant::Bundle(parts.into_boxed_slice()))),
        })
    }

    /// Whether it is a bundle of everything under a name.
    #[must_use]
    pub fn is_bundle(&self) -> bool {
        matches!(self.meant.as_deref(), Some(Meant::Bundle(_)))
    }

    /// Whether it has constraints, or is a bundle.
    #[must_use]
    pub const fn is_varied(&self) -> bool {
        self.meant.is_some()
    }

    /// The parts of a bundle.
    pub fn parts(&self) -> impl Iterator<Item = &Arc<Self>> {
        self.lives().iter().map(|(part, _)| part)
    }

    /// The parts of a bundle, each with its remaining time to live.
    #[must_use]
    pub fn lives(&self) -> &[Part] {
        match self.meant.as_deref() {
            Some(Meant::Bundle(parts)) => parts,
            Some(Meant::Some(_)) | None => &[],
        }
    }

    /// The constraints; `None` if it is for all clients (TP2).
    #[must_use]
    pub fn constraints(&self) -> Option<&Constraints> {
        match self.meant.as_deref() {
            Some(Meant::Some(constraints)) => Some(constraints),
            Some(Meant::Bundle(_)) | None => None,
        }
    }

    /// Returns the key that distinguishes it from all others of its type: its name, with its constraints if it has any.
    #[must_use]
    pub fn key(&self) -> Name {
        match self.constraints() {
            None => self.name.clone(),
            some => Name::from(variant_key(self.name.as_str(), some)),
        }
    }
}
