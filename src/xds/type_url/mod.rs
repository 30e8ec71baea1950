// SPDX-License-Identifier: Apache-2.0
//! Resource types: their identity and what the protocol must know of each.
//!
//! Owns the identity of types and the operator's changes to the table of known ones. Knows nothing of resources.

mod kind;
mod polled;
mod spoken;
mod table;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use classes::Features;
pub use kind::Kind;
pub use spoken::NoType;
use table::{PREFIX, TABLE, UNKNOWN, is_health_report, is_withheld};

/// A resource type. Ordered make before break (D-02), then by name.
#[derive(Clone)]
pub struct TypeUrl(TypeRow);

/// Only two machine words, because a session keeps one for each of its types.
#[derive(Clone)]
enum TypeRow {
    /// A type of the table.
    Known(&'static TableType),
    Other(Arc<OwnType>),
}

/// URL, short name, traits.
type TableType = (&'static str, &'static str, Traits);

/// A type that is not in the table, or to which the operator gave other traits.
struct OwnType {
    url: Box<str>,
    traits: Traits,
}

/// What the protocol must know of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The type's family; v2 and v3 share one.
    pub kind: Kind,
    /// Where a resource of the type carries its own name.
    pub name: NameRule,
    /// Whether an empty first request means everything (B-10, B-13).
    pub wildcard: bool,
    /// Whether a SotW response lists all resources (B-16).
    pub full_state: bool,
    /// Whether a resource may come without any name: then it is the type's only one.
    pub nameless: bool,
    /// Whether only delta carries the names of the resources (C-21): in SotW the type is not requested.
    pub delta_only: bool,
    /// Whether its resources can be asked for by other names (C-20).
    pub aliases: bool,
    /// Whether the relay requests the type from nobody, because its content is for the caller alone, or it has none. For clients
    /// no resource of it exists.
    pub withheld: bool,
}

/// Where a resource carries its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// In the string field with this number.
    Field(u32),
    /// Only in the `Resource` around it (A-10, C-21).
    Wrapper,
}

impl TypeUrl {
    /// Returns the type that `text` names, by the table alone. A-04: the usual prefix and no prefix name the same type.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let full_name = full_name(text);
        match TABLE
            .iter()
            .find(|(url, _, _)| url.strip_prefix(PREFIX) == Some(full_name))
        {
            Some(known) => Self(TypeRow::Known(known)),
            None => Self::other(
                full_name,
                Traits {
                    withheld: is_withheld(full_name),
                    ..UNKNOWN
                },
            ),
        }
    }

    fn other(full_name: &str, traits: Traits) -> Self {
        let prefix = if full_name.contains('/') { "" } else { PREFIX };
        let url = format!("{prefix}{full_name}").into();
        Self(TypeRow::Other(Arc::new(OwnType { url, traits })))
    }

    /// Returns the type with this short name ([`Self::short`]).
    #[must_use]
    pub fn called(short: &str) -> Option<Self> {
        let (url, _, _) = TABLE.iter().find(|(_, known, _)| *known == short)?;
        Some(Self::new(url))
    }

    /// The short names of all types of the table.
    pub fn short_names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|(_, short, _)| *short)
    }

    /// Whether it is a type of the table to which the operator gave no other traits.
    pub const fn is_of_table(&self) -> bool {
        matches!(self.0, TypeRow::Known(_))
    }

    /// The canonical URL, as it goes on the wire.
    pub fn url(&self) -> &str {
        match &self.0 {
            TypeRow::Known((url, _, _)) => url,
            TypeRow::Other(other) => &other.url,
        }
    }

    /// The message's full name; for a type with another prefix than the usual one, the whole URL.
    pub fn full_name(&self) -> &str {
        full_name(self.url())
    }

    /// Whether it is a type of v2.
    pub fn is_v2(&self) -> bool {
        let name = self.full_name();
        name.starts_with("envoy.api.v2.") || name.starts_with("envoy.service.discovery.v2.")
    }

    /// Returns which of a client's features count for this type: an Envoy reads the time to live of types of v3 only.
    pub fn counted(&self, features: Features) -> Features {
        Features {
            envoy: features.envoy && !self.is_v2(),
            ..features
        }
    }

    /// The message's full name, whatever the prefix.
    pub fn message(&self) -> &str {
        let url = self.url();
        url.rsplit_once('/').map_or(url, |(_, message)| message)
    }

    /// Whether `text` names this type.
    pub fn is_named(&self, text: &str) -> bool {
        self.url() == text || self.full_name() == full_name(text)
    }

    /// Whether requests of the type are reports of a client's health, which expect no response.
    pub fn is_health_report(&self) -> bool {
        match &self.0 {
            // No type of the table is one; every acknowledgement passes here, so this must be cheap.
            TypeRow::Known(_) => false,
            TypeRow::Other(_) => is_health_report(self.full_name()),
        }
    }

    /// Returns the short name, if the type has one. There are few of them, so it can be a metric's label.
    pub fn short(&self) -> Option<&'static str> {
        TABLE
            .iter()
            .find(|(url, _, _)| *url == self.url())
            .map(|(_, short, _)| *short)
    }

    /// Returns the word for it: the short name, or the full one if there is no other.
    pub fn word(&self) -> &str {
        self.short().unwrap_or_else(|| self.full_name())
    }

    /// What the protocol must know of the type.
    pub fn traits(&self) -> &Traits {
        match &self.0 {
            TypeRow::Known((_, _, traits)) => traits,
            TypeRow::Other(other) => &other.traits,
        }
    }

    /// The type's family.
    pub fn kind(&self) -> Kind {
        self.traits().kind
    }

    /// Whether both refer to the same row. Equal types may refer to different rows.
    fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (TypeRow::Known(one), TypeRow::Known(other)) => std::ptr::eq(*one, *other),
            (TypeRow::Other(one), TypeRow::Other(other)) => Arc::ptr_eq(one, other),
            (TypeRow::Known(_), TypeRow::Other(_)) | (TypeRow::Other(_), TypeRow::Known(_)) => false,
        }
    }
}

/// The type table of one relay: the built-in one and what the operator changed (B-13).
#[derive(Clone, Debug, Default)]
pub struct Types(Arc<BTreeMap<String, TypeUrl>>);

impl Types {
    /// A table in which these full names have these traits instead of the built-in ones.
    #[must_use]
    pub fn with(overrides: BTreeMap<String, Traits>) -> Self {
        let made = |(name, traits): (String, Traits)| {
            let type_url = TypeUrl::other(&name, traits);
            (name, type_url)
        };
        Self(Arc::new(overrides.into_iter().map(made).collect()))
    }

    /// Returns the type that `text` names.
    pub fn resolve(&self, text: &str) -> TypeUrl {
        let overridden = self.0.get(full_name(text));
        overridden.cloned().unwrap_or_else(|| TypeUrl::new(text))
    }
}

/// Returns a type URL without the usual prefix. A-04: any other prefix belongs to the type.
fn full_name(text: &str) -> &str {
    match text.strip_prefix(PREFIX) {
        Some(name) if !name.contains('/') => name,
        Some(_) | None => text,
    }
}

impl PartialEq for TypeUrl {
    fn eq(&self, other: &Self) -> bool {
        // An operator may give a type another family, but only one and for the whole relay.
        self.is(other) || self.kind() == other.kind() && self.url() == other.url()
    }
}

impl Eq for TypeUrl {}

impl Ord for TypeUrl {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.is(other) {
            return Ordering::Equal;
        }
        let kinds = self.kind().cmp(&other.kind());
        kinds.then_with(|| self.url().cmp(other.url()))
    }
}

impl PartialOrd for TypeUrl {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for TypeUrl {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.url().hash(state);
    }
}

impl fmt::Display for TypeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.full_name())
    }
}

impl fmt::Debug for TypeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// the usual prefix and none are one type; any other prefix makes another type, written as it came.
    #[test]
    fn prefixes() {
        let cluster = "envoy.config.cluster.v3.Cluster";
        let usual = TypeUrl::new(&format!("{PREFIX}{cluster}"));
        assert_eq!(TypeUrl::new(cluster), usual);
        assert_eq!(
            (usual.url(), usual.full_name()),
            (&*format!("{PREFIX}{cluster}"), cluster)
        );
        for other in [
            "acme.com/envoy.config.cluster.v3.Cluster",
            "type.googleapis.com/acme/envoy.config.cluster.v3.Cluster",
            "TYPE.googleapis.com/envoy.config.cluster.v3.Cluster",
            "/envoy.config.cluster.v3.Cluster",
            "istio.io/debug/syncz",
        ] {
            let found = TypeUrl::new(other);
            assert_ne!(found, usual, "{other}");
            assert_eq!((found.url(), found.to_string().as_str()), (other, other));
            assert_eq!((found.kind(), found.short()), (Kind::Other, None), "{other}");
            assert!(found.is_named(other) && !found.is_named(cluster) && !usual.is_named(other));
            assert_eq!(TypeUrl::new(found.url()), found);
            assert_eq!(found.message(), other.rsplit('/').next().unwrap_or_default());
        }
    }

    /// A-04, B-13: the operator's traits hold for a type with the usual prefix and without, and for no other prefix.
    #[test]
    fn what_the_operator_says() {
        let traits = Traits {
            wildcard: true,
            ..UNKNOWN
        };
        let types = Types::with(BTreeMap::from([
            ("acme.v1.Thing".to_owned(), traits),
            ("acme.com/acme.v1.Other".to_owned(), traits),
        ]));
        for (text, wildcard) in [
            ("acme.v1.Thing", true),
            ("type.googleapis.com/acme.v1.Thing", true),
            ("acme.com/acme.v1.Thing", false),
            ("acme.com/acme.v1.Other", true),
            ("acme.v1.Other", false),
        ] {
            let found = types.resolve(text);
            assert_eq!(found.traits().wildcard, wildcard, "{text}");
            assert_eq!(found, TypeUrl::new(text), "{text}");
        }
    }

    /// The relay does not pass on the types that Istio's agents use only with their own control plane.
    #[test]
    fn withheld() {
        for (text, withheld) in [
            ("istio.io/debug", true),
            ("istio.io/debug/syncz", true),
            ("istio.io/debugger", false),
            ("istio.io/connections", true),
            ("type.googleapis.com/istio.v1.HealthInformation", true),
            ("istio.v1.HealthInformation", true),
            ("type.googleapis.com/istio.networking.nds.v1.NameTable", false),
        ] {
            assert_eq!(TypeUrl::new(text).traits().withheld, withheld, "{text}");
        }
        assert!(TypeUrl::new("istio.v1.HealthInformation").is_health_report());
        let mut known = TABLE.iter().map(|(url, _, _)| TypeUrl::new(url));
        assert!(!known.any(|known| is_health_report(known.full_name())));
    }
}
