//! Which clients a variant of a resource is for (TP2).
//!
//! Owns the match between the constraints of a variant and the parameters of a client. Knows nothing of streams.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use prost::Message as _;

use super::version::Hasher;
use super::{Name, Version};
use proto::envoy::service::discovery::v3::DynamicParameterConstraints;
use proto::envoy::service::discovery::v3::dynamic_parameter_constraints::single_constraint::ConstraintType;
use proto::envoy::service::discovery::v3::dynamic_parameter_constraints::{ConstraintList, Type};

/// The dynamic parameters of a client, by key.
pub type Parameters = BTreeMap<String, String>;

/// Which variants of a name a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The variant that these parameters match, else the unconstrained resource.
    One(Parameters),
    /// All variants and the unconstrained resource: the client is a relay that passes them on to its own clients.
    All,
}

/// Of single names, the variants that a client may hold, by their encoded constraints; `None`: the resource without constraints.
pub type Withdrawn = BTreeMap<Name, Vec<Option<Bytes>>>;

/// The most variants of one name that are kept because the client may hold them. A client that rejects one after the other may hold
/// each of them.
const DOUBTED_MAX: usize = 64;

/// The constraints of a variant: what it demands of a client's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraints {
    rule: DynamicParameterConstraints,
    encoded: Bytes,
}

/// Which variants the client of one subscription gets. A client without parameters gets the unconstrained resources.
#[derive(Clone, Debug, Default)]
pub struct Audience {
    /// The choice for every name.
    always: Option<Choice>,
    /// The choice for single names, where it differs from `always`.
    with: BTreeMap<Name, Choice>,
    /// The variants that the client may hold, though nobody knows: it rejected them or what replaces them (C-25), or they were on their
    /// way when it asked for something else.
    doubted: Withdrawn,
}

impl Audience {
    /// Returns the choice for a name: the one set for the name itself or for its collection, else the one for every name.
    #[must_use]
    pub fn choice(&self, name: &Name) -> Option<&Choice> {
        let alone = || match self.with.is_empty() {
            true => None,
            false => self.with.get(name).or_else(|| self.with.get(&name.collection()?)),
        };
        alone().or(self.always.as_ref())
    }

    /// Returns the choice for the wildcard.
    #[must_use]
    pub fn of_wildcard(&self) -> Option<&Choice> {
        self.with.get(Name::WILDCARD).or(self.always.as_ref())
    }

    /// Whether the client gets all variants.
    #[must_use]
    pub fn passes_on(&self) -> bool {
        self.always == Some(Choice::All)
    }

    /// Sets the choice for every name. Returns whether it changed.
    pub fn says_always(&mut self, own: Option<Choice>) -> bool {
        let changed = self.always != own;
        if changed {
            self.always = own;
        }
        changed
    }

    /// Sets the choice for one name; `None` means the one for every name. Returns whether it changed.
    pub fn says_with(&mut self, name: &Name, own: Option<Choice>) -> bool {
        let changed = self.with.get(name) != own.as_ref();
        match own {
            Some(own) if changed => drop(self.with.insert(name.clone(), own)),
            None if changed => drop(self.with.remove(name)),
            Some(_) | None => {}
        }
        changed
    }

    /// Notes that the client may hold the variant of this name with these constraints. A name without variants goes by itself.
    pub fn doubt(&mut self, name: &Name, demands: Option<&Constraints>) {
        if demands.is_some() || self.doubted.contains_key(name) {
            let demands = demands.map(Constraints::encoded).cloned();
            self.doubt_all(name, &[demands]);
        }
    }

    /// The same for all of these, by their encoded constraints. Of too many, the oldest are forgotten.
    pub fn doubt_all(&mut self, name: &Name, variants: &[Option<Bytes>]) {
        let known = self.doubted.entry(name.clone()).or_default();
        for variant in variants {
            if !known.contains(variant) {
                known.push(variant.clone());
            }
        }
        known.drain(..known.len().saturating_sub(DOUBTED_MAX));
    }

    /// Returns the variants of a name that the client may hold.
    pub fn doubted(&self, name: &Name) -> impl Iterator<Item = &Option<Bytes>> {
        self.doubted.get(name).into_iter().flatten()
    }

    /// Returns whether there is any variant of which nobody knows whether the client holds it.
    #[must_use]
    pub fn doubts(&self) -> bool {
        !self.doubted.is_empty()
    }

    /// Forgets which variants of these names the client may hold.
    pub fn settle<'a>(&mut self, names: impl Iterator<Item = &'a Name>) {
        if !self.doubted.is_empty() {
            names.for_each(|name| drop(self.doubted.remove(name)));
        }
    }

    /// The same for all names for which `keep` is false.
    pub fn settle_others(&mut self, mut keep: impl FnMut(&Name) -> bool) {
        self.doubted.retain(|name, _| keep(name));
    }
}

impl Choice {
    /// Returns a hash that distinguishes this choice from others.
    #[must_use]
    pub fn fingerprint(&self) -> Version {
        let Self::One(own) = self else {
            return Hasher::new(ALL).finish();
        };
        let mut hasher = Hasher::new(0);
        for (key, value) in own {
            hasher.field(key.as_bytes());
            hasher.field(value.as_bytes());
        }
        hasher.finish()
    }
}

/// The seed that distinguishes the choice of all variants from all others.
const ALL: u64 = 1;
/// Separates the name from the constraints in the key of a variant: no name contains a zero.
const APART: char = '\0';

/// Returns a key that distinguishes the variants of one name. The key of the unconstrained resource is the name itself.
#[must_use]
pub fn variant_key(name: &str, constraints: Option<&Constraints>) -> String {
    constraints.map_or_else(
        || name.to_owned(),
        |constraints| format!("{name}{APART}{}", constraints.key()),
    )
}

/// Returns the prefix of the keys of all constrained variants of a name.
#[must_use]
pub fn variant_prefix(name: &str) -> String {
    format!("{name}{APART}")
}

/// Returns the name in the key of a variant, and whether the variant has constraints.
#[must_use]
pub fn split_variant_key(key: &str) -> (&str, bool) {
    key.split_once(APART).map_or((key, false), |(name, _)| (name, true))
}

impl Constraints {
    /// Creates the constraints that a server sent; `None` if they demand nothing.
    #[must_use]
    pub fn new(rule: DynamicParameterConstraints) -> Option<Self> {
        rule.r#type.as_ref()?;
        let encoded = rule.encode_to_vec().into();
        Some(Self { rule, encoded })
    }

    /// As they go on the wire.
    #[must_use]
    pub const fn encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// Returns a hash that distinguishes these constraints from others.
    #[must_use]
    pub fn key(&self) -> Version {
        let mut hasher = Hasher::new(0);
        hasher.field(&self.encoded);
        hasher.finish()
    }

    /// F-16: whether a client with these parameters may have the variant.
    #[must_use]
    pub fn allow(&self, parameters: &Parameters) -> bool {
        allows(&self.rule, parameters)
    }
}

impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", words(&self.rule))
    }
}

/// Returns the constraints in words: `env=prod`, `env` for any value, and `and`, `or`, `not` between them.
fn words(rule: &DynamicParameterConstraints) -> String {
    let list = |list: &ConstraintList, word: &str, none: &str| match list.constraints.as_slice() {
        [] => none.to_owned(),
        [one] => words(one),
        all => format!("({})", all.iter().map(words).collect::<Vec<_>>().join(word)),
    };
    match &rule.r#type {
        None => "all".to_owned(),
        Some(Type::Constraint(single)) => match &single.constraint_type {
            Some(ConstraintType::Value(value)) => format!("{}={value}", single.key),
            Some(ConstraintType::Exists(_)) | None => single.key.clone(),
        },
        Some(Type::OrConstraints(all)) => list(all, " or ", "none"),
        Some(Type::AndConstraints(all)) => list(all, " and ", "all"),
        Some(Type::NotConstraints(rule)) => format!("not {}", words(rule)),
    }
}

/// F-16: equal value, present key, any, all, not; a rule that demands nothing allows every client.
fn allows(rule: &DynamicParameterConstraints, parameters: &Parameters) -> bool {
    match &rule.r#type {
        None => true,
        Some(Type::Constraint(single)) => match &single.constraint_type {
            Some(ConstraintType::Value(value)) => parameters.get(&single.key) == Some(value),
            Some(ConstraintType::Exists(_)) | None => parameters.contains_key(&single.key),
        },
        Some(Type::OrConstraints(list)) => list.constraints.iter().any(|rule| allows(rule, parameters)),
        Some(Type::AndConstraints(list)) => list.constraints.iter().all(|rule| allows(rule, parameters)),
        Some(Type::NotConstraints(rule)) => !allows(rule, parameters),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_doubted_variants_the_oldest_are_forgotten() {
        let (name, mut audience) = (Name::from("a"), Audience::default());
        let variant = |number: usize| Some(Bytes::from(number.to_string()));
        for number in 0..=DOUBTED_MAX {
            audience.doubt_all(&name, &[variant(number), variant(number)]);
        }
        let doubted: Vec<_> = audience.doubted(&name).cloned().collect();
        assert_eq!(doubted.len(), DOUBTED_MAX);
        assert_eq!(
            (&doubted[0], doubted.last()),
            (&variant(1), Some(&variant(DOUBTED_MAX)))
        );
    }
}
