//! The reference of the configuration: each key, what it means, and its default or an example.
//!
//! Owns how the text of `config/reference.yaml` is cut into keys, and the forms in which they are told: as text, as a page of the manual, and
//! as a JSON schema, whose kinds of values come from the shapes that read the file. Reads no configuration.

use serde_json::{Map, Value};

use super::reading::{Shape as _, below};
use super::shape::File;
use crate::xds::meant;

/// The file, in which a test finds every key.
const TEXT: &str = include_str!("../../config/reference.yaml");

/// All keys, in the order of the file.
#[derive(Debug)]
pub struct Reference {
    keys: Vec<Key>,
}

/// A key, and where it stands.
#[derive(Debug)]
struct Key {
    /// Without numbers of lists: `listeners.tls.certificate`.
    path: String,
    /// What the comments above and beside it say.
    about: String,
    /// The value beside it, if it is a single one.
    value: String,
    /// The line of the key, and the line behind all that belongs to it.
    lines: (usize, usize),
}

/// A key that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("there is no key `{asked}`{}", .meant.as_ref().map(|meant| format!("; did you mean {meant}?")).unwrap_or_default())]
pub struct NoKey {
    asked: String,
    meant: Option<String>,
}

/// A line of the file that has a key.
struct Line<'a> {
    /// How far the key is indented, behind the dashes of lists.
    indent: usize,
    name: &'a str,
    value: &'a str,
    comment: &'a str,
}

impl Reference {
    /// Reads the file.
    #[must_use]
    pub fn read() -> Self {
        let lines: Vec<&str> = TEXT.lines().collect();
        let mut above: Vec<(usize, String)> = Vec::new();
        let mut comments: Vec<&str> = Vec::new();
        let mut keys: Vec<Key> = Vec::new();
        let mut began = 0;
        for (at, line) in lines.iter().enumerate() {
            let text = line.trim();
            if let Some(comment) = text.strip_prefix('#') {
                if comments.is_empty() {
                    began = at;
                }
                comments.push(comment.trim());
                continue;
            }
            let said = std::mem::take(&mut comments);
            let Some(found) = Line::read(line) else { continue };
            let first = if said.is_empty() { at } else { began };
            above.retain(|(indent, _)| *indent < found.indent);
            let path = match above.last() {
                Some((_, within)) => format!("{within}.{}", found.name),
                None => found.name.to_owned(),
            };
            for open in keys
                .iter_mut()
                .filter(|key| key.lines.1 > at && !is_within(&path, &key.path))
            {
                open.lines.1 = first;
            }
            above.push((found.indent, path.clone()));
            if keys.iter().any(|key| key.path == path) {
                continue;
            }
            let about: Vec<&str> = said
                .into_iter()
                .chain([found.comment])
                .filter(|words| !words.is_empty())
                .collect();
            keys.push(Key {
                path,
                about: about.join(" "),
                value: found.value.to_owned(),
                lines: (at, lines.len()),
            });
        }
        Self { keys }
    }

    /// Returns what a key means, and its part of the file. Without a key, returns a line for each key that is not within another one.
    ///
    /// # Errors
    /// There is no such key.
    pub fn explain(&self, path: Option<&str>) -> Result<String, NoKey> {
        let Some(path) = path else {
            let top = self.keys.iter().filter(|key| !key.path.contains('.'));
            return Ok(top
                .map(|key| format!("{:15} {}\n", key.path, first_sentence(&key.about)))
                .collect());
        };
        let key = self.key(path)?;
        let about = match key.about.as_str() {
            "" => String::new(),
            about => format!(": {about}"),
        };
        let (first, behind) = key.lines;
        let lines: Vec<&str> = TEXT.lines().skip(first).take(behind - first).collect();
        let spaces = |line: &str| line.len() - line.trim_start().len();
        let indent = lines
            .iter()
            .filter(|line| !line.is_empty())
            .map(|line| spaces(line))
            .min();
        let shown = lines
            .iter()
            .map(|line| line.get(indent.unwrap_or_default()..).unwrap_or_default());
        let shown: Vec<String> = shown.map(|line| format!("  {line}").trim_end().to_owned()).collect();
        Ok(format!("{}{about}\n\n{}\n", key.path, shown.join("\n").trim_end()))
    }

    /// Returns the page of the manual that has all keys.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = "# Reference\n\n[Contents of the manual](README.md)\n\nEach key of the configuration, as `distributary explain` tells it. \
                        [`reference.yaml`](reference.yaml)\nshows them in place; values of lists are those of one entry.\n\n| Key | Value there | \
                        Means |\n|---|---|---|\n"
            .to_owned();
        for key in &self.keys {
            let cell = |text: &str| text.replace('|', "\\|");
            let value = match key.value.as_str() {
                "" => String::new(),
                value => format!("`{}`", cell(value)),
            };
            page.push_str(&format!("| `{}` | {value} | {} |\n", key.path, cell(&key.about)));
        }
        page
    }

    /// Returns the JSON schema of a configuration, or of a part of it.
    ///
    /// # Errors
    /// There is no such key.
    pub fn schema(&self, path: Option<&str>) -> Result<Value, NoKey> {
        let mut schema = File::schema();
        self.describe(&mut schema, "");
        if let Some(path) = path {
            let found = path.split('.').try_fold(&schema, |within, name| property(within, name));
            schema = found.cloned().ok_or_else(|| self.no_key(path))?;
        }
        if let Some(members) = schema.as_object_mut() {
            let dialect = "https://json-schema.org/draft/2020-12/schema";
            members.insert("$schema".to_owned(), dialect.into());
            let title = format!("Distributary {}", path.unwrap_or("configuration"));
            members.insert("title".to_owned(), title.into());
        }
        Ok(schema)
    }

    /// Writes into a schema what its properties mean.
    fn describe(&self, schema: &mut Value, within: &str) {
        let Some(members) = schema.as_object_mut() else { return };
        for form in ["items", "additionalProperties"] {
            if let Some(inner) = members.get_mut(form) {
                self.describe(inner, within);
            }
        }
        for form in members
            .get_mut("anyOf")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            self.describe(form, within);
        }
        let properties = members.get_mut("properties").and_then(Value::as_object_mut);
        for (name, property) in properties.into_iter().flatten() {
            let path = below(within, name);
            self.describe(property, &path);
            let about = self.keys.iter().find(|key| key.path == path).map(|key| &key.about);
            if let (Some(about), Some(property)) = (about.filter(|about| !about.is_empty()), property.as_object_mut()) {
                property.insert("description".to_owned(), about.as_str().into());
            }
        }
    }

    /// Returns the key of this path, or the only one that ends with it.
    fn key(&self, path: &str) -> Result<&Key, NoKey> {
        let whole = self.keys.iter().find(|key| key.path == path);
        let mut ends = self.ending(path);
        let only = ends.next().filter(|_| ends.next().is_none());
        whole.or(only).ok_or_else(|| self.no_key(path))
    }

    /// Returns the keys whose last parts are these.
    fn ending<'a>(&'a self, parts: &str) -> impl Iterator<Item = &'a Key> {
        let end = format!(".{parts}");
        self.keys.iter().filter(move |key| key.path.ends_with(&end))
    }

    fn no_key(&self, path: &str) -> NoKey {
        let all = self.keys.iter().map(|key| key.path.as_str());
        let ends: Vec<String> = self.ending(path).map(|key| format!("`{}`", key.path)).collect();
        let meant = meant(path, all).map(|meant| format!("`{meant}`"));
        NoKey {
            asked: path.chars().take(100).collect(),
            meant: Some(ends.join(" or ")).filter(|ends| !ends.is_empty()).or(meant),
        }
    }
}

/// Returns the schema of a property, through lists and alternatives.
fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let members: &Map<String, Value> = schema.as_object()?;
    let own = members.get("properties").and_then(|properties| properties.get(name));
    let inner = || {
        ["items", "additionalProperties"]
            .into_iter()
            .filter_map(|form| members.get(form))
    };
    let any = || members.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    own.or_else(|| inner().chain(any()).find_map(|inner| property(inner, name)))
}

/// Whether a path is within another one.
fn is_within(path: &str, within: &str) -> bool {
    path.strip_prefix(within).is_some_and(|rest| rest.starts_with('.'))
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ")
        .map_or(text, |(first, _)| first)
        .trim_end_matches('.')
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let rest = line.trim_start_matches([' ', '-']);
        let (name, rest_of) = rest.split_once(':')?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if name.is_empty() || !name.chars().all(plain) || !(rest_of.is_empty() || rest_of.starts_with(' ')) {
            return None;
        }
        let (value, comment) = comment(rest_of);
        Some(Self {
            indent: line.len() - rest.len(),
            name,
            value: value.trim(),
            comment: comment.trim(),
        })
    }
}

/// Parts a value from the comment behind it.
fn comment(text: &str) -> (&str, &str) {
    let (mut quoted, mut before) = (false, ' ');
    for (at, c) in text.char_indices() {
        if c == '"' {
            quoted = !quoted;
        }
        if c == '#' && before == ' ' && !quoted {
            let (value, comment) = text.split_at(at);
            return (value, comment.trim_start_matches('#'));
        }
        before = c;
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_comments_and_its_block() {
        let reference = Reference::read();
        let told = reference.explain(Some("jwt.clock_skew")).unwrap();
        assert!(told.starts_with("jwt.clock_skew: how far its clock"), "{told}");
        let told = reference.explain(Some("listeners.tls")).unwrap();
        assert!(
            told.contains("\n  tls:") && told.contains("\n    client_crl: ") && !told.contains("proxy_protocol"),
            "{told}"
        );
        let told = reference.explain(Some("probes")).unwrap();
        assert!(told.contains("A second address with /ready"), "{told}");
        assert!(reference.explain(None).unwrap().lines().count() > 15);
        let short = reference.explain(Some("clock_skew")).unwrap();
        assert!(short.starts_with("jwt.clock_skew: "), "{short}");
    }

    #[test]
    fn a_wrong_key_is_named_with_the_right_one() {
        let reference = Reference::read();
        let wrong = |path: &str| reference.explain(Some(path)).unwrap_err().to_string();
        assert_eq!(
            wrong("listner.tls"),
            "there is no key `listner.tls`; did you mean `listeners.tls`?"
        );
        assert_eq!(
            wrong("client_ca"),
            "there is no key `client_ca`; did you mean `listeners.tls.client_ca` or `admin.tls.client_ca`?"
        );
        assert_eq!(wrong("<b>\u{1b}[1m"), "there is no key `<b>\u{1b}[1m`");
        assert!(reference.schema(Some("zzz")).is_err());
        assert!(wrong(&"x".repeat(100_000)).len() < 200);
    }

    /// Each property of the schema that is a key of the file says what it means; required keys are those that the program needs.
    #[test]
    fn the_schema_has_kinds_and_meanings() {
        let reference = Reference::read();
        let schema = reference.schema(None).unwrap();
        let tls = reference.schema(Some("listeners.tls")).unwrap();
        assert!(
            tls["properties"]["client_ca"]["description"]
                .as_str()
                .unwrap()
                .contains("client's certificate")
        );
        assert_eq!(
            schema["properties"]["listeners"]["items"]["required"],
            serde_json::json!(["address"])
        );
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(
            schema["properties"]["anonymous"]["type"],
            serde_json::json!(["boolean", "null"])
        );
    }
}
