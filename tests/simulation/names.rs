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

/// Everything in one directory (F-10).
pub(crate) fn glob(authority: &str, kind: Type) -> String {
    let message = kind.url().trim_start_matches("type.googleapis.com/");
    format!("xdstp://{authority}/{message}/*")
}

pub(crate) fn is_glob(name: &str) -> bool {
    name.starts_with("xdstp://") && name.ends_with("/*")
}

/// Whether a collection has this member.
pub(crate) fn covers(glob: &str, name: &str) -> bool {
    let rest = glob
        .strip_suffix('*')
        .filter(|_| is_glob(glob))
        .and_then(|all| name.strip_prefix(all));
    rest.is_some_and(|rest| !rest.contains('/') && rest != "*")
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

/// The name itself, however it is written.
pub(crate) fn canonical(text: &str) -> String {
    if !text.starts_with("xdstp://") {
        return text.to_owned();
    }
    let text = text.split('#').next().unwrap_or_default();
    let mut name = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        name += before;
        match byte {
            Some(byte) => name.push(char::from(byte)),
            None => return text.to_owned(),
        }
        rest = &after[2..];
    }
    name + rest
}

pub(crate) fn alias(name: &str) -> String {
    format!("{name}.alias")
}

pub(crate) fn is_alias(name: &str) -> bool {
    name.ends_with(".alias")
}
