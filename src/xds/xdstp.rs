// SPDX-License-Identifier: Apache-2.0
//! New-style names: `xdstp://authority/type/id?parameters#directives`.
//!
//! Owns their one canonical text, and which collection a name belongs to. Does not know who serves an authority.

use std::collections::BTreeMap;

use super::{Name, TypeUrl};

/// The prefix of a new-style name (F-01).
pub const SCHEME: &str = "xdstp:";
/// What stands for the empty name where resources have names.
const BLANK: &str = "xdstp:!";

/// Returns the canonical text of a new-style name. F-04: equal names have equal texts, however they were written. `None`: the text
/// is not of that form (F-02), or names another type (F-03).
#[must_use]
pub fn canonical(text: &str, type_url: &TypeUrl) -> Option<String> {
    let rest = text.strip_prefix(SCHEME)?.strip_prefix("//")?;
    // F-07: directives are for the client alone.
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut parts = path.splitn(3, '/');
    let (authority, of, id) = (parts.next()?, decoded(parts.next()?)?, parts.next()?);
    if of != type_url.message() || id.is_empty() {
        return None;
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
    Some(canonical)
}

/// Returns the parameters by key. F-06: if a key is there twice, the first counts.
fn parameters(query: &str) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = decoded(value)?;
        found.entry(decoded(key)?).or_insert(value);
    }
    Some(found)
}

/// Returns the text without escapes, if each of them escapes something, and it is UTF-8.
fn decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.extend(u8::try_from(high * 16 + low));
    }
    String::from_utf8(bytes).ok()
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
    /// Returns the name that a text means in a request for this type. F-02, F-03: a text that is no new-style name of the type is
    /// its own name.
    #[must_use]
    pub fn read(text: &str, type_url: &TypeUrl) -> Self {
        // B-32: where resources have names, nothing has the empty name.
        if text.is_empty() && !type_url.traits().nameless {
            return Self::from(BLANK);
        }
        canonical(text, type_url).map_or_else(|| Self::from(text), Self::from)
    }

    /// F-07: returns the text with which the relay requests a name that a client wrote as `text`; `None`: its own.
    pub fn written(&self, text: &str) -> Option<Self> {
        if !self.is_new_style() || self.is_blank() || text == self.as_str() {
            return None;
        }
        let asked = text.split('#').next()?;
        (asked != self.as_str()).then(|| Self::from(asked))
    }

    /// F-01: whether it is a new-style name.
    pub fn is_new_style(&self) -> bool {
        self.as_str().starts_with(SCHEME)
    }

    /// Whether it stands for the empty name of a type whose resources have names: it exists on no server.
    pub fn is_blank(&self) -> bool {
        self.as_str() == BLANK
    }

    /// C-22: whether it stands for everything in one directory.
    pub fn is_collection(&self) -> bool {
        self.directory().is_some_and(|(_, last, _)| last == "*")
    }

    /// F-10: returns the collection that it belongs to: the same name with a star as the last part of the id.
    pub fn collection(&self) -> Option<Self> {
        let (directory, last, parameters) = self.directory()?;
        (last != "*").then(|| Self::from(format!("{directory}*{parameters}")))
    }

    /// Returns the prefix of all members of this collection.
    pub fn prefix(&self) -> &str {
        self.directory().map_or(self.as_str(), |(directory, _, _)| directory)
    }

    /// F-10: returns whether this collection has a member: one level only, and exactly the same parameters.
    pub fn coverage(&self) -> impl Fn(&Self) -> bool + use<'_> {
        let collection = self.directory().filter(|(_, last, _)| *last == "*");
        move |member| {
            let last = collection.and_then(|(directory, _, parameters)| {
                let rest = member.as_str().strip_prefix(directory)?;
                rest.strip_suffix(parameters)
            });
            let one_level = last.is_some_and(|last| last != "*" && !last.contains(['/', '?']));
            // A directory without a name in it may be no new-style name.
            one_level && (last != Some("") || member.directory().is_some())
        }
    }

    /// Returns the text up to the last slash of the id, the last part of the id, and the parameters, if it has an id.
    fn directory(&self) -> Option<(&str, &str, &str)> {
        let text = self.as_str();
        let id = text.strip_prefix(SCHEME)?.strip_prefix("//")?.splitn(3, '/').nth(2);
        id.filter(|id| !id.is_empty())?;
        let (path, parameters) = text.split_at(text.find('?').unwrap_or(text.len()));
        let (directory, last) = path.split_at(path.rfind('/')? + 1);
        Some((directory, last, parameters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canon(text: &str) -> Option<String> {
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
            assert_eq!(canon(written).as_deref(), Some(canonical), "{written}");
            assert_eq!(
                canon(canonical).as_deref(),
                Some(canonical),
                "the canonical text is its own"
            );
        }
    }

    /// F-02, F-03: a text that is no name of this form and type is its own name, and is requested as it is.
    #[test]
    fn texts() {
        for text in [
            "xdstp:",
            "xdstp:x",
            "xdstp:/a/T/x",
            "xdstp://a",
            "xdstp://a?b/T/x",
            "xdstp://a/T/",
            "xdstp://a/U/x#d",
            "xdstp://a/T/x%",
            "xdstp://a/T/x%4",
            "xdstp://a/T/%zz",
            "xdstp://a/T/%ff",
            "x",
        ] {
            assert_eq!(canon(text), None, "{text}");
            let name = Name::read(text, &lds());
            assert_eq!((name.as_str(), name.written(text)), (text, None));
            assert!(!name.is_collection() && !name.is_blank());
        }
        assert!(!Name::from("xdstp:x/*").is_collection() && Name::read("", &lds()).is_blank());
    }

    /// F-01, F-10, L-25: one level, and exactly the same parameters.
    #[test]
    fn collections() {
        let name = |text: &str| Name::from(text);
        let all = name("xdstp://a/T/d/*?a=1&b=2");
        let covers = all.coverage();
        assert!(all.is_collection() && all.collection().is_none());
        assert_eq!(name("xdstp://a/T/d/x?a=1&b=2").collection(), Some(all.clone()));
        for (member, is) in [
            ("xdstp://a/T/d/x?a=1&b=2", true),
            ("xdstp://a/T/d/e/x?a=1&b=2", false),
            ("xdstp://a/T/d/x?a=1", false),
            ("xdstp://a/T/d/x", false),
            ("xdstp://a/T/d/*?a=1&b=2", false),
            ("xdstp://a/T/d/?a=1&b=2", true),
            ("xdstp://a/T/d/x?a=1&b=2?a=1&b=2", false),
            ("d/x?a=1&b=2", false),
        ] {
            assert_eq!(covers(&name(member)), is, "{member}");
            assert!(!is || name(member).as_str().starts_with(all.prefix()));
        }
        let all = name("xdstp://a/T/*");
        let covers = all.coverage();
        assert!(covers(&name("xdstp://a/T/x")) && !covers(&name("xdstp://a/T/")));
        assert!(!covers(&name("xdstp://a/T/x?")) && !name("xdstp://a/T/x").coverage()(&all));
        assert!(!name("d/*").is_collection() && name("d/x").collection().is_none());
    }
}
