//! The names that the worlds use: few, so that they meet.
//!
//! Owns their forms. Refuses to know what exists.

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
        Type::Sds => format!("s{}", at % 4),
        Type::Odd => format!("o{}", at % 4),
    }
}

/// A name of new style (F-02).
pub(crate) fn under(authority: &str, kind: Type, at: usize) -> String {
    let message = kind.url().trim_start_matches("type.googleapis.com/");
    format!("xdstp://{authority}/{message}/{}", name(kind, at))
}

/// A name of old style, or one under one of these authorities.
pub(crate) fn anywhere(authorities: &[&str], kind: Type, at: usize, rng: &mut Rng) -> String {
    let new = rng.chance(50);
    match rng.pick(authorities).filter(|_| new) {
        Some(authority) => under(authority, kind, at),
        None => name(kind, at),
    }
}

pub(crate) fn alias(name: &str) -> String {
    format!("{name}.alias")
}

pub(crate) fn is_alias(name: &str) -> bool {
    name.ends_with(".alias")
}
