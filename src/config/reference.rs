// SPDX-License-Identifier: Apache-2.0
//! The reference of the configuration: each key, what it means, and its default or an example.
//!
//! Owns the forms in which the rows are told: as text, as the file `config/reference.yaml`, and as a JSON schema. Reads no configuration.

use serde_json::Value;

use super::reading::{Shape as _, below};
use super::rows::{Effect, Kind, Row};
use super::shape::File;
use crate::xds::meant;

/// What stands above the keys in the file.
const ABOVE: &str = "\
# All keys of Distributary, as `distributary explain --file` prints them. The values are the defaults; of keys that have none, they are
# examples, and what holds without them is said. `upstream.xds_servers` must be set, here or with --upstream. Unknown keys are errors.
#
# Sizes are bytes or have a unit: 4096, 64KiB, 16MiB, 1GiB. Durations need a unit: 250ms, 30s, 5m, 1h. 0 means off.
#
# A flag overrides its environment variable, and that overrides this file: --listen (DISTRIBUTARY_LISTEN, separated by commas) for
# `listeners`, --upstream (DISTRIBUTARY_UPSTREAM) for `upstream.xds_servers`, --admin (DISTRIBUTARY_ADMIN_LISTEN) for
# `admin.address`, --secrets (DISTRIBUTARY_SECRETS) for `secrets`.
";

/// The columns of comments.
const WIDTH: usize = 130;

/// Where a comment beside a value begins at the earliest.
const BESIDE: usize = 40;

/// All keys, in the order of the file.
#[derive(Debug)]
pub struct Reference {
    file: Kind,
}

/// A key that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("there is no key `{asked}`{}", .meant.as_ref().map(|meant| format!("; did you mean {meant}?")).unwrap_or_default())]
pub struct NoKey {
    asked: String,
    meant: Option<String>,
}

/// A key, and where it stands.
struct PlacedRow<'a> {
    /// Without numbers of lists and names that somebody chooses: `listeners.tls.certificate`.
    path: String,
    row: &'a Row,
    effect: Option<Effect>,
}

impl Default for Reference {
    fn default() -> Self {
        Self { file: File::kind() }
    }
}

impl Reference {
    /// Returns what a key means, when a change takes effect, and its part of the file. Without a key, returns a line for each key that is not
    /// within another one.
    ///
    /// # Errors
    /// There is no such key.
    pub fn explain(&self, path: Option<&str>) -> Result<String, NoKey> {
        let Some(path) = path else {
            let line = |row: &Row| format!("{:15} {}\n", row.key, first_sentence(&row.about));
            return Ok(self.file.rows().iter().map(line).collect());
        };
        let PlacedRow { path, row, effect } = self.key(path)?;
        let effect = match effect {
            None => String::new(),
            Some(Effect::Restart) => format!(" A change {}.", Effect::Restart),
            Some(live) => format!(" A change takes effect {live}."),
        };
        let mut block = String::new();
        write(&mut block, row, 2, "");
        Ok(format!("{path}: {}{effect}\n\n{block}", row.about))
    }

    /// Returns the file that has all keys.
    pub fn file(&self) -> String {
        let mut file = ABOVE.to_owned();
        for row in self.file.rows() {
            file.push('\n');
            write(&mut file, row, 0, &format!("# {}\n", wrapped(&row.about, 2, "# ")));
        }
        file
    }

    /// Returns the paths of all keys with what they mean, and when a change takes effect.
    pub fn keys(&self) -> Vec<(String, &str, Option<Effect>)> {
        let keys = self.all().into_iter();
        keys.map(|found| (found.path, found.row.about.as_str(), found.effect))
            .collect()
    }

    /// Returns when a change of a key takes effect, which is written as in messages: `listeners[0].mode, owner or group`.
    pub fn effect(&self, key: &str) -> Effect {
        let first = key.split([',', ' ']).next().unwrap_or_default();
        let plain = first.split('[').map(|part| part.rsplit(']').next().unwrap_or_default());
        let path: String = plain.collect();
        let found = self.all().into_iter().find(|found| found.path == path);
        found.and_then(|found| found.effect).unwrap_or(Effect::Restart)
    }

    /// Returns the JSON schema of a configuration, or of a part of it.
    ///
    /// # Errors
    /// There is no such key.
    pub fn schema(&self, path: Option<&str>) -> Result<Value, NoKey> {
        let mut schema = match path {
            None => self.file.schema(),
            Some(path) => self.key(path)?.row.schema(),
        };
        if let Some(members) = schema.as_object_mut() {
            let dialect = "https://json-schema.org/draft/2020-12/schema";
            members.insert("$schema".to_owned(), dialect.into());
            let title = format!("Distributary {}", path.unwrap_or("configuration"));
            members.insert("title".to_owned(), title.into());
        }
        Ok(schema)
    }

    fn all(&self) -> Vec<PlacedRow<'_>> {
        let mut all = Vec::new();
        collect(self.file.rows(), "", None, &mut all);
        all
    }

    /// Returns the key of this path, or the only one that ends with it.
    fn key(&self, path: &str) -> Result<PlacedRow<'_>, NoKey> {
        let mut all = self.all();
        let end = format!(".{path}");
        let ends: Vec<usize> = (0..)
            .zip(&all)
            .filter(|(_, key)| key.path.ends_with(&end))
            .map(|(at, _)| at)
            .collect();
        let whole = all.iter().position(|key| key.path == path);
        let only = Some(&ends)
            .filter(|ends| ends.len() == 1)
            .and_then(|ends| ends.first().copied());
        if let Some(at) = whole.or(only) {
            return Ok(all.swap_remove(at));
        }
        let ends: Vec<String> = ends
            .iter()
            .filter_map(|at| Some(format!("`{}`", all.get(*at)?.path)))
            .collect();
        let meant = meant(path, all.iter().map(|key| key.path.as_str())).map(|meant| format!("`{meant}`"));
        Err(NoKey {
            asked: path.chars().take(100).collect(),
            meant: Some(ends.join(" or ")).filter(|ends| !ends.is_empty()).or(meant),
        })
    }
}

fn collect<'a>(rows: &'a [Row], within: &str, outer: Option<Effect>, all: &mut Vec<PlacedRow<'a>>) {
    for row in rows {
        let path = below(within, row.key);
        let effect = row.effect.or(outer);
        all.push(PlacedRow {
            path: path.clone(),
            row,
            effect,
        });
        collect(row.kind.rows(), &path, effect, all);
    }
}

/// Writes a key with all that is in it. `above` stands before it; if that is empty, what the key means is written above its inner keys only.
fn write(out: &mut String, row: &Row, indent: usize, above: &str) {
    out.push_str(above);
    let space = " ".repeat(indent);
    let rows = row.kind.rows();
    let shown = row.shown.as_deref();
    let named = matches!(row.kind, Kind::Named(_));
    if rows.is_empty() || shown.is_some() && !named {
        let shown = shown.unwrap_or_default();
        out.push_str(format!("{space}{}: {shown}", row.key).trim_end());
        out.push('\n');
        return;
    }
    out.push_str(&format!("{space}{}:\n", row.key));
    let (inner, dash) = match &row.kind {
        Kind::List(_) => (indent + 4, true),
        Kind::Named(_) => {
            out.push_str(&format!("{space}  {}:\n", shown.unwrap_or("name")));
            (indent + 4, false)
        }
        Kind::Any | Kind::Single(_) | Kind::Either(..) | Kind::Rows(_) | Kind::Open(_) => (indent + 2, false),
    };
    for (at, row) in rows.iter().enumerate() {
        let began = out.len();
        inner_key(out, row, inner);
        if dash && at == 0 {
            // The dash stands before the key, behind the comment above it.
            let key = format!("{}{}:", " ".repeat(inner), row.key);
            let written = out.split_off(began);
            out.push_str(&written.replacen(&key, &format!("{}- {}:", " ".repeat(inner - 2), row.key), 1));
        }
    }
}

/// Writes a key within another one, with what it means beside it if that fits, and otherwise above it.
fn inner_key(out: &mut String, row: &Row, indent: usize) {
    let mut block = String::new();
    write(&mut block, row, indent, "");
    let line = block.trim_end();
    let width = line.chars().count().max(BESIDE - 2) + "  # ".len() + row.about.chars().count();
    if !line.contains('\n') && width <= WIDTH {
        out.push_str(&format!("{line:<beside$}  # {}\n", row.about, beside = BESIDE - 2));
    } else {
        let hash = format!("{}# ", " ".repeat(indent));
        out.push_str(&format!("{hash}{}\n{block}", wrapped(&row.about, hash.len(), &hash)));
    }
}

/// Breaks a text into lines, each of which but the first begins with `hash`.
fn wrapped(text: &str, mut column: usize, hash: &str) -> String {
    let mut lines = String::new();
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > hash.len() {
            if column + 1 + width > WIDTH {
                lines.push('\n');
                lines.push_str(hash);
                column = hash.len();
            } else {
                lines.push(' ');
                column += 1;
            }
        }
        lines.push_str(word);
        column += width;
    }
    lines
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ")
        .map_or(text, |(first, _)| first)
        .trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_text_and_its_block() {
        let reference = Reference::default();
        let told = reference.explain(Some("jwt.clock_skew")).unwrap();
        assert_eq!(
            told,
            "jwt.clock_skew: How far its clock and this machine's may differ; at most 60s. A change takes effect for new connections and \
             streams.\n\n  clock_skew: 30s\n"
        );
        let told = reference.explain(Some("listeners.tls")).unwrap();
        assert!(
            told.contains("\n  tls:") && told.contains("\n    client_crl: ") && !told.contains("proxy_protocol"),
            "{told}"
        );
        assert!(reference.explain(None).unwrap().lines().count() > 15);
        let short = reference.explain(Some("clock_skew")).unwrap();
        assert!(short.starts_with("jwt.clock_skew: "), "{short}");
        let told = reference.explain(Some("transport_v2")).unwrap();
        assert!(told.contains(" A change needs a restart."), "{told}");
    }

    #[test]
    fn a_wrong_key_is_named_with_the_right_one() {
        let reference = Reference::default();
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
}
