// SPDX-License-Identifier: Apache-2.0
//! The rules for metrics in Prometheus's text form: those without which a text cannot be read, and those that `promtool check metrics`
//! has about names.
//!
//! Owns the rules. Knows no metric.

use std::collections::{BTreeMap, BTreeSet};

/// What a text says of the metrics with one name.
#[derive(Debug, Default)]
struct Described {
    help: bool,
    kind: Option<String>,
    /// By labels, with the suffix of the name.
    samples: BTreeMap<String, f64>,
    labels: BTreeSet<String>,
}

/// Units that are not basic, and the basic one. Those with a prefix are found by [`PREFIXES`].
const UNITS: [(&str, &str); 12] = [
    ("minutes", "seconds"),
    ("hours", "seconds"),
    ("days", "seconds"),
    ("weeks", "seconds"),
    ("kelvins", "kelvin"),
    ("fahrenheit", "celsius"),
    ("rankine", "celsius"),
    ("inches", "meters"),
    ("miles", "meters"),
    ("bits", "bytes"),
    ("calories", "joules"),
    ("pounds", "grams"),
];
const BASIC: [&str; 10] = [
    "amperes", "bytes", "celsius", "grams", "joules", "kelvin", "meters", "metres", "seconds", "volts",
];
const PREFIXES: [&str; 18] = [
    "pico", "nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo", "kibi", "mega", "mebi", "giga", "gibi",
    "tera", "tebi", "peta", "pebi",
];
const ABBREVIATIONS: [&str; 14] = [
    "s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d",
];
const KINDS: [&str; 5] = ["counter", "gauge", "histogram", "summary", "untyped"];

/// Returns what is wrong with a text.
pub(crate) fn lint(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut all: BTreeMap<String, Described> = BTreeMap::new();
    let mut present = String::new();
    for line in text.lines() {
        if let Err(why) = read(line, &mut all, &mut present) {
            wrong.push(format!("{line}: {why}"));
        }
    }
    for (name, described) in &all {
        let kind = described.kind.as_deref().unwrap_or("untyped");
        wrong.extend(names(name, kind).into_iter().map(|why| format!("{name}: {why}")));
        wrong.extend(described.faults(kind).map(|why| format!("{name}: {why}")));
        if kind == "histogram" {
            wrong.extend(buckets(&described.samples).map(|why| format!("{name}: {why}")));
        }
    }
    wrong
}

/// Reads a line. `present` is the metric to which the lines so far belong.
fn read(line: &str, all: &mut BTreeMap<String, Described>, present: &mut String) -> Result<(), &'static str> {
    let mut enter = |name: &str| {
        let new = !all.contains_key(name);
        if *present != name && !new {
            return Err("other metrics are in between");
        }
        name.clone_into(present);
        Ok(())
    };
    if let Some(description) = line.strip_prefix("# ") {
        let mut words = description.splitn(3, ' ');
        let (Some(word), Some(name), Some(rest)) = (words.next(), words.next(), words.next()) else {
            return Err("neither HELP nor TYPE");
        };
        enter(name)?;
        let described = all.entry(name.to_owned()).or_default();
        match word {
            "HELP" if described.help => return Err("twice"),
            "HELP" => described.help = true,
            "TYPE" if described.kind.is_some() || !described.samples.is_empty() => return Err("too late"),
            "TYPE" if !KINDS.contains(&rest) => return Err("no such type"),
            "TYPE" => described.kind = Some(rest.to_owned()),
            _ => return Err("neither HELP nor TYPE"),
        }
        return Ok(());
    }
    let (series, value) = line.rsplit_once(' ').ok_or("no value")?;
    let value: f64 = value.parse().map_err(|_| "no number")?;
    let (name, labels) = series.split_once('{').map_or(Ok((series, "")), |(name, rest)| {
        rest.strip_suffix('}')
            .map(|labels| (name, labels))
            .ok_or("labels without an end")
    })?;
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(good) {
        return Err("a malformed name");
    }
    let suffix = ["_bucket", "_sum", "_count"].into_iter().find(|suffix| {
        let kind = name
            .strip_suffix(suffix)
            .and_then(|name| all.get(name)?.kind.as_deref());
        matches!(
            (kind, *suffix),
            (Some("histogram"), _) | (Some("summary"), "_sum" | "_count")
        )
    });
    let suffix = suffix.unwrap_or_default();
    let of = name.strip_suffix(suffix).unwrap_or(name);
    if of != present.as_str() && all.contains_key(of) {
        return Err("other metrics are in between");
    }
    of.clone_into(present);
    let described = all.entry(of.to_owned()).or_default();
    described
        .labels
        .extend(pairs(labels)?.into_iter().map(|(name, _)| name));
    match described.samples.insert(format!("{suffix}{{{labels}"), value) {
        Some(_) => Err("metric not unique"),
        None => Ok(()),
    }
}

/// Reads `a="x",b="y"`.
fn pairs(mut labels: &str) -> Result<Vec<(String, String)>, &'static str> {
    let mut all = Vec::new();
    while !labels.is_empty() {
        let (name, rest) = labels.split_once("=\"").ok_or("a label without a value")?;
        let mut value = String::new();
        let mut chars = rest.char_indices();
        let end = loop {
            match chars.next() {
                Some((at, '"')) => break at,
                Some((_, '\\')) => value.push(match chars.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, escaped @ ('\\' | '"'))) => escaped,
                    _ => return Err("nothing to escape"),
                }),
                Some((_, other)) => value.push(other),
                None => return Err("a label without an end"),
            }
        };
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err("a malformed label");
        }
        all.push((name.to_owned(), value));
        let rest = &rest[end + 1..];
        labels = rest.strip_prefix(',').unwrap_or(rest);
    }
    Ok(all)
}

/// What is wrong with a name.
fn names(name: &str, kind: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let lower = name.to_ascii_lowercase();
    let has = |word: &str| lower.contains(&format!("_{word}_")) || lower.ends_with(&format!("_{word}"));
    for word in name.split('_') {
        let bare = PREFIXES.iter().find_map(|prefix| word.strip_prefix(prefix));
        let known = |word: &str| {
            let basic = BASIC.iter().find(|basic| **basic == word).copied();
            basic.or_else(|| UNITS.iter().find(|(unit, _)| *unit == word).map(|(_, basic)| *basic))
        };
        if let Some(basic) = known(word).or_else(|| known(bare?)) {
            if basic != word {
                wrong.push(format!("use base unit {basic} instead of {word}"));
            }
            break;
        }
    }
    if kind != "untyped" && has(kind) {
        wrong.push(format!("metric name should not include type '{kind}'"));
    }
    if name.contains(':') {
        wrong.push("metric names should not contain ':'".to_owned());
    }
    if ABBREVIATIONS.iter().any(|short| has(short)) {
        wrong.push("metric names should not contain abbreviated units".to_owned());
    }
    if camel(name) {
        wrong.push("metric names should be written in 'snake_case'".to_owned());
    }
    for (suffix, kinds) in [
        ("_total", &["counter"][..]),
        ("_bucket", &["histogram"]),
        ("_count", &["histogram", "summary"]),
        ("_sum", &["histogram", "summary"]),
    ] {
        if kind != "untyped" && !kinds.contains(&kind) && name.ends_with(suffix) {
            wrong.push(format!("a {kind} should not have \"{suffix}\" suffix"));
        }
    }
    if kind == "counter" && !name.ends_with("_total") {
        wrong.push("counter metrics should have \"_total\" suffix".to_owned());
    }
    wrong
}

fn camel(name: &str) -> bool {
    let mut pairs = name.as_bytes().windows(2);
    pairs.any(|pair| matches!(pair, [b'a'..=b'z', b'A'..=b'Z']))
}

impl Described {
    /// What is wrong with the description and the labels.
    fn faults(&self, kind: &str) -> impl Iterator<Item = &'static str> {
        let label = |name: &str| self.labels.contains(name);
        [
            (!self.help, "no help text"),
            (self.samples.is_empty(), "no samples"),
            (
                kind != "untyped" && kind != "histogram" && label("le"),
                "non-histogram metrics should not have \"le\" label",
            ),
            (
                kind != "untyped" && kind != "summary" && label("quantile"),
                "non-summary metrics should not have \"quantile\" label",
            ),
            (
                self.labels.iter().any(|label| camel(label)),
                "label names should be written in 'snake_case'",
            ),
        ]
        .into_iter()
        .filter_map(|(wrong, why)| wrong.then_some(why))
    }
}

/// What is wrong with the samples of histograms.
fn buckets(samples: &BTreeMap<String, f64>) -> impl Iterator<Item = String> {
    let mut wrong = Vec::new();
    let mut all: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (series, count) in samples {
        let Some(labels) = series.strip_prefix("_bucket{") else {
            continue;
        };
        let labels = pairs(labels).unwrap_or_default();
        let (bounds, others): (Vec<_>, Vec<_>) = labels.into_iter().partition(|(name, _)| name == "le");
        let bound = bounds
            .first()
            .map_or(f64::NAN, |(_, le)| le.parse().unwrap_or(f64::NAN));
        let others: Vec<String> = others.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        all.entry(others.join(",")).or_default().push((bound, *count));
    }
    for (labels, mut counts) in all {
        counts.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let whole = samples.get(&format!("_count{{{labels}"));
        let last = counts.last().map(|(bound, count)| (*bound, count));
        if last != whole.map(|count| (f64::INFINITY, count)) {
            wrong.push(format!(
                "{{{labels}}}: the last bucket is {last:?}, the count {whole:?}"
            ));
        }
        if !counts.is_sorted_by(|(_, a), (_, b)| a <= b) {
            wrong.push(format!("{{{labels}}}: the counts of buckets fall"));
        }
        if !samples.contains_key(&format!("_sum{{{labels}")) {
            wrong.push(format!("{{{labels}}}: no sum"));
        }
    }
    wrong.into_iter()
}

#[test]
fn each_rule_finds_its_fault() {
    let described = |name: &str, kind: &str| format!("# HELP {name} x\n# TYPE {name} {kind}\n{name} 1\n");
    let good = [
        described("a_total", "counter"),
        described("b_seconds", "gauge"),
        "# HELP c x\n# TYPE c histogram\nc_sum 1\nc_count 2\nc_bucket{le=\"1.0\"} 1\nc_bucket{le=\"+Inf\"} 2\n"
            .to_owned(),
        "# HELP d x\n# TYPE d gauge\nd{x=\"}\\\" \\\\\\n\"} NaN\nd{x=\"\"} 1e3\n".to_owned(),
    ];
    assert_eq!(lint(&good.concat()), [] as [String; 0]);
    for (bad, why) in [
        ("a 1\n".to_owned(), "no help text"),
        ("# HELP a x\n# TYPE a gauge\n".to_owned(), "no samples"),
        ("# HELP a x\n# TYPE a gauge\na 1\na 1\n".to_owned(), "not unique"),
        ("# HELP a x\na 1\n# TYPE a gauge\n".to_owned(), "too late"),
        ("# HELP a x\n# HELP a x\na 1\n".to_owned(), "twice"),
        ("# EOF\n".to_owned(), "neither HELP nor TYPE"),
        ("# UNIT a_seconds seconds\n".to_owned(), "neither HELP nor TYPE"),
        (good[1].clone() + &good[0] + "b_seconds{a=\"b\"} 1\n", "in between"),
        (described("a", "counter"), "\"_total\" suffix"),
        (described("a_total", "gauge"), "should not have \"_total\""),
        (described("a_count", "gauge"), "should not have \"_count\""),
        (described("a_bucket", "counter"), "should not have \"_bucket\""),
        (described("a_sum", "gauge"), "should not have \"_sum\""),
        (described("a_gauge", "gauge"), "include type"),
        (described("a_counter_total", "counter"), "include type"),
        (described("a_milliseconds", "gauge"), "base unit seconds"),
        (described("a_kilobytes", "gauge"), "base unit bytes"),
        (described("a_hours", "gauge"), "base unit seconds"),
        (described("a_ms", "gauge"), "abbreviated"),
        (described("aB", "gauge"), "snake_case"),
        (described("a:b", "gauge"), "':'"),
        (described("a", "info"), "no such type"),
        ("# HELP a x\n# TYPE a gauge\na{le=\"1\"} 1\n".to_owned(), "\"le\""),
        (
            "# HELP a x\n# TYPE a gauge\na{quantile=\"1\"} 1\n".to_owned(),
            "\"quantile\"",
        ),
        ("# HELP a x\n# TYPE a gauge\na{bC=\"1\"} 1\n".to_owned(), "label names"),
        (
            "# HELP a x\n# TYPE a gauge\na{b=\"\"1\"} 1\n".to_owned(),
            "without a value",
        ),
        (
            "# HELP a x\n# TYPE a gauge\na{b=\"\\t\"} 1\n".to_owned(),
            "nothing to escape",
        ),
        ("# HELP a x\n# TYPE a gauge\na one\n".to_owned(), "no number"),
        (good[2].replace("c_bucket{le=\"+Inf\"} 2\n", ""), "last bucket"),
        (good[2].replace("le=\"1.0\"} 1", "le=\"1.0\"} 3"), "fall"),
        (good[2].replace("c_sum 1\n", ""), "no sum"),
    ] {
        let found = lint(&bad);
        assert!(
            found.iter().any(|said| said.contains(why)),
            "{bad}is not found for {why}: {found:?}"
        );
    }
}
