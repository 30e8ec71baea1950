//! For whom a resource is: for everybody, for some, or all that there is of a name for a relay that passes it on (TP2).
//!
//! Owns what tells variants of a name apart, and their joining. Refuses to match anybody.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::Resource;
use crate::xds::constraints::variant_key;
use crate::xds::version::Hasher;
use crate::xds::{Constraints, Name};

/// For whom a resource is meant, if not for everybody (TP2).
#[derive(Clone)]
pub(super) enum Meant {
    /// For those that this allows.
    Some(Constraints),
    /// It is all that there is of a name, each part with what remains of its life: for a relay that passes it on.
    Bundle(Box<[Part]>),
}

/// A variant of a name, and what remains of its life.
type Part = (Arc<Resource>, Option<Duration>);

/// The seed that tells the version of a bundle from that of its only part.
const BUNDLE: u64 = 0x6275_6e64_6c65;

impl Meant {
    /// The same of a resource without its bytes.
    pub(super) fn hollow(&self) -> Self {
        match self {
            Self::Some(constraints) => Self::Some(constraints.clone()),
            Self::Bundle(_) => Self::Bundle(Box::default()),
        }
    }
}

impl Resource {
    /// All variants of a name, and what is for everybody, as one thing: whoever passes it on takes it for all there is of the name.
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
            meant: Some(Box::new(Meant::Bundle(parts.into_boxed_slice()))),
        })
    }

    /// Whether it is all that there is of a name as one thing.
    #[must_use]
    pub fn is_bundle(&self) -> bool {
        matches!(self.meant.as_deref(), Some(Meant::Bundle(_)))
    }

    /// Whether anything of it is not for everybody.
    #[must_use]
    pub const fn is_varied(&self) -> bool {
        self.meant.is_some()
    }

    /// Of a bundle, its parts.
    pub fn parts(&self) -> impl Iterator<Item = &Arc<Self>> {
        self.lives().iter().map(|(part, _)| part)
    }

    /// Of a bundle, its parts and what remains of the life of each.
    #[must_use]
    pub fn lives(&self) -> &[Part] {
        match self.meant.as_deref() {
            Some(Meant::Bundle(parts)) => parts,
            Some(Meant::Some(_)) | None => &[],
        }
    }

    /// For whom it is meant; none is everybody (TP2).
    #[must_use]
    pub fn constraints(&self) -> Option<&Constraints> {
        match self.meant.as_deref() {
            Some(Meant::Some(constraints)) => Some(constraints),
            Some(Meant::Bundle(_)) | None => None,
        }
    }

    /// What tells it from all others of its type: its name, or that and for whom it is meant.
    #[must_use]
    pub fn key(&self) -> Name {
        match self.constraints() {
            None => self.name.clone(),
            some => Name::from(variant_key(self.name.as_str(), some)),
        }
    }
}
