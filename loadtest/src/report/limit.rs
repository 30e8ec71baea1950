//! A limit that a user sets for a figure: `p99>100ms` fails a run in which it is more. Owns how that is written, and what it means
//! for each phase. Measures nothing.

use std::str::FromStr;

use super::columns::{self, Column};
use crate::measure::quantities::{Size, Time};
use crate::measure::record::{Assertion, Quantity, Record, Relation, Unit, Verdict};

/// What must not happen.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    /// As it was written.
    text: String,
    column: &'static Column,
    /// What must hold instead.
    relation: Relation,
    bound: f64,
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sign = |sign: char| text.split_once(sign);
        let (figure, relation, value) = match (sign('>'), sign('<')) {
            (Some((figure, value)), None) => (figure, Relation::AtMost, value),
            (None, Some((figure, value))) => (figure, Relation::AtLeast, value),
            (Some(_), Some(_)) | (None, None) => {
                return Err("write a figure, > or <, and a value, such as p99>100ms or deliveries<1000".to_owned());
            }
        };
        let column = columns::named(figure.trim())?;
        Ok(Self {
            text: text.to_owned(),
            column,
            relation,
            bound: value_in(column.unit, value.trim())?,
        })
    }
}

/// Reads a value in the unit of a figure.
fn value_in(unit: Unit, text: &str) -> Result<f64, String> {
    let time = || text.parse::<Time>().map(|time| time.0.as_secs_f64());
    let number = |text: &str| {
        let number = text.trim_end().parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| format!("`{text}` is not a number; write one such as 20 or 1.5"))
    };
    match unit {
        Unit::Micros => time().map(|seconds| seconds * 1e6),
        Unit::Millis => time().map(|seconds| seconds * 1e3),
        Unit::Bytes => text.parse::<Size>().map(|size| crate::measure::record::float(size.0)),
        Unit::Percent => number(text.trim_end_matches('%')),
        Unit::Count | Unit::Times | Unit::PerSecond => number(text),
    }
}

impl Limit {
    /// Records for each phase that has the figure whether it is within the limit. A figure that no phase has is a failure, too: the
    /// limit was not tested. Returns a sentence for each failure.
    pub(super) fn judge(&self, record: &mut Record) -> Vec<String> {
        let name = columns::name(self.column);
        let figures = record
            .phases
            .iter()
            .filter_map(|phase| Some((phase.name.clone(), (self.column.of)(phase)?)));
        let mut judged: Vec<_> = figures
            .map(|(phase, figure)| self.assertion(Some(phase), Some(figure)))
            .collect();
        if judged.is_empty() {
            judged.push(self.assertion(None, None));
        }
        let failed = judged.iter().filter(|it| !it.held());
        let sentences = failed.map(|it| match (&it.phase, it.measured) {
            (Some(phase), Some(measured)) => {
                format!("--fail-if '{}': {name} of phase `{phase}` is {measured}", self.text)
            }
            (_, _) => format!("--fail-if '{}': no phase has this figure", self.text),
        });
        let sentences = sentences.collect();
        record.assertions.extend(judged);
        sentences
    }

    fn assertion(&self, phase: Option<String>, figure: Option<f64>) -> Assertion {
        let quantity = |value| Quantity::new(value, self.column.unit);
        let holds = figure.is_some_and(|figure| self.relation.holds(figure, self.bound));
        Assertion {
            phase,
            text: format!("{}, as --fail-if says", columns::name(self.column)),
            relation: self.relation,
            bound: Some(quantity(self.bound)),
            measured: figure.map(quantity),
            verdict: if holds { Verdict::Held } else { Verdict::Failed },
            why: None,
        }
    }
}
