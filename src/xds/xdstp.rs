//! New-style names: `xdstp://authority/type/id?parameters#directives`.
//!
//! Owns their one canonical text, and which collection a name belongs to. Does not know who serves an authority.

use std::collections::BTreeMap;

use super::{Name, TypeUrl};

/// The prefix of a new-style name (F-01).
pub const SCHEME: &str = "xdstp:";
/// The prefix that marks an invalid name: no valid name can begin like this.
const NOTHING: &str = "xdstp:!";

/// Why a new-style name is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// F-02: a part is missing.
    #[error("is not of the form xdstp://authority/type/id?key=value")]
    Form,
    /// F-03: it is of another type.
    #[error("names a resource of the type {0:?}, not of the one asked for")]
    Type(String),
    /// An escape is incomplete, or the escaped bytes are not UTF-8.
    #[error("has a percent sign that escapes nothing, or escapes that are not UTF-8")]
    Escape,
}

/// Returns the canonical text of a new-style name. F-04: equal names have equal texts, however they were written.
///
/// # Errors
/// The text is not a valid name of this type.
pub fn canonical(text: &str, type_url: &TypeUrl) -> Result<String, Flaw> {
    let rest = text.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix("//"));
    // F-07: directives are for the client alone.
    let rest = rest.ok_or(Flaw::Form)?.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut parts = path.splitn(3, '/');
    let (Some(authority), Some(of), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Flaw::Form);
    };
    let of = decoded(of)?;
    if of != type_url.message() {
        return Err(Flaw::Type(of.chars().take(128).collect()));
    }
    if id.is_empty() {
        return Err(Flaw::Form);
    }
    // F-05: escapes only characters that would otherwise have another meaning.
    let mut canonical = format!("{SCHEME}//");
    escape(&mut canonical, &decoded(authority)?, "%/?#");
    canonical.push('/');
    canonical.push_str(&of);
    canonical.push('/');
    escape(&mut canonical, &decoded(id)?, "%?#[]");
    for (at, (key, value)) in parameters(query)?.iter().enumerate() {
        canonical.push(if at == 0 { '?' } else { '&' });
        escape(&mut canonical, key, "%#[]&=");
        canonical.push('=');
        escape(&mut canonical, value, "%#[]&=");
    }
    Ok(canonical)
}

/// Returns the parameters by key. F-06: if a key is there twice, the first counts.
fn parameters(query: &str) -> Result<BTreeMap<String, String>, Flaw> {
    let mut found = BTreeMap::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = decoded(value)?;
        found.entry(decoded(key)?).or_insert(value);
    }
    Ok(found)
}

fn decoded(text: &str) -> Result<String, Flaw> {
    if !text.contains('%') {
        return Ok(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(Flaw::Escape);
        };
        bytes.extend(u8::try_from(high * 16 + low));
    }
    String::from_utf8(bytes).map_err(|_| Flaw::Escape)
}

fn escape(into: &mut String, text: &str, special: &str) {
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte) if special.contains(character) => into.push_str(&format!("%{byte:02X}")),
            Ok(_) | Err(_) => into.push(character),
        }
    }
}

impl Name {
    /// Returns the name that a text means in a request for this type. F-03: an invalid text gets a name of its own, which never
    /// exists.
    #[must_use]
    pub fn read(text: &str, type_url: &TypeUrl) -> Self {
        // B-32: where resources have names, the empty name is invalid as well.
        if text.is_empty() && !type_url.traits().nameless {
            return Self::from(NOTHING);
        }
        if !text.starts_with(SCHEME) {
            return Self::from(text);
        }
        Self::from(canonical(text, type_url).unwrap_or_else(|_| format!("{NOTHING}{text}")))
    }

    /// F-07: returns the text with which the relay requests a name that a client wrote as `text`; `None`: the canonical one.
    #[must_use]
    pub fn written(&self, text: &str) -> Option<Self> {
        let asked = text.split('#').next().filter(|_| self.may_exist())?;
        (asked != self.as_str()).then(|| Self::from(asked))
    }

    /// F-01: whether it is a new-style name.
    #[must_use]
    pub fn is_new_style(&self) -> bool {
        self.as_str().starts_with(SCHEME)
    }

    /// Whether it is invalid: it exists on no server.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.as_str().starts_with(NOTHING)
    }

    /// Whether it stands for the empty name of a type whose resources have names.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.as_str() == NOTHING
    }

    /// F-03: an invalid name is in no collection, and is not a collection.
    fn may_exist(&self) -> bool {
        self.is_new_style() && !self.is_nothing()
    }

    /// C-22: whether it stands for everything in one directory.
    #[must_use]
    pub fn is_collection(&self) -> bool {
        self.may_exist() && self.directory().is_some_and(|(_, last, _)| last == "*")
    }

    /// F-10: returns the collection that it belongs to: the same name with a star as the last part of the id.
    #[must_use]
    pub fn collection(&self) -> Option<Self> {
        let (directory, last, parameters) = self.directory().filter(|_| self.may_exist())?;
        (last != "*").then(|| Self::from(format!("{directory}*{parameters}")))
    }

    /// Returns the prefix of all members of this collection.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.directory().map_or(self.as_str(), |(directory, _, _)| directory)
    }

    /// F-10: whether this collection has that member: one level only, and exactly the same parameters.
    #[must_use]
    pub fn covers(&self, member: &Self) -> bool {
        let (Some((directory, "*", parameters)), true) = (self.directory(), member.is_new_style()) else {
            return false;
        };
        member
            .directory()
            .is_some_and(|(other, last, others)| (other, others) == (directory, parameters) && last != "*")
    }

    /// Returns the text up to the last slash of the id, the last part of the id, and the parameters.
    fn directory(&self) -> Option<(&str, &str, &str)> {
        let text = self.as_str();
        let (path, parameters) = text.split_at(text.find('?').unwrap_or(text.len()));
        let (directory, last) = path.split_at(path.rfind('/')? + 1);
        Some((directory, last, parameters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canon(text: &str) -> Result<String, Flaw> {
        canonical(&text.replace("/T/", "/envoy.config.listener.v3.Listener/"), &lds())
            .map(|text| text.replace("/envoy.config.listener.v3.Listener/", "/T/"))
    }

    fn lds() -> TypeUrl {
        TypeUrl::new("envoy.config.listener.v3.Listener")
    }

    /// F-02, F-04, F-05, F-06, F-07: equal names have one text.
    #[test]
    fn one_text() {
        for (written, canonical) in [
            ("xdstp://a/T/x", "xdstp://a/T/x"),
            ("xdstp:///T/x", "xdstp:///T/x"),
            ("xdstp://a/T/d/e/x?b=2&a=1", "xdstp://a/T/d/e/x?a=1&b=2"),
            ("xdstp://a/T/x?", "xdstp://a/T/x"),
            ("xdstp://a/T/x?a=1&a=2&&b", "xdstp://a/T/x?a=1&b="),
            ("xdstp://a/T/x?a=1#alt=xdstp://b/T/x", "xdstp://a/T/x?a=1"),
            ("xdstp://a/T/x#entry=y", "xdstp://a/T/x"),
            ("xdstp://a/T/%78%3ay", "xdstp://a/T/x:y"),
            ("xdstp://a/T/x:y", "xdstp://a/T/x:y"),
            ("xdstp://a/T/%5bx%5D%3f%25", "xdstp://a/T/%5Bx%5D%3F%25"),
            ("xdstp://a%2fb/T/x?k%26=v%3d", "xdstp://a%2Fb/T/x?k%26=v%3D"),
            ("xdstp://a/T/%C3%BC", "xdstp://a/T/\u{fc}"),
            ("xdstp://A/T/X", "xdstp://A/T/X"),
        ] {
            assert_eq!(canon(written).as_deref(), Ok(canonical), "{written}");
            assert_eq!(
                canon(canonical).as_deref(),
                Ok(canonical),
                "the canonical text is its own"
            );
        }
    }

    /// F-02, F-03: an invalid name says why, and never equals a valid one.
    #[test]
    fn nothing() {
        for written in [
            "xdstp:",
            "xdstp:x",
            "xdstp:/a/T/x",
            "xdstp://a",
            "xdstp://a?b/T/x",
            "xdstp://a/T/",
        ] {
            assert_eq!(canon(written), Err(Flaw::Form), "{written}");
        }
        assert_eq!(canon("xdstp://a/U/x"), Err(Flaw::Type("U".to_owned())));
        for written in [
            "xdstp://a/T/x%",
            "xdstp://a/T/x%4",
            "xdstp://a/T/%zz",
            "xdstp://a/T/%ff",
        ] {
            assert_eq!(canon(written), Err(Flaw::Escape), "{written}");
        }
        let name = Name::read("xdstp:x", &lds());
        assert!(name.is_nothing() && name.is_new_style());
        assert!(
            name != Name::read(name.as_str(), &lds()),
            "it has no second way of writing"
        );
        assert!(!Name::read("x", &lds()).is_nothing());
    }

    /// F-01, F-10, L-25: one level, and exactly the same parameters.
    #[test]
    fn collections() {
        let name = |text: &str| Name::from(text);
        let all = name("xdstp://a/T/d/*?a=1&b=2");
        assert!(all.is_collection() && all.collection().is_none());
        assert_eq!(name("xdstp://a/T/d/x?a=1&b=2").collection(), Some(all.clone()));
        for (member, is) in [
            ("xdstp://a/T/d/x?a=1&b=2", true),
            ("xdstp://a/T/d/e/x?a=1&b=2", false),
            ("xdstp://a/T/d/x?a=1", false),
            ("xdstp://a/T/d/x", false),
            ("xdstp://a/T/d/*?a=1&b=2", false),
            ("d/x?a=1&b=2", false),
        ] {
            assert_eq!(all.covers(&name(member)), is, "{member}");
            assert!(!is || name(member).as_str().starts_with(all.prefix()));
        }
        assert!(name("xdstp://a/T/*").covers(&name("xdstp://a/T/x")));
        assert!(!name("d/*").is_collection() && name("d/x").collection().is_none());
    }
}
