//! For whom a variant of a resource is meant (TP2).
//!
//! Owns the match between what a variant demands and what a client says of itself. Refuses to know names and streams.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message as _;

use super::{Name, Version};
use crate::proto::envoy::service::discovery::v3::DynamicParameterConstraints;
use crate::proto::envoy::service::discovery::v3::dynamic_parameter_constraints::Type;
use crate::proto::envoy::service::discovery::v3::dynamic_parameter_constraints::single_constraint::ConstraintType;
use crate::xds::version::Hasher;

/// What a client says of itself, by key.
pub type Parameters = BTreeMap<String, String>;

/// What a variant demands of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraints {
    rule: DynamicParameterConstraints,
    encoded: Bytes,
}

/// What the client of one subscription says of itself. Who says nothing gets what demands nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// With every name.
    pub always: Option<Parameters>,
    /// With single names, where that is something else.
    pub with: BTreeMap<Name, Parameters>,
}

impl Audience {
    /// What it says with a name.
    #[must_use]
    pub fn parameters(&self, name: &Name) -> Option<&Parameters> {
        self.with.get(name).or(self.always.as_ref())
    }
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
