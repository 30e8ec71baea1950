//! What a run ends with: figures of a measurement, or findings of a story.

use std::fmt;

use serde::Serialize;

use crate::findings::Findings;
use crate::report::Report;

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Outcome {
    Figures(Box<Report>),
    Findings(Findings),
}

impl Outcome {
    /// Whether everything was as it must be.
    pub(crate) const fn held(&self) -> bool {
        match self {
            Self::Figures(report) => report.held(),
            Self::Findings(findings) => findings.held(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Figures(report) => report.fmt(out),
            Self::Findings(findings) => findings.fmt(out),
        }
    }
}
