// SPDX-License-Identifier: Apache-2.0
//! What one client may have.
//!
//! Owns the answer for each type and name. Does not know the client: clients for whom the rules come to the same have equal rights.

use std::sync::{Arc, LazyLock};

use super::{AccessRule, Index, shown};
use crate::version::Hasher;
use crate::{TypeUrl, Version};
use classes::{Fields, Pattern};

/// What one client may have.
#[derive(Debug)]
pub struct Rights {
    applied: Vec<Applied>,
    /// Whether a rule that names no types is also about secrets.
    secrets: bool,
    /// By names, if there are many rules.
    index: Option<(Index, Vec<u32>)>,
    fingerprint: Version,
}

/// A rule that is about the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Applied {
    allow: bool,
    types: Arc<[Box<str>]>,
    /// Without fields.
    names: Arc<[Pattern]>,
}

/// What a client may have of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Every resource.
    Everything,
    /// Some resources: it depends on their names.
    Some,
    /// Nothing.
    Nothing,
}

/// Up to this many rules are tried one after the other.
const FEW: usize = 16;
/// The messages of secrets.
const SECRETS: [&str; 2] = [
    "envoy.extensions.transport_sockets.tls.v3.Secret",
    "envoy.api.v2.auth.Secret",
];

impl Applied {
    pub(super) fn new(rule: &AccessRule, fields: &Fields) -> Self {
        let bare = rule.names.iter().all(|pattern| pattern.fields().next().is_none());
        let any = rule.names.iter().any(Pattern::is_any);
        let names = match (any, bare) {
            (true, _) => Arc::default(),
            (false, true) => rule.names.clone(),
            (false, false) => rule.names.iter().map(|pattern| pattern.filled(fields)).collect(),
        };
        Self {
            allow: rule.allow,
            types: rule.types.clone(),
            names,
        }
    }

    pub(super) const fn allows(&self) -> bool {
        self.allow
    }

    /// Whether it decides everything that no rule before it decides.
    pub(super) fn ends(&self, secrets: bool) -> bool {
        self.is_about_everything() && (!self.allow || secrets)
    }

    fn is_about_everything(&self) -> bool {
        self.types.is_empty() && self.names.is_empty()
    }

    /// S-05: a rule that allows names secrets, or is not about them.
    pub(super) fn is_about(&self, type_url: &TypeUrl, secrets: bool) -> bool {
        if self.types.is_empty() {
            return !self.allow || secrets || !is_secret(type_url);
        }
        let mut types = self.types.iter();
        types.any(|name| **name == *type_url.message() || **name == *type_url.full_name())
    }

    pub(super) fn covers_all(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn covers(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|pattern| pattern.matches(name))
    }
}

/// Whether resources of this type are secrets, whatever prefix the client writes before it.
#[must_use]
pub fn is_secret(type_url: &TypeUrl) -> bool {
    type_url.kind().is_secret() || SECRETS.contains(&type_url.message())
}

impl Rights {
    pub(super) fn new(applied: Vec<Applied>, secrets: bool) -> Self {
        let mut hasher = Hasher::new(u64::from(secrets));
        for one in &applied {
            hasher.field(&[u8::from(one.allow)]);
            one.types.iter().for_each(|name| hasher.field(name.as_bytes()));
            hasher.field(b"");
            one.names
                .iter()
                .for_each(|name| hasher.field(name.to_string().as_bytes()));
            hasher.field(b"");
        }
        let index = (applied.len() > FEW).then(|| {
            let (mut index, mut others) = (Index::default(), Vec::new());
            for (number, one) in (0..).zip(&applied) {
                one.names.iter().for_each(|name| index.add(name, number));
                others.extend(one.names.is_empty().then_some(number));
            }
            (index, others)
        });
        Self {
            applied,
            secrets,
            index,
            fingerprint: hasher.finish(),
        }
    }

    /// Nothing at all.
    #[must_use]
    pub fn none() -> Arc<Self> {
        static NONE: LazyLock<Arc<Rights>> = LazyLock::new(|| Arc::new(Rights::new(Vec::new(), false)));
        NONE.clone()
    }

    /// S-05: everything but secrets.
    pub(super) fn without_secrets() -> Self {
        let everything = Applied::new(&AccessRule::default(), &Fields::default());
        Self::new(vec![everything], false)
    }

    /// Whether there is nothing that the client may not have.
    pub(super) fn are_whole(&self) -> bool {
        let first = self.applied.first();
        self.secrets && first.is_some_and(|first| first.allow && first.is_about_everything())
    }

    /// Returns a hash that distinguishes these rights from others.
    pub const fn fingerprint(&self) -> Version {
        self.fingerprint
    }

    /// Returns why a client with this node id may have nothing of a type.
    pub fn denial(&self, node: &str, type_url: &TypeUrl) -> String {
        let mut words = format!(
            "the relay's rules do not allow node `{}` to have {type_url}",
            shown(node)
        );
        let others = self.applied.iter().any(|one| one.allow && one.types.is_empty());
        if others && !self.secrets && is_secret(type_url) {
            words += "; `secrets: allow` serves secrets without a rule that names them";
        }
        words
    }

    /// Whether there is nothing that the client may have.
    pub fn are_none(&self) -> bool {
        self.applied.is_empty()
    }

    /// Returns what the client may have of a type.
    pub fn grant(&self, type_url: &TypeUrl) -> Grant {
        let (mut some, mut denied) = (false, false);
        for one in self.applied.iter().filter(|one| one.is_about(type_url, self.secrets)) {
            match (one.allow, one.names.is_empty()) {
                (true, true) if !denied => return Grant::Everything,
                (true, true) => return Grant::Some,
                (false, true) => break,
                (true, false) => some = true,
                (false, false) => denied = true,
            }
        }
        if some { Grant::Some } else { Grant::Nothing }
    }

    /// Returns the part about one type: what decides about each of its names, and nothing else.
    pub fn of_type(&self, type_url: &TypeUrl) -> Self {
        let mut part = Vec::new();
        for one in self.applied.iter().filter(|one| one.is_about(type_url, self.secrets)) {
            part.push(Applied {
                types: Arc::default(),
                ..one.clone()
            });
            if one.names.is_empty() {
                break;
            }
        }
        Self::new(part, true)
    }

    /// Whether the client may have the resource of this name. S-01: the first rule that matches decides.
    pub fn allow(&self, type_url: &TypeUrl, name: &str) -> bool {
        let decides = |one: &&Applied| one.is_about(type_url, self.secrets) && one.covers(name);
        let Some((index, others)) = &self.index else {
            return self.applied.iter().find(decides).is_some_and(|one| one.allow);
        };
        let rule = |number: &u32| self.applied.get(usize::try_from(*number).ok()?).filter(decides);
        let first = |list: &[u32]| list.iter().find_map(|number| Some((*number, rule(number)?.allow)));
        let lists = index.candidates(name).chain([&**others]);
        let decision = lists.filter_map(first).min_by_key(|(number, _)| *number);
        decision.is_some_and(|(_, allow)| allow)
    }
}

impl PartialEq for Rights {
    fn eq(&self, other: &Self) -> bool {
        (self.fingerprint, self.secrets) == (other.fingerprint, other.secrets) && self.applied == other.applied
    }
}
