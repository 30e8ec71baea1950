// SPDX-License-Identifier: Apache-2.0
//! What must hold for metrics in Prometheus's text form to be read. What `promtool check metrics` has about names is checked by itself, in
//! `tests/interop/operators`.
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
}

const SUFFIXES: [&str; 3] = ["_bucket", "_sum", "_count"];

/// Returns what is wrong with a text.
pub(crate) fn lint(text: &str) -> Vec<String> {
    let mut all: BTreeMap<String, Described> = BTreeMap::new();
    let mut present = String::new();
    let read = text.lines().filter_map(|line| {
        let why = read(line, &mut all, &mut present).err()?;
        Some(format!("{line}: {why}"))
    });
    let mut wrong: Vec<String> = read.collect();
    for (name, described) in &all {
        let counter = described.kind.as_deref() == Some("counter");
        let buckets = described.kind.as_deref() != Some("histogram") || are_whole(&described.samples);
        for (right, why) in [
            (described.help, "no help text"),
            (described.kind.is_some(), "no type"),
            (!described.samples.is_empty(), "no samples"),
            (counter == name.ends_with("_total"), "`_total` is for counters"),
            (buckets, "the buckets fall, or the last one is not the count"),
        ] {
            wrong.extend((!right).then(|| format!("{name}: {why}")));
        }
    }
    wrong
}

/// Reads a line. `present` is the metric to which the lines so far belong.
fn read(line: &str, all: &mut BTreeMap<String, Described>, present: &mut String) -> Result<(), &'static str> {
    let description = line.strip_prefix("# ");
    let mut words = description.unwrap_or_default().splitn(3, ' ');
    let (word, described) = (words.next().unwrap_or_default(), words.next());
    let (series, value) = line.rsplit_once(' ').ok_or("no value")?;
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let histogram = |name: &&str| {
        all.get(*name)
            .is_some_and(|one| one.kind.as_deref() == Some("histogram"))
    };
    let suffix = SUFFIXES
        .into_iter()
        .find(|suffix| name.strip_suffix(suffix).as_ref().is_some_and(histogram));
    let of = described.unwrap_or_else(|| name.strip_suffix(suffix.unwrap_or_default()).unwrap_or(name));
    if *present != of && all.contains_key(of) {
        return Err("other metrics are in between");
    }
    of.clone_into(present);
    let one = all.entry(of.to_owned()).or_default();
    match (description.is_some(), word) {
        (true, "HELP") if !one.help => one.help = true,
        (true, "TYPE") if one.kind.is_none() && one.samples.is_empty() => one.kind = words.next().map(str::to_owned),
        (true, _) => return Err("neither HELP nor TYPE, twice, or too late"),
        (false, _) => {
            let value: f64 = value.parse().map_err(|_| "no number")?;
            let labels = labels.strip_suffix('}').ok_or("labels without an end")?;
            let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let named = |label: &str| !label.is_empty() && label.chars().all(good);
            let quoted = labels.is_empty()
                || labels
                    .split("\",")
                    .all(|label| label.split_once("=\"").is_some_and(|(name, _)| named(name)));
            if !named(of) || !quoted {
                return Err("a malformed name or label");
            }
            let series = format!("{}{{{labels}", suffix.unwrap_or_default());
            if one.samples.insert(series, value).is_some() {
                return Err("twice");
            }
        }
    }
    Ok(())
}

/// Whether each histogram has a sum, and buckets that grow up to its count.
fn are_whole(samples: &BTreeMap<String, f64>) -> bool {
    let mut all: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (series, count) in samples {
        let Some((labels, rest)) = series
            .strip_prefix("_bucket{")
            .and_then(|labels| labels.split_once("le=\""))
        else {
            continue;
        };
        let (bound, rest) = rest.split_once('"').unwrap();
        let others = format!("{labels}{}", rest.trim_start_matches(','));
        let bound = bound.parse().unwrap_or(f64::NAN);
        let others = others.trim_end_matches(',').to_owned();
        all.entry(others).or_default().push((bound, *count));
    }
    let counts: BTreeSet<&str> = samples
        .keys()
        .filter_map(|series| series.strip_prefix("_count{"))
        .collect();
    let whole = |(labels, counts): (&String, &mut Vec<(f64, f64)>)| {
        counts.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let of = |suffix| samples.get(&format!("{suffix}{{{labels}"));
        counts
            .last()
            .is_some_and(|last| last.0 == f64::INFINITY && Some(&last.1) == of("_count"))
            && counts.is_sorted_by(|(_, a), (_, b)| a <= b)
            && of("_sum").is_some()
    };
    counts.len() == all.len() && all.iter_mut().all(whole)
}

#[test]
fn each_rule_finds_its_fault() {
    let gauge = "# HELP a x\n# TYPE a gauge\na{x=\"}\\\" \\\\\\n\"} NaN\na{x=\"\"} 1e3\n";
    let counter = "# HELP b_total x\n# TYPE b_total counter\nb_total 1\n";
    let histogram =
        "# HELP c x\n# TYPE c histogram\nc_sum 1\nc_count 2\nc_bucket{le=\"1.0\"} 1\nc_bucket{le=\"+Inf\"} 2\n";
    assert_eq!(lint(&[gauge, counter, histogram].concat()), [] as [String; 0]);
    for bad in [
        "a 1\n",
        "# HELP a x\n# TYPE a gauge\n",
        "# HELP a x\n# TYPE a gauge\na 1\na 1\n",
        "# HELP a x\na 1\n# TYPE a gauge\n",
        "# EOF\n",
        "# HELP a x\n# TYPE a gauge\na one\n",
        "# HELP a x\n# TYPE a gauge\na{b=\"1\" 1\n",
        "# HELP a x\n# TYPE a gauge\na{b} 1\n",
        &[gauge, counter, "a{b=\"c\"} 1\n"].concat(),
        &counter.replace("counter", "gauge"),
        &counter.replace("_total", ""),
        &histogram.replace("c_bucket{le=\"+Inf\"} 2\n", ""),
        &histogram.replace("le=\"1.0\"} 1", "le=\"1.0\"} 3"),
        &histogram.replace("c_sum 1\n", ""),
    ] {
        assert_ne!(lint(bad), [] as [String; 0], "{bad}");
    }
}
