// SPDX-License-Identifier: Apache-2.0
//! What each key of a scenario means: finds it in `KEYS.md`, which is part of the program. A test holds that this page lists
//! exactly the keys that are read, and that its defaults and examples are true. Knows only how the page is laid out.

use std::fmt::Write as _;

use distributary::xds::meant;

/// The page of all keys.
pub(crate) const PAGE: &str = include_str!("../../KEYS.md");

/// One row of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// The heading above it: the place of the key in a scenario; empty for the scenario itself.
    pub(crate) place: &'static str,
    pub(crate) name: &'static str,
    pub(crate) form: &'static str,
    pub(crate) default: &'static str,
    about: &'static str,
    pub(crate) example: &'static str,
}

impl Key {
    /// Returns all keys, in the order of the page.
    pub(crate) fn all() -> Vec<Self> {
        let (mut place, mut keys) = ("", Vec::new());
        for line in PAGE.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                place = heading.strip_prefix('`').map_or("", |path| path.trim_end_matches('`'));
            }
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let (names, [form, default, about, example]) = match cells.as_slice() {
                ["", names, form, default, about, example, ""] => (names, [*form, *default, *about, *example]),
                ["", names, about, ""] => (names, ["", "", *about, ""]),
                _ => continue,
            };
            // The others are headings.
            let names = names.split('`').skip(1).step_by(2);
            keys.extend(names.map(|name| Self {
                place,
                name,
                form,
                default,
                about,
                example: example.trim_matches('`'),
            }));
        }
        keys
    }

    /// Returns the path of the key from the top of a scenario.
    fn path(&self) -> String {
        match self.place {
            "" => self.name.to_owned(),
            place => format!("{place}.{}", self.name),
        }
    }
}

/// Returns what is known of a key: by its name, or by the end of its path, such as `names.count`.
pub(crate) fn explain(asked: &str) -> anyhow::Result<String> {
    let bare = |text: &str| text.replace("[]", "");
    let wanted = bare(asked);
    let keys = Key::all();
    let mut out = String::new();
    for key in &keys {
        let path = bare(&key.path());
        if path != wanted && !path.ends_with(&format!(".{wanted}")) {
            continue;
        }
        let _ = writeln!(out, "{}\n  {}", key.path(), key.about);
        let example = match key.example {
            "" => key.name.to_owned(),
            example => format!("{}: {example}", key.name),
        };
        let said = [("form", key.form), ("default", key.default), ("example", &*example)];
        for (what, said) in said.into_iter().filter(|(_, said)| !said.is_empty()) {
            let _ = writeln!(out, "  {what}: {said}");
        }
        out.push('\n');
    }
    if !out.is_empty() {
        return Ok(out.replace('`', ""));
    }
    let like: Vec<String> = keys
        .iter()
        .map(Key::path)
        .filter(|path| path.contains(&wanted))
        .collect();
    let last = wanted.rsplit('.').next().unwrap_or_default();
    let meant = meant(last, keys.iter().map(|key| key.name));
    match (like.as_slice(), meant) {
        ([], Some(meant)) => anyhow::bail!("no key is called `{asked}`; did you mean `{meant}`?"),
        ([], None) => anyhow::bail!("no key is called `{asked}`: `distributary-load explain` lists all keys"),
        (like, _) => anyhow::bail!("no key is called `{asked}`; these are like it: {}", like.join(", ")),
    }
}
