// SPDX-License-Identifier: Apache-2.0
//! `/stats`: the metrics as Envoy shows its own, one `name: value` on each line, and some of them.
//!
//! Owns the forms. Counts nothing: it reads what `/metrics` answers.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use super::forms::{self, Answered, Asked};
use super::{Shown, metrics_text};
use crate::telemetry::Exposition;
use crate::xds::{Expression, printable};

/// The query of `/stats`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatsQuery {
    #[serde(default)]
    format: StatsFormat,
    filter: Option<String>,
    usedonly: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StatsFormat {
    #[default]
    Text,
    Json,
    Prometheus,
}

/// One line of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StatLine<'a> {
    /// Its name, with the labels.
    name: &'a str,
    /// Its value, as it was written.
    value: &'a str,
}

pub(super) async fn answer(State(shown): State<Shown>, Asked(wanted): Asked<StatsQuery>) -> Answered {
    let filter = wanted.filter.as_deref().map(Expression::part).transpose();
    let filter = filter.map_err(|fault| forms::wrong(format!("filter: {fault}\n")))?;
    let text = metrics_text(&shown, Exposition::Prometheus).await?;
    let some = |sample: &StatLine<'_>| {
        let used = wanted.usedonly.is_none() || sample.number() != Some(0.0);
        used && filter.as_ref().is_none_or(|filter| filter.fits(sample.name))
    };
    Ok(match wanted.format {
        StatsFormat::Text => lines(samples(&text).filter(some)).into_response(),
        StatsFormat::Json => forms::json(&stats(samples(&text).filter(some))),
        StatsFormat::Prometheus => (
            [(header::CONTENT_TYPE, Exposition::Prometheus.content_type())],
            chosen(&text, some),
        )
            .into_response(),
    })
}

impl<'a> StatLine<'a> {
    /// Reads a line of the text format; `None` is a comment.
    fn read(line: &'a str) -> Option<Self> {
        let name_end = match line.find(['{', ' '])? {
            at if line.get(at..)?.starts_with('{') => at + labels_end(line.get(at..)?)?,
            at => at,
        };
        let (name, rest) = line.split_at_checked(name_end)?;
        let value = rest.split_ascii_whitespace().next()?;
        (!name.starts_with('#')).then_some(Self { name, value })
    }

    /// The value as a number.
    fn number(self) -> Option<f64> {
        self.value.parse().ok()
    }
}

/// Returns where the labels at the beginning of a text end. Their values are quoted.
fn labels_end(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '}' if !quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Reads metrics in the text format.
fn samples(text: &str) -> impl Iterator<Item = StatLine<'_>> {
    text.lines().filter_map(StatLine::read)
}

fn lines<'a>(samples: impl Iterator<Item = StatLine<'a>>) -> String {
    let lines = samples.map(|StatLine { name, value }| format!("{}: {value}\n", printable(name)));
    lines.collect()
}

fn stats<'a>(samples: impl Iterator<Item = StatLine<'a>>) -> Value {
    let stats = samples.map(|sample| {
        let whole = sample.value.parse::<i64>().map(Value::from).ok();
        let number = whole.or_else(|| sample.number().filter(|number| number.is_finite()).map(Value::from));
        json!({ "name": sample.name, "value": number.unwrap_or_else(|| sample.value.into()) })
    });
    json!({ "stats": stats.collect::<Vec<_>>() })
}

/// Returns some of the metrics in the text format, each with the comments of its family.
fn chosen(text: &str, some: impl Fn(&StatLine<'_>) -> bool) -> String {
    let (mut chosen, mut comments) = (String::new(), String::new());
    let mut after_sample = false;
    for line in text.lines() {
        match StatLine::read(line) {
            Some(sample) => {
                after_sample = true;
                if some(&sample) {
                    chosen.push_str(&std::mem::take(&mut comments));
                    chosen.push_str(line);
                    chosen.push('\n');
                }
            }
            None => {
                if std::mem::take(&mut after_sample) {
                    comments.clear();
                }
                comments.push_str(line);
                comments.push('\n');
            }
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "\
# HELP a_total Things.
# TYPE a_total counter
a_total{name=\"x} \\\" y\"} 3 # {trace_id=\"1\"} 0.5
a_total 0
# HELP b Others.
# TYPE b gauge
b 1.5
b{le=\"+Inf\"} NaN
# EOF
";

    #[test]
    fn lines_are_read_whatever_their_labels_say() {
        let found: Vec<_> = samples(METRICS).map(|sample| (sample.name, sample.value)).collect();
        let expected = [
            ("a_total{name=\"x} \\\" y\"}", "3"),
            ("a_total", "0"),
            ("b", "1.5"),
            ("b{le=\"+Inf\"}", "NaN"),
        ];
        assert_eq!(found, expected);
        for broken in ["", "a", "a{", "a{b=\"} 1", "{", "# x"] {
            assert_eq!(StatLine::read(broken), None, "{broken}");
        }
    }

    #[test]
    fn the_forms_say_the_same() {
        assert_eq!(lines(samples(METRICS).skip(1).take(2)), "a_total: 0\nb: 1.5\n");
        let json = stats(samples(METRICS).skip(1));
        let expected = json!([{"name": "a_total", "value": 0}, {"name": "b", "value": 1.5},
            {"name": "b{le=\"+Inf\"}", "value": "NaN"}]);
        assert_eq!(json["stats"], expected);
        let some = chosen(METRICS, |sample| sample.name == "b");
        assert_eq!(some, "# HELP b Others.\n# TYPE b gauge\nb 1.5\n");
    }
}
