//! What a run ends with: figures of a measurement, or findings of a story.

use std::fmt;

use crate::findings::Findings;
use crate::record::Recorder;
use crate::report::Report;

#[derive(Debug)]
pub(crate) enum Outcome {
    Figures(Box<Report>),
    Findings(Findings),
}

impl Outcome {
    /// Writes into the record what was found besides what is in it already.
    pub(crate) fn pour(&self, recorder: &Recorder) {
        match self {
            Self::Figures(report) => report.failures.iter().for_each(|failure| recorder.fail(failure, None)),
            Self::Findings(findings) => findings.pour(recorder),
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
