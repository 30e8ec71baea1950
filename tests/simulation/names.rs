// SPDX-License-Identifier: Apache-2.0
//! The names that the worlds use: few, so that clients often want the same.
//!
//! Owns their forms. Does not know which of them exist.

use std::collections::BTreeMap;

pub(crate) use peers::names::{covers, is_collection};

use super::body::Type;
use super::rng::Rng;

pub(crate) fn cluster(at: usize) -> String {
    format!("c{at}")
}

/// The names that the world uses: few, so that they meet.
pub(crate) fn name(kind: Type, at: usize) -> String {
    match kind {
        Type::Cds | Type::Eds => cluster(at),
        Type::Lds => format!("l{}", at % 3),
        Type::Rds => format!("r{}", at % 4),
        Type::Leds => format!("c{}/e{}", at % 3, at % 4),
        Type::Sds => format!("s{}", at % 4),
        Type::Odd => format!("o{}", at % 4),
    }
}

/// A name of new style (F-02).
pub(crate) fn under(authority: &str, kind: Type, at: usize) -> String {
    format!("xdstp://{authority}/{}/{}", kind.message(), name(kind, at))
}

/// A name of old style, or one under one of these authorities.
pub(crate) fn anywhere(authorities: &[&str], kind: Type, at: usize, rng: &mut Rng) -> String {
    let new = rng.chance(50);
    match rng.pick(authorities).filter(|_| new) {
        Some(authority) => under(authority, kind, at),
        None => name(kind, at),
    }
}

/// The collection of the endpoints of an assignment.
pub(crate) fn endpoints(authority: &str, at: usize) -> String {
    format!("xdstp://{authority}/{}/c{}/*", Type::Leds.message(), at % 3)
}

/// Everything in one directory (F-10).
pub(crate) fn collection(authority: &str, kind: Type) -> String {
    format!("xdstp://{authority}/{}/*", kind.message())
}

/// The same name, written otherwise (F-05, F-07).
pub(crate) fn respelled(name: &str, rng: &mut Rng) -> String {
    let Some((directory, last)) = name.rsplit_once('/').filter(|(_, last)| *last != "*") else {
        return name.to_owned();
    };
    match (rng.below(2), last.bytes().next()) {
        (0, Some(first)) => format!("{directory}/%{first:02x}{}", &last[1..]),
        _ => format!("{name}#entry=x"),
    }
}

/// The authorities that have servers of their own.
pub(crate) const SERVED: &[&str] = &["a", "b"];
/// The authorities under which there are names: also one that the relay's configuration does not mention (F-13).
pub(crate) const AUTHORITIES: &[&str] = &["a", "b", "unnamed"];

/// The authority whose servers are asked for a name; `None` if it is asked for with the names of old style.
pub(crate) fn authority(name: &str) -> Option<String> {
    let rest = name.strip_prefix("xdstp://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    SERVED.contains(&authority).then(|| authority.to_owned())
}

/// The sources that a world can have, and the types of the first one in a world without reloads (F-18).
pub(crate) const SOURCES: &[&str] = &["#source", "#another"];
pub(crate) const SOURCED: &[Type] = &[Type::Eds, Type::Sds];

/// Whose servers are asked for a name, or for the wildcard, if these types have these sources.
pub(crate) fn owner(kind: Type, name: &str, sourced: &BTreeMap<Type, &'static str>) -> Option<String> {
    authority(name).or_else(|| sourced.get(&kind).map(|source| (*source).to_owned()))
}

/// F-13: whether a name is of new style and asked with those of old style.
pub(crate) fn is_unnamed(name: &str) -> bool {
    name.starts_with("xdstp://unnamed/")
}

/// B-32: whether a text is the empty name, where resources of the type have names.
pub(crate) fn is_nothing(kind: Type, text: &str) -> bool {
    text.is_empty() && kind != Type::Odd
}

/// The name itself, however it is written.
pub(crate) fn canonical(kind: Type, text: &str) -> String {
    peers::names::canonical(kind.url(), text)
}

/// A name that no control plane has.
pub(crate) fn missing(name: &str) -> String {
    format!("{name}.missing")
}
