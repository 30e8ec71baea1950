//! For whom a variant of a resource is meant (TP2).
//!
//! Owns the match between what a variant demands and what a client says of itself. Refuses to know names and streams.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;

use super::version::Hasher;
use super::{Answers, Chosen, Name, State, Version};
use crate::proto::envoy::service::discovery::v3::DynamicParameterConstraints;
use crate::proto::envoy::service::discovery::v3::dynamic_parameter_constraints::single_constraint::ConstraintType;
use crate::proto::envoy::service::discovery::v3::dynamic_parameter_constraints::{ConstraintList, Type};

/// What a client says of itself, by key.
pub type Parameters = BTreeMap<String, String>;

/// Which variants of a name a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The one that is for whoever says this of itself, else what is for everybody.
    One(Parameters),
    /// All of them, and what is for everybody: it is a relay that passes them on to its own clients.
    All,
}

/// What a variant demands of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraints {
    rule: DynamicParameterConstraints,
    encoded: Bytes,
}

/// What the client of one subscription says of itself. Who says nothing gets what demands nothing.
#[derive(Clone, Debug, Default)]
pub struct Audience {
    /// With every name.
    always: Option<Choice>,
    /// With single names, where that is something else.
    with: BTreeMap<Name, Choice>,
    /// What the variants demand that it has rejected, and perhaps took in all the same (C-25).
    rejected: BTreeMap<Name, Constraints>,
    /// What it sees of what its wildcard covers.
    chosen: Option<Arc<Chosen>>,
}

impl Audience {
    /// What it gets of a name by what it says with the name itself, or with the collection that it is a member of.
    #[must_use]
    pub fn choice(&self, name: &Name) -> Option<&Choice> {
        let alone = || match self.with.is_empty() {
            true => None,
            false => self.with.get(name).or_else(|| self.with.get(&name.collection()?)),
        };
        alone().or(self.always.as_ref())
    }

    /// What it gets by what it says with the wildcard.
    #[must_use]
    pub fn of_wildcard(&self) -> Option<&Choice> {
        self.with.get(Name::WILDCARD).or(self.always.as_ref())
    }

    /// Whether it gets all variants.
    #[must_use]
    pub fn passes_on(&self) -> bool {
        self.always == Some(Choice::All)
    }

    /// It says this with every name from now on. Whether that is something else.
    pub fn says_always(&mut self, own: Option<Choice>) -> bool {
        let changed = self.always != own;
        if changed {
            self.always = own;
            self.chosen = None;
        }
        changed
    }

    /// It says this with a name from now on; `None` is the same as always. Whether that is something else.
    pub fn says_with(&mut self, name: &Name, own: Option<Choice>) -> bool {
        let changed = self.with.get(name) != own.as_ref();
        if changed && name.as_str() == Name::WILDCARD {
            self.chosen = None;
        }
        match own {
            Some(own) if changed => drop(self.with.insert(name.clone(), own)),
            None if changed => drop(self.with.remove(name)),
            Some(_) | None => {}
        }
        changed
    }

    /// It has rejected a variant of this name that demands this.
    pub fn reject(&mut self, name: &Name, demands: &Constraints) {
        self.rejected.insert(name.clone(), demands.clone());
    }

    /// What the variant of a name demands that it has rejected last.
    #[must_use]
    pub fn rejected(&self, name: &Name) -> Option<&Constraints> {
        self.rejected.get(name)
    }

    /// What it has rejected of these names does not count any more.
    pub fn settle<'a>(&mut self, names: impl Iterator<Item = &'a Name>) {
        if !self.rejected.is_empty() {
            names.for_each(|name| drop(self.rejected.remove(name)));
        }
    }

    /// What it sees of this state, where that was looked up.
    #[must_use]
    pub fn seen_of(&self, state: &State) -> Option<&Arc<State>> {
        let chosen = self.chosen.as_ref().filter(|chosen| chosen.of.id() == state.id());
        chosen.map(|chosen| &chosen.seen)
    }

    /// Looks up what it sees of what its wildcard covers.
    pub fn look_at(&mut self, state: &Arc<State>, answers: &impl Answers) {
        let own = self.of_wildcard().filter(|_| state.varies());
        self.chosen = own.map(|own| answers.chosen(state, own, self.chosen.as_deref()));
    }

    /// Forgets what it sees: whatever is needed of that is looked up again.
    pub fn lighten(&mut self) {
        self.chosen = None;
    }
}

impl Choice {
    /// Tells this choice from others.
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

/// The seed that tells the choice of all variants from all others.
const ALL: u64 = 1;
/// What stands between a name and what tells its variants apart: no name has a zero in it.
const APART: char = '\0';

/// Tells variants of one name apart: the name itself is that for everybody.
#[must_use]
pub fn variant_key(name: &str, constraints: Option<&Constraints>) -> String {
    constraints.map_or_else(
        || name.to_owned(),
        |constraints| format!("{name}{APART}{}", constraints.key()),
    )
}

/// What all keys of variants of a name begin with that are not for everybody.
#[must_use]
pub fn variant_prefix(name: &str) -> String {
    format!("{name}{APART}")
}

/// The name of what has this key, and whether it is not for everybody.
#[must_use]
pub fn split_variant_key(key: &str) -> (&str, bool) {
    key.split_once(APART).map_or((key, false), |(name, _)| (name, true))
}

impl Constraints {
    /// The constraints as a server states them; `None` if they demand nothing.
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

    /// Tells these constraints from others.
    #[must_use]
    pub fn key(&self) -> Version {
        let mut hasher = Hasher::new(0);
        hasher.field(&self.encoded);
        hasher.finish()
    }

    /// F-16: whether a client of which this is known may have it.
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

/// What is demanded, in words: `env=prod`, `env` for any value, and `and`, `or`, `not` between them.
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

/// F-16: equal value, present key, any, all, not; what demands nothing allows everybody.
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
