// SPDX-License-Identifier: Apache-2.0
//! Documents for people: their links are valid, their tables list what exists, and the README of the root is short.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::tree::{self, File};

const README_LINES_MAX: usize = 260;
const README_WIDTH_MAX: usize = 150;
const README_WORDS_MAX: usize = 1500;
/// What one person can read: all documents together.
const WORDS_MAX: usize = 46_000;

/// Where dependencies and metrics are listed.
const DEPENDENCIES: &str = "tests/README.md";
const METRICS: &str = "config/metrics.md";

/// The pages of the manual, and the one that lists what is in all of them.
const MANUAL: &str = "config/";
const CONTENTS: &str = "config/README.md";
const PAGE_LINES_MAX: usize = 400;

fn documents() -> impl Iterator<Item = File> {
    tree::files().into_iter().filter(|file| file.path.ends_with(".md"))
}

/// The lines outside of code blocks.
fn prose(text: &str) -> Vec<&str> {
    let mut code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            lines.push(line);
        }
    }
    lines
}

/// The anchor of a heading: lower case, without punctuation, dashes for spaces.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).into_iter().filter(|line| line.starts_with('#'));
    let headings = headings.map(|line| anchor(line.trim_start_matches('#').trim()));
    headings.collect()
}

/// The targets of the links in a document.
fn links(text: &str) -> Vec<&str> {
    let lines = prose(text).into_iter();
    let after = lines.flat_map(|line| line.split("](").skip(1));
    after.filter_map(|rest| rest.split(')').next()).collect()
}

/// Why a link of the document at `path` is broken, if it is.
fn broken(path: &str, text: &str, link: &str) -> Option<String> {
    if link.contains("://") {
        return None;
    }
    let (file, heading) = link
        .split_once('#')
        .map_or((link, None), |(file, heading)| (file, Some(heading)));
    let folder = Path::new(path).parent().unwrap();
    let target = folder.join(file);
    if !file.is_empty() && !tree::root().join(&target).exists() {
        return Some(format!("{path}: `{link}` leads to no file"));
    }
    let heading = heading?;
    let other;
    let text = if file.is_empty() {
        text
    } else {
        other = tree::read(target.to_str().unwrap());
        &other
    };
    (!anchors(text).contains(heading)).then(|| format!("{path}: `{link}` leads to no heading"))
}

#[test]
fn the_readme_is_short() {
    let text = tree::read("README.md");
    let lines = text.lines().count();
    assert!(
        lines <= README_LINES_MAX,
        "README.md: {lines} lines; move details to the README of a folder"
    );
    let words = text.split_whitespace().count();
    assert!(
        words <= README_WORDS_MAX,
        "README.md: {words} words; move details to the manual"
    );
    let wide: Vec<_> = text
        .lines()
        .filter(|line| line.chars().count() > README_WIDTH_MAX)
        .collect();
    assert!(wide.is_empty(), "README.md: break these lines: {wide:#?}");
}

#[test]
fn all_documents_together_are_short() {
    let words: usize = documents().map(|file| file.text.split_whitespace().count()).sum();
    assert!(
        words <= WORDS_MAX,
        "{words} words; for what you add, shorten something else"
    );
}

#[test]
fn the_manual_has_short_pages_and_one_list_of_contents() {
    let contents = tree::read(CONTENTS);
    let mut wrong = Vec::new();
    let manual = |path: &str| path.strip_prefix(MANUAL).is_some_and(|name| !name.contains('/'));
    let pages: Vec<File> = documents()
        .filter(|file| manual(&file.path) && !file.path.ends_with("CHANGELOG.md"))
        .collect();
    assert!(pages.len() > 5, "where are the pages?");
    for File { path, text } in pages {
        let lines = text.lines().count();
        if lines > PAGE_LINES_MAX {
            wrong.push(format!("{path}: {lines} lines; make two pages of it"));
        }
        let headings = prose(&text).into_iter().filter(|line| line.starts_with("##"));
        for heading in headings.map(|line| anchor(line.trim_start_matches('#').trim())) {
            let link = format!("]({}#{heading})", path.trim_start_matches(MANUAL));
            if path != CONTENTS && !contents.contains(&link) {
                wrong.push(format!("{CONTENTS} does not lead to `{heading}` of {path}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut wrong = Vec::new();
    for File { path, text } in documents() {
        wrong.extend(links(&text).into_iter().filter_map(|link| broken(&path, &text, link)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Everything that looks like a path of this repository exists, relative to the root or to the document's folder.
#[test]
fn paths_in_documents_exist() {
    let ours = ["src/", "tests/", "config/", "proto/", "loadtest/", ".ci/", ".cargo/"];
    let mut wrong = Vec::new();
    for File { path, text } in documents().filter(|file| file.path.ends_with("README.md")) {
        let folder = Path::new(&path).parent().unwrap();
        for word in text.split(|c: char| c.is_whitespace() || "`()[]<>\"',;|#".contains(c)) {
            let named = word.split(':').next().unwrap().trim_end_matches(['.', '/']);
            let pattern = named.contains(['*', '{', '$']);
            let there = tree::exists(named) || tree::root().join(folder).join(named).exists();
            if ours.iter().any(|folder| named.starts_with(folder)) && !pattern && !there {
                wrong.push(format!("{path}: {named} does not exist"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The direct dependencies that a manifest names, of all kinds, without the rooms of the relay.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut listed = false;
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            listed = section.ends_with("dependencies");
            if let Some((_, name)) = section.split_once("dependencies.") {
                found.insert(name.to_owned());
            }
        } else if let Some((name, what)) = line.split_once('=')
            && listed
            && !what.contains("package = \"distributary-")
            && !line.starts_with(['#', ' '])
        {
            found.insert(name.trim().split('.').next().unwrap().to_owned());
        }
    }
    found
}

/// The texts in backticks in the first column of the table below a heading.
fn first_cells(text: &str, heading: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| *line != heading).skip(1);
    let rows = lines
        .take_while(|line| !line.starts_with('#'))
        .filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}

/// Manifests whose dependencies have a table of their own.
const APART: [&str; 2] = ["loadtest/Cargo.toml", "tests/fuzz/Cargo.toml"];

/// Each direct dependency of each manifest is in exactly one row, and each name in a row is a dependency.
#[test]
fn every_dependency_says_what_it_is_for() {
    let text = tree::read(DEPENDENCIES);
    let manifests: Vec<_> = tree::files()
        .into_iter()
        .filter(|file| file.path == "Cargo.toml" || file.path.ends_with("/Cargo.toml"))
        .collect();
    assert!(manifests.len() >= 3, "where are the manifests?");
    let is_apart = |path: &str| APART.contains(&path);
    let mut tables = BTreeMap::<&str, BTreeSet<String>>::new();
    for manifest in &manifests {
        let apart = Some(manifest.path.as_str()).filter(|path| is_apart(path));
        let named = dependencies(&manifest.text).into_iter();
        // What tests the relay depends on it.
        let named = named.filter(|name| apart.is_some() || name != "distributary");
        tables
            .entry(apart.unwrap_or("The relay and its tests"))
            .or_default()
            .extend(named);
    }
    for (heading, named) in tables {
        let listed = first_cells(&text, &format!("### {heading}"));
        let once: BTreeSet<_> = listed.iter().cloned().collect();
        assert_eq!(
            once.len(),
            listed.len(),
            "{DEPENDENCIES}: {heading}: twice in {listed:?}",
        );
        let missing: Vec<_> = named.difference(&once).collect();
        let gone: Vec<_> = once.difference(&named).collect();
        assert!(
            missing.is_empty() && gone.is_empty(),
            "{DEPENDENCIES}: {heading} has {missing:?}, which are not listed, and not {gone:?}, which are",
        );
    }
}

/// The name under which a metric is registered: without prefix, labels and the suffix of counters.
fn registered(shown: &str) -> String {
    let name = shown.trim_start_matches("distributary_");
    let name = name.split('{').next().unwrap_or_default();
    name.trim_end_matches("_total").to_owned()
}

/// The names of all metrics.
fn metrics() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for File { text, .. } in tree::files().iter().filter(|file| file.is("src/telemetry/", ".rs")) {
        let calls = text
            .split("register(")
            .skip(1)
            .map(|call| call.split(')').next().unwrap_or_default());
        let called = calls.filter_map(|call| call.split('"').nth(1));
        names.extend(called.map(str::to_owned));
        // Those of each type are named as the fields that a macro makes of these lines.
        let rows = text.split("of_each_type! {\n").nth(1).unwrap_or_default();
        let rows = rows.split("\n}\n").next().unwrap_or_default().lines();
        let rows = rows.filter_map(|row| row.trim().trim_start_matches("pub ").split_once(": "));
        names.extend(
            rows.filter(|(name, _)| !name.contains(' '))
                .map(|(name, _)| name.to_owned()),
        );
    }
    assert!(names.len() > 50, "only {names:?}");
    names
}

/// Each metric is in the table of all metrics; each name there, and in the short table before it, is a metric.
#[test]
fn every_metric_says_what_it_is() {
    let names = metrics();
    let listed = |path: &str, heading: &str| -> BTreeSet<String> {
        let cells = first_cells(&tree::read(path), heading);
        assert!(cells.len() > 10, "{path}: only {cells:?} below {heading}");
        cells.iter().map(|name| registered(name)).collect()
    };
    let all = listed(METRICS, "## Metrics");
    let missing: Vec<_> = names.difference(&all).collect();
    assert!(missing.is_empty(), "{METRICS} does not list {missing:?}");
    for (path, listed) in [(METRICS, all), (METRICS, listed(METRICS, "## Metrics to watch"))] {
        let gone: Vec<_> = listed.difference(&names).collect();
        assert!(gone.is_empty(), "{path} lists {gone:?}, which are no metrics");
    }
}

/// Labels whose names begin as those of metrics do.
const LABELS: [&str; 2] = ["grpc_xds_cache_state", "grpc_xds_resource_type"];

#[test]
fn dashboards_and_alerts_show_metrics_that_exist() {
    let names = metrics();
    for path in [
        "config/observability/dashboard.json",
        "config/observability/alerts.yaml",
    ] {
        let text = tree::read(path);
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let words = words.filter(|word| !LABELS.contains(word));
        let shown = words.filter(|word| {
            ["distributary_", "grpc_", "process_"]
                .iter()
                .any(|of| word.starts_with(of))
        });
        let shown: BTreeSet<String> = shown.map(|name| registered(name.trim_end_matches("_bucket"))).collect();
        assert!(shown.len() > 10, "{path}: only {shown:?}");
        let gone: Vec<_> = shown.difference(&names).collect();
        assert!(gone.is_empty(), "{path} shows {gone:?}, which are no metrics");
    }
}

/// One alert for each cause, and each leads to a section of the manual.
#[test]
fn alerts_say_what_to_do() {
    let text = tree::read("config/observability/alerts.yaml");
    let rules: Vec<&str> = text.split("- alert: ").skip(1).collect();
    let names: BTreeSet<&str> = rules.iter().filter_map(|rule| rule.lines().next()).collect();
    let sections = anchors(&tree::read("config/alerts.md"));
    for rule in &rules {
        let name = rule.lines().next().unwrap();
        let link = format!("runbook_url: config/alerts.md#{}\n", name.to_lowercase());
        assert!(rule.contains(&link), "{name} has no {link}");
        assert!(
            sections.contains(&name.to_lowercase()),
            "config/alerts.md says nothing of {name}"
        );
    }
    assert_eq!(
        sections.len(),
        names.len() + 1,
        "config/alerts.md has sections without an alert"
    );
}

#[test]
fn the_scanner_sees_what_it_should() {
    let text = "# One: `two` three\n[a](#one-two-three) [b](c.md#d)\n```\n# no [e](f)\n```\n";
    assert_eq!(anchors(text), BTreeSet::from(["one-two-three".to_owned()]));
    assert_eq!(links(text), ["#one-two-three", "c.md#d"]);
    assert_eq!(broken("README.md", text, "#one-two-three"), None);
    assert!(broken("README.md", text, "#one").is_some());
    assert!(broken("README.md", text, "nowhere.md").is_some());
    assert_eq!(broken("tests/tidy/x.md", text, "../../Cargo.toml"), None);
    let manifest = "[package]\nname = 1\n[dependencies]\na = 1\n# b = 1\nc.workspace = true\n[target.'x'.dependencies]\nd = 1\n\
                    [dev-dependencies.e]\nversion = 1\n[profile.dev]\nf = 1\n";
    assert_eq!(
        dependencies(manifest).into_iter().collect::<Vec<_>>(),
        ["a", "c", "d", "e"]
    );
    let table = "### x\n| Crate | What for |\n|---|---|\n| `a`; `b` | with `c` |\n### y\n| `d` | |\n";
    assert_eq!(first_cells(table, "### x"), ["a", "b"]);
}
